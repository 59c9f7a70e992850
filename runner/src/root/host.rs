//! The base `host`: the programs of this machine without its data. `/usr` comes from the host; `/etc` is made up but
//! for what programs and certificates need; `/home`, `/root` and `/var` are empty.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::mounts::Shown;
use crate::fault::{During, Result};
use crate::files::Root;

/// Folders, with their permission bits.
const FOLDERS: [(&str, u32); 20] = [
    ("dev", 0o755),
    ("etc", 0o755),
    ("home", 0o755),
    ("mnt", 0o755),
    ("opt", 0o755),
    ("proc", 0o755),
    ("root", 0o700),
    ("run", 0o755),
    ("run/lock", 0o1777),
    ("srv", 0o755),
    ("sys", 0o755),
    ("tmp", 0o1777),
    ("usr", 0o755),
    ("var", 0o755),
    ("var/cache", 0o755),
    ("var/lib", 0o755),
    ("var/log", 0o755),
    ("var/spool", 0o755),
    ("var/tmp", 0o1777),
    ("etc/ssl", 0o755),
];

/// Links into `/usr` on merged systems, folders of their own on others.
const PROGRAMS: [&str; 6] = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Files made up.
const FILES: [(&str, &str); 7] = [
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    ("etc/group", "root:x:0:\ndaemon:x:1:\ntty:x:5:\nnogroup:x:65534:\n"),
    ("etc/hosts", "127.0.0.1 localhost memtrial\n::1 localhost ip6-localhost ip6-loopback\n"),
    ("etc/hostname", "memtrial\n"),
    (
        "etc/nsswitch.conf",
        "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    ),
    ("etc/timezone", "Etc/UTC\n"),
    ("etc/shells", "/bin/sh\n/bin/bash\n"),
];

/// Copied from the host where it has them: how libraries are found, what ports and protocols are called.
const COPIED: [&str; 7] = [
    "etc/ld.so.cache",
    "etc/ld.so.conf",
    "etc/debian_version",
    "etc/os-release",
    "etc/protocols",
    "etc/services",
    "etc/ssl/openssl.cnf",
];

/// Shown read-only where the host has them: Debian's links from `/usr/bin` lead through the first; certificates.
const SHOWN: [&str; 7] = [
    "/etc/alternatives",
    "/etc/ld.so.conf.d",
    "/etc/ssl/certs",
    "/etc/ca-certificates",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
    "/etc/crypto-policies",
];

/// Fills a new folder with what lies under the root overlay, and returns it.
pub fn skeleton(at: &Path) -> Result<PathBuf> {
    fs::create_dir(at).during(at.display())?;
    for (name, mode) in FOLDERS {
        let path = at.join(name);
        fs::create_dir(&path).during(path.display())?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).during(path.display())?;
    }
    // Made here, in memory, so that mounting leaves nothing in the folder that writes go to.
    for path in SHOWN.iter().map(Path::new).filter(|path| path.is_dir()) {
        let inside = path.strip_prefix("/").unwrap_or(path);
        fs::create_dir_all(at.join(inside)).during(path.display())?;
    }
    for name in PROGRAMS {
        let host = Path::new("/").join(name);
        match fs::symlink_metadata(&host) {
            Ok(found) if found.is_symlink() => {
                let target = fs::read_link(&host).during(host.display())?;
                symlink(target, at.join(name)).during(host.display())?;
            }
            Ok(_) => fs::create_dir(at.join(name)).during(host.display())?,
            Err(_) => {}
        }
    }
    for (name, text) in FILES {
        fs::write(at.join(name), text).during(name)?;
    }
    for name in COPIED {
        let host = Path::new("/").join(name);
        if host.is_file() {
            fs::copy(&host, at.join(name)).during(host.display())?;
        }
    }
    symlink("/usr/share/zoneinfo/Etc/UTC", at.join("etc/localtime")).during("etc/localtime")?;
    symlink("/proc/self/mounts", at.join("etc/mtab")).during("etc/mtab")?;
    Ok(at.to_owned())
}

/// Shows what is not copied.
pub fn mount(root: &Root, shown: &mut Shown) -> Result<()> {
    let separate = PROGRAMS.iter().map(|name| format!("/{name}"));
    let separate = separate.filter(|path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()));
    for path in separate.chain(SHOWN.map(str::to_owned)).map(PathBuf::from) {
        if path.is_dir() {
            shown.bind(root, &path, &path)?;
        }
    }
    Ok(())
}
