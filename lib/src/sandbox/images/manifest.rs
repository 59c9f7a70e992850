//! What registries say of an image: index → manifest → configuration.
//!
//! Shapes: OCI image specification 1.1 and Docker's schema 2, which differ in media types alone.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ImageError;
use super::name::hex_of;

/// The media types that are asked for.
pub(super) const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json";

/// More layers than this cannot be stacked.
const MOST_LAYERS: usize = 200;

/// Operating system (always `linux`), architecture in Go's spelling, and variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    /// `amd64`, `arm64`, …
    pub architecture: String,
    /// `v8`, …; `None`: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

impl Platform {
    /// Reads `linux/amd64` or `linux/arm64/v8`; `x86_64` and `aarch64` are understood.
    ///
    /// # Errors
    /// When it is none, or not Linux.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split('/');
        let (system, architecture) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let variant = parts.next().map(str::to_owned);
        if system != "linux" || architecture.is_empty() || parts.next().is_some() {
            return Err(format!("platform {text:?}: expected linux/amd64 or linux/arm64"));
        }
        Ok(Self { architecture: go_name(architecture).to_owned(), variant })
    }

    /// This machine's.
    pub fn host() -> Self {
        Self { architecture: go_name(std::env::consts::ARCH).to_owned(), variant: None }
    }

    fn fits(&self, offered: &Offered) -> bool {
        offered.os == "linux"
            && offered.architecture == self.architecture
            && (self.variant.is_none() || offered.variant.is_none() || self.variant == offered.variant)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "linux/{}", self.architecture)?;
        self.variant.iter().try_for_each(|variant| write!(f, "/{variant}"))
    }
}

fn go_name(architecture: &str) -> &str {
    match architecture {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}

/// A pointer to content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    #[serde(default)]
    pub media_type: String,
    pub digest: String,
    #[serde(default)]
    pub size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    platform: Option<Offered>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Offered {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
}

impl fmt::Display for Offered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant.iter().try_for_each(|variant| write!(f, "/{variant}"))
    }
}

/// An index or a manifest.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Document {
    Index { manifests: Vec<Descriptor> },
    Manifest { config: Descriptor, layers: Vec<Descriptor> },
}

/// Reads an index or a manifest.
pub(super) fn document(name: &str, bytes: &[u8]) -> Result<Document, ImageError> {
    let corrupt = |reason: String| ImageError::Corrupt { name: name.to_owned(), reason };
    let document: Document = serde_json::from_slice(bytes).map_err(|_| {
        corrupt(
            "the registry's answer is neither an image index nor a manifest (schema 1 is not read)"
                .to_owned(),
        )
    })?;
    let all: Vec<&Descriptor> = match &document {
        Document::Index { manifests } => manifests.iter().collect(),
        Document::Manifest { config, layers } => std::iter::once(config).chain(layers).collect(),
    };
    match all.iter().find(|descriptor| hex_of(&descriptor.digest).is_none()) {
        Some(bad) => {
            Err(corrupt(format!("its manifest holds the digest {:?}, which is no SHA-256", bad.digest)))
        }
        None => Ok(document),
    }
}

/// The manifest for a platform.
pub(super) fn choose<'a>(
    name: &str,
    manifests: &'a [Descriptor],
    wanted: &Platform,
) -> Result<&'a Descriptor, ImageError> {
    let found = manifests.iter().find(|one| one.platform.as_ref().is_some_and(|p| wanted.fits(p)));
    found.ok_or_else(|| {
        let offered = manifests.iter().filter_map(|one| one.platform.as_ref());
        let offered = offered.filter(|platform| platform.os != "unknown").map(ToString::to_string);
        other_platform(name, wanted, &offered.collect::<Vec<_>>().join(", "))
    })
}

/// The error of an image for other machines.
pub(super) fn other_platform(name: &str, wanted: &Platform, offered: &str) -> ImageError {
    let hint = if offered.contains("linux/amd64") {
        "to emulate, install qemu-user-static and say --platform linux/amd64 (slow, and tests may time out)"
    } else {
        "run it on such a machine, or name the image of another build"
    };
    ImageError::Platform {
        name: name.to_owned(),
        wanted: wanted.to_string(),
        offered: if offered.is_empty() { "nothing named".to_owned() } else { offered.to_owned() },
        hint: hint.to_owned(),
    }
}

/// An image's configuration, as far as it matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// `NAME=VALUE`.
    pub env: Vec<String>,
    /// The working folder; empty: none.
    pub workdir: String,
}

