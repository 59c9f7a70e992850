//! Copies of the package itself in a later version than the base commit's: installed, or in a package manager's cache.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;

/// What the package at the base commit is called, and its version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Own {
    /// Its names, as registries know it: of Python, npm, Cargo, and the repository's.
    pub(super) names: BTreeSet<String>,
    /// Go's module paths.
    pub(super) modules: BTreeSet<String>,
    /// The version at the base commit, the highest that is stated or tagged.
    pub(super) version: Option<String>,
}

/// Files of the base commit that say what the package is called.
pub(super) const MANIFESTS: [&str; 7] =
    ["pyproject.toml", "setup.cfg", "setup.py", "package.json", "Cargo.toml", "go.mod", "composer.json"];

impl Own {
    /// The repository's name says nothing by itself for short words, but a package of its name is the package.
    pub(super) fn new(repo: Option<&str>) -> Self {
        let mut own = Self::default();
        if let Some(name) = repo.and_then(|repo| repo.rsplit('/').next()) {
            own.names.insert(normal(name));
        }
        if let Some(repo) = repo {
            own.modules.insert(format!("github.com/{repo}"));
        }
        own
    }

    /// Takes in a manifest.
    pub(super) fn read(&mut self, file: &str, text: &str) {
        let (name, version) = match file {
            "pyproject.toml" | "Cargo.toml" => from_toml(text),
            "package.json" | "composer.json" => from_json(text),
            "go.mod" => {
                let module = text.lines().find_map(|line| line.trim().strip_prefix("module "));
                self.modules.extend(module.map(|module| module.trim().trim_matches('"').to_owned()));
                return;
            }
            _ => (
                capture(text, r#"(?m)^\s*name\s*=\s*['"]?([A-Za-z0-9][\w.-]*)"#),
                capture(text, r#"(?m)^\s*version\s*=\s*['"]?(\d[\w.+!-]*)"#),
            ),
        };
        self.names.extend(name.map(|name| normal(&name)));
        self.saw_version(version);
    }

    /// Takes in a version that the base commit or one before it had.
    pub(super) fn saw_version(&mut self, version: Option<String>) {
        let Some(version) = version.filter(|version| version.starts_with(|c: char| c.is_ascii_digit()))
        else {
            return;
        };
        if self.version.as_deref().is_none_or(|old| compare(old, &version) == Ordering::Less) {
            self.version = Some(version);
        }
    }

    /// Whether a version is later than the base commit's; `None` where that is not known.
    pub(super) fn is_later(&self, version: &str) -> Option<bool> {
        Some(compare(version, self.version.as_deref()?) == Ordering::Greater)
    }

    /// The version of a copy of this package that lies at a path, where the path says so.
    pub(super) fn copy_at(&self, path: &str) -> Option<Copy> {
        self.module_at(path).or_else(|| self.package_at(path))
    }

    /// Python's, Cargo's, npm's, Ruby's and Maven's ways of naming.
    fn package_at(&self, path: &str) -> Option<Copy> {
        let parts: Vec<&str> = path.split('/').collect();
        let (&file, folders) = parts.split_last()?;
        let folder = folders.last().copied().unwrap_or_default();
        let above = folders.len().checked_sub(2).map_or("", |at| folders[at]);
        // …/NAME-1.2.dist-info/METADATA, …/NAME-1.2-py3.11.egg-info/PKG-INFO
        for (end, inside) in [(".dist-info", "METADATA"), (".egg-info", "PKG-INFO"), (".egg", "PKG-INFO")] {
            if let (Some(name), true) = (folder.strip_suffix(end), file == inside) {
                return self.split(name).map(|version| Copy { version, installed: true, manifest: None });
            }
        }
        // node_modules/NAME/package.json, also @scope/NAME
        if file == "package.json" {
            let scoped = if above.starts_with('@') { format!("{above}/{folder}") } else { folder.to_owned() };
            let parent = if above.starts_with('@') { folders.get(folders.len() - 3) } else { Some(&above) };
            if parent == Some(&"node_modules") && self.names.contains(&normal(&scoped)) {
                return Some(Copy {
                    version: String::new(),
                    installed: true,
                    manifest: Some(path.to_owned()),
                });
            }
        }
        // registry/src/INDEX/NAME-1.2/Cargo.toml
        if file == "Cargo.toml" && folders.contains(&"registry") {
            return self.split(folder).map(|version| Copy { version, installed: true, manifest: None });
        }
        // .cache/yarn/v6/npm-NAME-1.2.3-HASH…
        if let Some(place) = folders.iter().position(|part| *part == "yarn") {
            let entry = folders.get(place + 2).copied().unwrap_or(file);
            let entry = entry
                .strip_prefix("npm-")
                .filter(|_| file == ".yarn-metadata.json" || folders.len() == place + 2);
            if let Some(version) = entry.and_then(|entry| self.split(entry)) {
                return Some(Copy { version, installed: false, manifest: None });
            }
        }
        let archives =
            [".whl", ".tar.gz", ".tgz", ".zip", ".egg", ".crate", ".gem", ".jar", ".tar.bz2", ".tar.xz"];
        let name = archives.iter().find_map(|end| file.strip_suffix(end))?;
        let version = self.split(name).or_else(|| self.split(&name.replacen("-npm-", "-", 1)))?;
        Some(Copy { version, installed: false, manifest: None })
    }

    /// `NAME-1.2.3…` → `1.2.3`, for one of our names.
    fn split(&self, text: &str) -> Option<String> {
        text.match_indices('-').find_map(|(at, _)| {
            let (name, rest) = (&text[..at], &text[at + 1..]);
            let is_version = rest.starts_with(|c: char| c.is_ascii_digit());
            (is_version && self.names.contains(&normal(name)))
                .then(|| rest.split('-').next().unwrap_or(rest).to_owned())
        })
    }

    /// Go: `pkg/mod/MODULE@v1.2.3/…` and `pkg/mod/cache/download/MODULE/@v/v1.2.3.zip`, capitals as `!` and small ones.
    fn module_at(&self, path: &str) -> Option<Copy> {
        self.modules.iter().find_map(|module| {
            let module: String = module
                .chars()
                .flat_map(
                    |c| if c.is_ascii_uppercase() { vec!['!', c.to_ascii_lowercase()] } else { vec![c] },
                )
                .collect();
            let version = |text: &str| text.strip_prefix('v').map(str::to_owned);
            let installed = path.split_once(&format!("/pkg/mod/{module}@")).and_then(|(_, rest)| {
                let (name, file) = rest.split_once('/')?;
                (!file.contains('/')).then(|| version(name)).flatten()
            });
            let cached = path
                .split_once(&format!("/download/{module}/@v/"))
                .and_then(|(_, rest)| version(rest.strip_suffix(".zip")?));
            let copy = |installed| move |version| Copy { version, installed, manifest: None };
            installed.map(copy(true)).or_else(|| cached.map(copy(false)))
        })
    }

    /// The tarballs of this package that a file of npm's cache index (`_cacache/index-v5`) says are held.
    pub(super) fn tarballs_in(&self, text: &str) -> Vec<Tarball> {
        let Ok(pattern) = Regex::new(r"/((?:@[\w.-]+/)?[\w.-]+)/-/[\w.-]+?-(\d[\w.+-]*)\.tgz") else {
            return Vec::new();
        };
        // each line is a checksum and an entry; the last one of a key counts, but what an earlier one named may lie there
        let entries = text.lines().filter_map(|line| {
            let entry: serde_json::Value = serde_json::from_str(line.rsplit('\t').next()?).ok()?;
            let found = pattern.captures(entry.get("key")?.as_str()?)?;
            let content = entry.get("integrity").and_then(|it| it.as_str()).and_then(content_of);
            let ours = self.names.contains(&normal(&found[1]));
            ours.then(|| Tarball { version: found[2].to_owned(), content })
        });
        entries.collect()
    }
}

/// Where npm's cache holds what has this checksum: `sha512-3q2+7w==` → `content-v2/sha512/de/ad/beef`.
fn content_of(integrity: &str) -> Option<String> {
    let (algorithm, digest) = integrity.split_whitespace().next()?.split_once('-')?;
    let digest = STANDARD.decode(digest).ok()?;
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, second, rest) = (hex.get(..2)?, hex.get(2..4)?, hex.get(4..)?);
    Some(format!("content-v2/{algorithm}/{first}/{second}/{rest}"))
}

/// A tarball in npm's cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tarball {
    pub(super) version: String,
    /// Where it lies in the cache, where the entry says so.
    pub(super) content: Option<String>,
}

