//! Names of published images, always in full: engines read short ones differently.

use std::fmt;

use crate::task::InstanceId;

use super::ImageError;

/// The registry that names without one mean.
pub const DOCKER_HUB: &str = "docker.io";

/// `REGISTRY/REPOSITORY`, with a tag, a digest, or both.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

impl Reference {
    /// Reads `[REGISTRY/]REPOSITORY[:TAG][@DIGEST]` as Docker does: the part before the first `/` is a registry where it
    /// holds a dot or a colon or is `localhost`; Docker Hub else. Without tag and digest the tag is `latest`.
    ///
    /// # Errors
    /// When it is no such name.
    pub fn parse(text: &str) -> Result<Self, ImageError> {
        let fail = |reason: &str| ImageError::Name { name: text.to_owned(), reason: reason.to_owned() };
        let text = text.trim();
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        if digest.is_some_and(|digest| hex_of(digest).is_none()) {
            return Err(fail("its digest is not sha256: and 64 hexadecimal digits"));
        }
        let (registry, path) = match rest.split_once('/') {
            Some((first, path)) if first.contains(['.', ':']) || first == "localhost" => (first, path),
            _ => (DOCKER_HUB, rest),
        };
        let (path, tag) = match path.rsplit_once(':') {
            Some((path, tag)) => (path, Some(tag)),
            None => (path, None),
        };
        let registry = if registry == "index.docker.io" { DOCKER_HUB } else { registry };
        if !is_host(registry) {
            return Err(fail("its registry is no host name"));
        }
        if !path.split('/').all(is_component) {
            return Err(fail("its repository is not lower-case letters, digits and . _ - between slashes"));
        }
        if !tag.is_none_or(is_tag) {
            return Err(fail("its tag is not up to 128 letters, digits and . _ -"));
        }
        let library = registry == DOCKER_HUB && !path.contains('/');
        let tag = tag.or(if digest.is_none() { Some("latest") } else { None });
        Ok(Self {
            registry: registry.to_owned(),
            repository: if library { format!("library/{path}") } else { path.to_owned() },
            tag: tag.map(str::to_owned),
            digest: digest.map(str::to_owned),
        })
    }

    /// SWE-bench's name for a task's image: every `__` becomes `_1776_`, all in lower case.
    ///
    /// # Errors
    /// When the id cannot be part of an image's name.
    pub fn swebench(id: &InstanceId) -> Result<Self, ImageError> {
        let id = id.as_str().to_lowercase().replace("__", "_1776_");
        Self::parse(&format!("{DOCKER_HUB}/swebench/sweb.eval.x86_64.{id}:latest"))
    }

    /// The same name at this very content.
    #[must_use]
    pub fn at(&self, digest: &str) -> Self {
        Self { tag: None, digest: Some(digest.to_owned()), ..self.clone() }
    }

    /// The same name at another registry, where it is one of Docker Hub's: a mirror's.
    #[must_use]
    pub fn through(&self, mirror: Option<&str>) -> Self {
        match mirror {
            Some(mirror) if self.registry == DOCKER_HUB => {
                Self { registry: mirror.to_owned(), ..self.clone() }
            }
            _ => self.clone(),
        }
    }

    /// The registry's host, with its port where one is named.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The repository in the registry.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The content that the name is pinned to.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// What the registry is asked for: the digest, else the tag.
    pub fn target(&self) -> &str {
        self.digest.as_deref().or(self.tag.as_deref()).unwrap_or("latest")
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

/// The digits of `sha256:<64 digits>`; `None` where it is something else.
pub fn hex_of(digest: &str) -> Option<&str> {
    let digits = digest.strip_prefix("sha256:")?;
    let fits = digits.len() == 64 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    fits.then_some(digits)
}

/// Whether a text is `HOST` or `HOST:PORT`.
pub fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') => (host, Some(port)),
        _ => (text, None),
    };
    let name = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host_fits = match name {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && !host.starts_with(['-', '.'])
                && host.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-')
        }
    };
    host_fits && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

fn is_component(part: &str) -> bool {
    let ends = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = part.as_bytes();
    let fits = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-');
    ends(bytes.first()) && ends(bytes.last()) && bytes.iter().all(fits) && !part.contains("..")
}

fn is_tag(tag: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    !tag.is_empty() && tag.len() <= 128 && tag.bytes().all(fits) && !tag.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_full() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        for (text, full) in [
            ("debian", "docker.io/library/debian:latest"),
            (
                "swerebenchv2/unidata-netcdf-c:1925-ad6bff3",
                "docker.io/swerebenchv2/unidata-netcdf-c:1925-ad6bff3",
            ),
            ("index.docker.io/a/b:1", "docker.io/a/b:1"),
            ("ghcr.io/a/b.c__d", "ghcr.io/a/b.c__d:latest"),
            ("localhost/a", "localhost/a:latest"),
            ("127.0.0.1:5000/a:x", "127.0.0.1:5000/a:x"),
            (&format!("a/b@{digest}"), &format!("docker.io/a/b@{digest}")),
            (&format!("a/b:1@{digest}"), &format!("docker.io/a/b:1@{digest}")),
        ] {
            assert_eq!(Reference::parse(text).unwrap().to_string(), full);
        }
        for text in ["", "A/b", "a//b", "a/../b", "a:", "a:b c", "a@sha256:12", "-x.y/a", "x.y:z/a", "a/b:.1"]
        {
            assert!(Reference::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_mirror_takes_the_place_of_docker_hub_alone() {
        let through = |name: &str| Reference::parse(name).unwrap().through(Some("mirror:5000")).to_string();
        assert_eq!(through("a/b:1"), "mirror:5000/a/b:1");
        assert_eq!(through("ghcr.io/a/b:1"), "ghcr.io/a/b:1");
    }

    #[test]
    fn swebench_writes_double_underscores_as_1776() {
        let id = InstanceId::parse("Django__django-11099").unwrap();
        assert_eq!(
            Reference::swebench(&id).unwrap().to_string(),
            "docker.io/swebench/sweb.eval.x86_64.django_1776_django-11099:latest"
        );
    }
}
