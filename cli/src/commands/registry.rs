//! Flags that say where published images come from and how much disk they may take.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine;
use memtrial::sandbox::images::{
    DOCKER_HUB, ImageEvent, ImageSettings, Login, Logins, OnImage, Platform, is_host,
};
use serde_json::Value;

use crate::ui;

/// How often a long transfer is told of.
const TELL: Duration = Duration::from_secs(20);

/// Where published images come from.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Published images")]
pub struct ImageArgs {
    /// A mirror, asked in Docker Hub's place: HOST or HOST:PORT
    #[arg(long, env = "MEMTRIAL_REGISTRY", value_name = "HOST[:PORT]", value_parser = host)]
    pub registry: Option<String>,
    /// Images for another platform than this machine's, such as linux/amd64: it must be able to run their programs
    #[arg(long, value_name = "PLATFORM", value_parser = Platform::parse)]
    pub platform: Option<Platform>,
    /// Bytes on disk that fetched images may take (with K, M, G or T: powers of 1024); those longest unused make room
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub image_disk: Option<u64>,
    /// Images fetched at once
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub pulls: usize,
}

impl ImageArgs {
    /// The settings, telling people on standard error.
    pub fn settings(&self) -> ImageSettings {
        ImageSettings {
            mirror: self.registry.clone(),
            platform: self.platform.clone(),
            disk: self.image_disk,
            pulls: self.pulls,
            logins: logins(),
            on_event: teller(),
            ..ImageSettings::default()
        }
    }
}

fn host(text: &str) -> Result<String, String> {
    if is_host(text) { Ok(text.to_owned()) } else { Err("expected HOST or HOST:PORT".into()) }
}

/// Reads `1073741824`, `1G` or `1.5G`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || "expected a number of bytes, such as 200G".to_owned();
    let text = text.trim().trim_end_matches(['B', 'b']).trim_end_matches(['i']);
    let (digits, power) = match text.chars().last() {
        Some('K' | 'k') => (&text[..text.len() - 1], 10),
        Some('M' | 'm') => (&text[..text.len() - 1], 20),
        Some('G' | 'g') => (&text[..text.len() - 1], 30),
        Some('T' | 't') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let number: f64 = digits.trim().parse().map_err(|_| wrong())?;
    let value = number * f64::from(2_u32).powi(power);
    if (1.0..1e18).contains(&value) { Ok(value as u64) } else { Err(wrong()) }
}

/// Bytes for people.
pub fn shown(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

fn teller() -> OnImage {
    let told = Mutex::new(Instant::now());
    Arc::new(move |event| match event {
        ImageEvent::Pulling { name, bytes } => ui::note(&format!("image {name}: fetching {}", shown(*bytes))),
        ImageEvent::Pulled { name } => ui::note(&format!("image {name}: here")),
        ImageEvent::Dropped { name } => ui::note(&format!("image {name}: dropped to make room")),
        ImageEvent::Waiting { name, reason, wait } => {
            let seconds = wait.as_secs_f64();
            ui::note(&format!("image {name}: {reason}; asking again in {seconds:.0} s"));
        }
        ImageEvent::Progress { name, done, bytes } => {
            let mut last = told.lock().unwrap_or_else(PoisonError::into_inner);
            if last.elapsed() > TELL {
                *last = Instant::now();
                ui::note(&format!("image {name}: {} of {}", shown(*done), shown(*bytes)));
            }
        }
    })
}

/// Logins that `docker login` wrote, read when a registry first asks for one.
fn logins() -> Logins {
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let folder = of("DOCKER_CONFIG").or_else(|| Some(of("HOME")?.join(".docker")));
    Arc::new(move |host| {
        let bytes = fs_err::read(folder.as_ref()?.join("config.json")).ok()?;
        login(&serde_json::from_slice(&bytes).ok()?, host)
    })
}

fn login(config: &Value, host: &str) -> Option<Login> {
    let names = if host == DOCKER_HUB {
        vec!["https://index.docker.io/v1/".to_owned(), "docker.io".to_owned(), "index.docker.io".to_owned()]
    } else {
        vec![host.to_owned(), format!("https://{host}"), format!("https://{host}/v1/")]
    };
    let entry = names.iter().find_map(|name| config["auths"].get(name))?;
    let plain = base64::engine::general_purpose::STANDARD.decode(entry["auth"].as_str()?).ok()?;
    let plain = String::from_utf8(plain).ok()?;
    let (user, password) = plain.trim_end_matches('\0').split_once(':')?;
    Some(Login { user: user.to_owned(), password: password.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sizes_are_read_and_shown() {
        assert_eq!(bytes("1024"), Ok(1024));
        assert_eq!(bytes("1.5G"), Ok(3 << 29));
        assert_eq!(bytes("2TiB"), Ok(2 << 40));
        for text in ["", "G", "-1", "1X", "nan"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert_eq!(
            (shown(3), shown(1536), shown(3 << 29)),
            ("3 B".into(), "1.5 KiB".into(), "1.5 GiB".into())
        );
    }

    #[test]
    fn a_login_is_found_by_its_registry() {
        let config = json!({"auths": {"https://index.docker.io/v1/": {"auth": "YTpiOmM="}, "ghcr.io": {}}});
        let found = login(&config, "docker.io").unwrap();
        assert_eq!((found.user.as_str(), found.password.as_str()), ("a", "b:c"));
        assert_eq!(format!("{found:?}"), "Login([redacted])");
        assert!(login(&config, "ghcr.io").is_none() && login(&config, "quay.io").is_none());
    }
}