#[derive(Deserialize)]
struct ConfigFile {
    #[serde(flatten)]
    platform: Offered,
    #[serde(default)]
    config: Option<Inner>,
    rootfs: RootFs,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Inner {
    env: Option<Vec<String>>,
    working_dir: Option<String>,
}

#[derive(Deserialize)]
struct RootFs {
    diff_ids: Vec<String>,
}

/// One layer: as it is sent, and as it is unpacked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// The digest of the bytes that are sent.
    pub digest: String,
    /// Their number.
    pub size: u64,
    /// The digest of the archive in them: what tells layers apart.
    pub diff_id: String,
}

/// Reads an image's configuration and pairs its layers with those of the manifest.
pub(super) fn config(
    name: &str,
    bytes: &[u8],
    layers: &[Descriptor],
    wanted: &Platform,
) -> Result<(Config, Vec<Layer>), ImageError> {
    let corrupt = |reason: String| ImageError::Corrupt { name: name.to_owned(), reason };
    let file: ConfigFile = serde_json::from_slice(bytes)
        .map_err(|error| corrupt(format!("its configuration cannot be read: {error}")))?;
    if !wanted.fits(&file.platform) {
        return Err(other_platform(name, wanted, &file.platform.to_string()));
    }
    let ids = file.rootfs.diff_ids;
    if ids.len() != layers.len() || ids.iter().any(|id| hex_of(id).is_none()) {
        return Err(corrupt("its configuration and its manifest disagree about its layers".to_owned()));
    }
    if ids.is_empty() || ids.len() > MOST_LAYERS {
        return Err(corrupt(format!("it has {} layers; 1 to {MOST_LAYERS} can be stacked", ids.len())));
    }
    let pair = |(layer, diff_id): (&Descriptor, String)| Layer {
        digest: layer.digest.clone(),
        size: layer.size,
        diff_id,
    };
    let inner = file.config.unwrap_or_default();
    let config =
        Config { env: inner.env.unwrap_or_default(), workdir: inner.working_dir.unwrap_or_default() };
    Ok((config, layers.iter().zip(ids).map(pair).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn digest(byte: u8) -> String {
        format!("sha256:{}", format!("{byte:02x}").repeat(32))
    }

    #[test]
    fn the_platform_decides_among_manifests() {
        let one = |arch: &str, byte| json!({"digest": digest(byte), "size": 1, "platform": {"os": "linux", "architecture": arch}});
        let attest =
            json!({"digest": digest(9), "size": 1, "platform": {"os": "unknown", "architecture": "unknown"}});
        let index = json!({"schemaVersion": 2, "manifests": [one("arm64", 1), one("amd64", 2), attest]});
        let Document::Index { manifests } = document("x", index.to_string().as_bytes()).unwrap() else {
            panic!("no index")
        };
        let choose = |text: &str| choose("x", &manifests, &Platform::parse(text).unwrap());
        assert_eq!(choose("linux/x86_64").unwrap().digest, digest(2));
        assert_eq!(choose("linux/arm64/v8").unwrap().digest, digest(1));
        let error = choose("linux/riscv64").unwrap_err().to_string();
        assert!(error.contains("not for linux/riscv64 (it is for linux/arm64, linux/amd64)"), "{error}");
        assert!(error.contains("--platform linux/amd64"), "{error}");
        assert!(Platform::parse("windows/amd64").is_err());
    }

    #[test]
    fn what_is_no_manifest_is_refused() {
        for text in [
            "",
            "{}",
            "[]",
            r#"{"config": {"digest": "md5:1"}, "layers": []}"#,
            r#"{"manifests": [{"digest": "x"}]}"#,
        ] {
            assert!(document("x", text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn configuration_and_manifest_must_agree() {
        let layers = [Descriptor { media_type: String::new(), digest: digest(1), size: 3, platform: None }];
        let wanted = Platform::parse("linux/amd64").unwrap();
        let read = |value: serde_json::Value| config("x", value.to_string().as_bytes(), &layers, &wanted);
        let fine = json!({"os": "linux", "architecture": "amd64", "rootfs": {"diff_ids": [digest(2)]},
            "config": {"Env": ["A=b"], "WorkingDir": "/testbed"}});
        let (config, pairs) = read(fine).unwrap();
        assert_eq!(
            (config.env.as_slice(), config.workdir.as_str()),
            (["A=b".to_owned()].as_slice(), "/testbed")
        );
        assert_eq!(pairs, [Layer { digest: digest(1), size: 3, diff_id: digest(2) }]);
        let none =
            json!({"os": "linux", "architecture": "amd64", "rootfs": {"diff_ids": []}, "config": null});
        assert!(read(none).unwrap_err().to_string().contains("disagree"));
        let arm = json!({"os": "linux", "architecture": "arm64", "rootfs": {"diff_ids": [digest(2)]}});
        assert!(read(arm).unwrap_err().to_string().contains("not for linux/amd64 (it is for linux/arm64)"));
    }
}