/// A copy of the package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Copy {
    pub(super) version: String,
    /// Whether programs can use it as it lies there.
    pub(super) installed: bool,
    /// The file that states the version, where the path does not.
    pub(super) manifest: Option<String>,
}

/// PEP 503's form of a name; npm's and Cargo's names fit it too.
pub(super) fn normal(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars().map(|c| c.to_ascii_lowercase()) {
        let c = if matches!(c, '_' | '.') { '-' } else { c };
        if !(c == '-' && text.ends_with('-')) {
            text.push(c);
        }
    }
    text
}

/// The version that a manifest of npm states.
pub(super) fn version_of_json(text: &str) -> Option<String> {
    from_json(text).1
}

fn from_json(text: &str) -> (Option<String>, Option<String>) {
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let field = |name: &str| value.get(name).and_then(|it| it.as_str()).map(str::to_owned);
    (field("name"), field("version"))
}

fn from_toml(text: &str) -> (Option<String>, Option<String>) {
    let value: toml::Table = text.parse().unwrap_or_default();
    let tables = ["project", "package"].map(|name| value.get(name));
    let poetry = value.get("tool").and_then(|tool| tool.get("poetry"));
    let field = |name: &str| {
        let all = tables.iter().copied().chain([poetry]).flatten();
        all.filter_map(|table| table.get(name)?.as_str()).next().map(str::to_owned)
    };
    (field("name"), field("version"))
}

