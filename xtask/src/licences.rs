//! Every dependency's licence must allow distribution under MIT OR Apache-2.0. `deny.toml` states the same rule for
//! `cargo deny`; this check needs nothing installed.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Licences that ask for no more than a notice.
const ALLOWED: [&str; 14] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "BSL-1.0",
    "CC0-1.0",
    "Unlicense",
    "Unicode-3.0",
    "CDLA-Permissive-2.0",
];

/// Checks the licence expression of every package in the tree.
pub fn check(root: &Path) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--locked"])
        .current_dir(root)
        .output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let faults: Vec<String> = packages
        .iter()
        .filter_map(|package| {
            let licence = package["license"].as_str().unwrap_or("none stated");
            let name = package["name"].as_str().unwrap_or("?");
            (!allowed(licence)).then(|| format!("{name}: {licence}"))
        })
        .collect();
    if !faults.is_empty() {
        bail!("licences to look at:\n{}", faults.join("\n"));
    }
    Ok(format!("licences: {} packages, all allowed", packages.len()))
}

/// Whether an SPDX expression can be met by allowed licences alone. `/` is the old spelling of OR.
fn allowed(expression: &str) -> bool {
    let flat = expression.replace(['(', ')'], " ").replace('/', " OR ");
    let all_of = |text: &str| text.split(" AND ").all(|name| ALLOWED.contains(&name.trim()));
    // brackets only ever group alternatives in practice: (A OR B) AND C needs C and one of A, B
    match expression.split_once(") AND ") {
        Some((either, rest)) if !rest.contains(" OR ") => {
            all_of(rest) && either.trim_start_matches('(').split(" OR ").any(all_of)
        }
        _ => flat.split(" OR ").any(all_of),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        for good in [
            "MIT",
            "MIT OR Apache-2.0",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
        ] {
            assert!(allowed(good), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "none stated", "(MIT OR Apache-2.0) AND GPL-3.0"] {
            assert!(!allowed(bad), "{bad}");
        }
    }
}