fn capture(text: &str, pattern: &str) -> Option<String> {
    Some(Regex::new(pattern).ok()?.captures(text)?[1].to_owned())
}

/// Compares the numbers of two versions; with equal numbers a pre-release (`1.0rc1`, `1.0.dev3`, `1.0.0-beta`) comes
/// first.
pub(super) fn compare(one: &str, other: &str) -> Ordering {
    let parse = |text: &str| {
        let text = text.split('+').next().unwrap_or(text);
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let mut numbers: Vec<u64> = text[..end].split('.').filter_map(|part| part.parse().ok()).collect();
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        let rest = text[end..].trim_start_matches(['-', '.']);
        let after = rest.is_empty() || rest.starts_with("post");
        (numbers, after)
    };
    parse(one).cmp(&parse(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Own {
        let mut own = Own::new(Some("acme/Widget"));
        own.read("pyproject.toml", "[project]\nname = \"acme.widget_kit\"\nversion = \"1.9\"\n");
        own.read("package.json", r#"{"name": "@acme/widget", "version": "1.10.0"}"#);
        own.read("go.mod", "module github.com/Acme/widget/v2\n");
        own
    }

    #[test]
    fn manifests_say_name_and_version() {
        let own = own();
        assert_eq!(own.version.as_deref(), Some("1.10.0"));
        for name in ["widget", "acme-widget-kit", "@acme/widget"] {
            assert!(own.names.contains(name), "{name} in {:?}", own.names);
        }
        let mut old = Own::default();
        old.read("setup.py", "setup(\n    name='old-kit',\n    version=\"0.3\",\n)");
        assert_eq!(
            (old.names.first().map(String::as_str), old.version.as_deref()),
            (Some("old-kit"), Some("0.3"))
        );
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (later, earlier) in [
            ("1.10", "1.9"),
            ("2", "1.99.99"),
            ("1.0", "1.0rc1"),
            ("1.0.0", "1.0.0-beta"),
            ("1.0.1.dev1", "1.0"),
            ("4.0.1", "4"),
        ] {
            assert_eq!(compare(later, earlier), Ordering::Greater, "{later} {earlier}");
        }
        assert_eq!(compare("1.0", "1.0.0"), Ordering::Equal);
        assert_eq!(compare("1.0+local", "1"), Ordering::Equal);
    }

    #[test]
    fn copies_are_known_by_their_paths() {
        let own = own();
        let version = |path: &str| own.copy_at(path).map(|copy| copy.version);
        for path in [
            "/opt/env/lib/python3.11/site-packages/acme_widget_kit-2.1.dist-info/METADATA",
            "/usr/lib/python3/dist-packages/Widget-2.1-py3.11.egg-info/PKG-INFO",
            "/root/.cargo/registry/src/index-1/widget-2.1/Cargo.toml",
            "/root/.cargo/registry/cache/index-1/widget-2.1.crate",
            "/root/.cache/pip/wheels/a/b/acme_widget_kit-2.1-py3-none-any.whl",
            "/tmp/acme.widget.kit-2.1.tar.gz",
            "/root/go/pkg/mod/github.com/!acme/widget/v2@v2.1/mux.go",
            "/root/go/pkg/mod/cache/download/github.com/!acme/widget/v2/@v/v2.1.zip",
            "/root/.cache/yarn/v6/npm-widget-2.1-abcdef",
            "/testbed/.yarn/cache/widget-npm-2.1-abcdef.zip",
        ] {
            assert_eq!(version(path).as_deref(), Some("2.1"), "{path}");
        }
        assert!(
            own.copy_at("/testbed/node_modules/@acme/widget/package.json")
                .is_some_and(|copy| copy.manifest.is_some())
        );
        for path in [
            "/x/widgets-2.1.tar.gz",
            "/x/site-packages/other-2.1.dist-info/METADATA",
            "/x/node_modules/w/package.json",
        ] {
            assert_eq!(version(path), None, "{path}");
        }
    }

    #[test]
    fn an_index_of_npms_cache_says_which_tarballs_are_held() {
        let key = |name: &str| format!("request-cache:https://registry.npmjs.org/{name}");
        let line = |name: &str, more: &str| format!("0a1b\t{{\"key\":\"{}\"{more}}}\n", key(name));
        let text = [
            String::from("\n"),
            line("widget/-/widget-2.1.0.tgz", r#","integrity":"sha512-3q2+7w==","size":4"#),
            line("@acme/widget/-/widget-2.2.0-rc.1.tgz", ""),
            line("gadget/-/gadget-3.0.0.tgz", ""),
            // what there is to have, not what is held
            line("widget", r#","tarball":"https://registry.npmjs.org/widget/-/widget-9.0.0.tgz""#),
            String::from("noise"),
        ];
        let tarball = |version: &str, content: Option<&str>| Tarball {
            version: version.into(),
            content: content.map(Into::into),
        };
        assert_eq!(
            own().tarballs_in(&text.concat()),
            [tarball("2.1.0", Some("content-v2/sha512/de/ad/beef")), tarball("2.2.0-rc.1", None)]
        );
    }
}
