//! Files in and out, mounts, layers.

use fs_err as fs;
use futures::FutureExt;

use super::bench::{Bench, Wrong, bash, exec, must};
use super::{Claim, Entry};
use crate::sandbox::namespaces::unique;
use crate::sandbox::{Exec, Image, Mount, Spec};

pub(super) fn cases<'a>() -> Vec<Entry<'a>> {
    vec![
        ("put-get", "files go in with parents and permissions and come out unchanged", None, |bench| {
            round_trip(bench).boxed()
        }),
        ("link-replaced", "a link at a file's place is replaced, not followed", None, |bench| {
            link(bench).boxed()
        }),
        (
            "put-get-refused",
            "what is no file is absent; what is too large, climbs or is not absolute is refused",
            None,
            |bench| refused(bench).boxed(),
        ),
        (
            "links-outside",
            "links of the sandbox lead neither out of it nor into a mount's files",
            None,
            |bench| links_outside(bench).boxed(),
        ),
        ("special-files", "pipes, devices and sockets are no files, and hold nothing up", None, |bench| {
            special_files(bench).boxed()
        }),
        ("odd-names", "names that are no UTF-8 or hold newlines are files as others", None, |bench| {
            odd_names(bench).boxed()
        }),
        ("deep-folders", "folders deeper than a path is long are made, used and removed", None, |bench| {
            deep_folders(bench).boxed()
        }),
        ("mount-read", "mounted folders of the host can be read", None, |bench| mounts(bench).boxed()),
        (
            "mount-read-only",
            "mounted folders of the host cannot be written, remounted or unmounted",
            Some(Claim::Isolation),
            |bench| read_only(bench).boxed(),
        ),
        ("not-committed", "what is not committed is gone", None, |bench| gone(bench).boxed()),
        ("layers", "layers are committed, started on, stacked and dropped", None, |bench| {
            layers(bench).boxed()
        }),
    ]
}

async fn round_trip(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let bytes: Vec<u8> = (0..2_000_000u32).map(|i| (i * 7 % 256) as u8).collect();
    sandbox.put("/work/a b/c", &bytes, 0o640).await?;
    let back = sandbox.get("/work/a b/c", 1 << 30).await?;
    must(back.as_deref() == Some(&bytes), back.map(|bytes| bytes.len()))?;
    let output = exec(&mut sandbox, &Exec::bash("stat -c '%a %s' c; ls -A", "/work/a b")).await?;
    must(output.text() == "640 2000000\nc\n", &output)?;
    sandbox.put("/work/a b/c", b"", 0o755).await?;
    must(sandbox.get("/work/a b/c", 0).await?.as_deref() == Some(b"".as_slice()), "an empty file")?;
    Ok(sandbox.close().await?)
}

async fn link(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    sandbox.put("/work/victim", b"mine", 0o644).await?;
    let linked = Exec::bash("ln -s victim link", "/work");
    must(exec(&mut sandbox, &linked).await?.success(), "ln")?;
    must(sandbox.get("/work/link", 99).await?.is_none(), "a link is no file")?;
    sandbox.put("/work/link", b"new", 0o644).await?;
    must(sandbox.get("/work/victim", 99).await?.as_deref() == Some(b"mine".as_slice()), "it was followed")?;
    must(sandbox.get("/work/link", 99).await?.as_deref() == Some(b"new".as_slice()), "it was not replaced")?;
    Ok(sandbox.close().await?)
}

async fn refused(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    sandbox.put("/work/f", b"12345", 0o644).await?;
    must(sandbox.get("/work/f", 4).await.is_err(), "a file larger than the limit")?;
    must(sandbox.get("/work/f", 5).await?.is_some(), "a file of just the limit")?;
    for path in ["/work", "/work/none", "/none/none", "/work/f/none"] {
        must(sandbox.get(path, 99).await?.is_none(), path)?;
    }
    for path in ["work/x", "/work/../x", "/"] {
        must(sandbox.put(path, b"", 0o644).await.is_err(), path)?;
    }
    must(bash(&mut sandbox, "true").await?.success(), "the sandbox goes on")?;
    Ok(sandbox.close().await?)
}

async fn links_outside(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mount = folder(bench)?;
    let host = mount.host.clone();
    let mut sandbox = bench.start_with(|spec| spec.mounts.push(mount)).await?;
    let up = "../".repeat(20);
    let make = format!(
        "ln -s '{0}' absolute; ln -s '{up}{0}' climbing; ln -s /proc/self/root{0} magic; \
         ln /mnt/of/host/sub/file hard 2>/dev/null; ln -sf /mnt/of/host/sub/file hard2; true",
        host.display()
    );
    sandbox.put("/work/f", b"x", 0o644).await?;
    must(exec(&mut sandbox, &Exec::bash(make, "/work")).await?.success(), "ln")?;
    for link in ["absolute", "climbing", "magic"] {
        let path = format!("/work/{link}/sub/file");
        must(!matches!(sandbox.get(&path, 99).await, Ok(Some(_))), ("read on the host", path))?;
        // Written in the sandbox, where the link leads inside it, or refused.
        let _ = sandbox.put(&format!("/work/{link}/sub/new"), b"x", 0o644).await;
    }
    for link in ["hard", "hard2"] {
        let _ = sandbox.put(&format!("/work/{link}"), b"changed", 0o644).await;
    }
    sandbox.close().await?;
    must(fs::read_to_string(host.join("sub/file"))? == "from the host", "changed on the host")?;
    must(!host.join("sub/new").exists(), "made on the host")
}

async fn special_files(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    sandbox.put("/work/f", b"x", 0o644).await?;
    must(
        exec(&mut sandbox, &Exec::bash("mkfifo pipe; ln -s pipe link", "/work")).await?.success(),
        "mkfifo",
    )?;
    for path in ["/work/pipe", "/work/link", "/dev/zero", "/dev/tty", "/dev/stdin", "/proc/self/fd/0"] {
        let found = sandbox.get(path, 99).await;
        must(!matches!(found, Ok(Some(_))), (path, &found))?;
    }
    sandbox.put("/work/pipe", b"a file now", 0o644).await?;
    must(sandbox.get("/work/pipe", 99).await?.is_some(), "a pipe's place is taken by a file")?;
    Ok(sandbox.close().await?)
}

async fn odd_names(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    sandbox.put("/work/new\nline", b"1", 0o644).await?;
    let make = r"f=$(printf 'a\377\200b'); echo 2 > $f; mkdir $f.d; echo 3 > $f.d/$f; cat new* $f $f.d/$f; ls -1 | head -n 1";
    let output = exec(&mut sandbox, &Exec::bash(make, "/work")).await?;
    must(output.bytes.starts_with(b"12\n3\n"), &output)?;
    let listed = exec(&mut sandbox, &Exec::bash(r"printf '%s\n' a*", "/work")).await?;
    must(listed.bytes == b"a\xff\x80b\na\xff\x80b.d\n", &listed)?;
    Ok(sandbox.close().await?)
}

async fn deep_folders(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let dig = "n=$(printf %0100d 0); for i in {1..80}; do mkdir $n && cd $n || exit 8; done 2>/dev/null; \
               echo deep > file && cat file";
    sandbox.put("/work/f", b"x", 0o644).await?;
    let output = exec(&mut sandbox, &Exec::bash(dig, "/work")).await?;
    must(output.text() == "deep\n", &output)?;
    let output = exec(&mut sandbox, &Exec::bash("rm -r 0*; ls", "/work")).await?;
    must(output.text() == "f\n", &output)?;
    // This one is left for the sandbox's end.
    exec(&mut sandbox, &Exec::bash(dig, "/work")).await?;
    Ok(sandbox.close().await?)
}

fn folder(bench: &Bench<'_>) -> Result<Mount, Wrong> {
    let host = bench.options.scratch.join(format!("mount {}", unique()));
    fs::create_dir_all(host.join("sub"))?;
    fs::write(host.join("sub/file"), "from the host")?;
    Ok(Mount { host, inside: "/mnt/of/host".into() })
}

async fn mounts(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mount = folder(bench)?;
    let mut sandbox = bench.start_with(|spec| spec.mounts.push(mount)).await?;
    let output = exec(&mut sandbox, &Exec::bash("cat sub/file", "/mnt/of/host")).await?;
    must(output.text() == "from the host", &output)?;
    Ok(sandbox.close().await?)
}

async fn read_only(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mount = folder(bench)?;
    let host = mount.host.clone();
    let mut sandbox = bench.start_with(|spec| spec.mounts.push(mount)).await?;
    for change in ["echo x > sub/file", "echo x > new", "rm sub/file", "chmod 777 sub/file", "mkdir d"] {
        let output = exec(&mut sandbox, &Exec::bash(change, "/mnt/of/host")).await?;
        must(!output.success(), (change, &output))?;
    }
    bash(&mut sandbox, "mount -o remount,rw /mnt/of/host; umount /mnt/of/host; echo x > /mnt/of/host/new")
        .await?;
    must(sandbox.put("/mnt/of/host/new", b"x", 0o644).await.is_err(), "put")?;
    sandbox.close().await?;
    must(fs::read_to_string(host.join("sub/file"))? == "from the host", "it was changed on the host")?;
    must(!host.join("new").exists(), "it was made on the host")
}

async fn gone(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    sandbox.put("/work/f", b"x", 0o644).await?;
    sandbox.close().await?;
    let mut sandbox = bench.start().await?;
    must(sandbox.get("/work/f", 9).await?.is_none(), "it is there in another sandbox")?;
    Ok(sandbox.close().await?)
}

async fn layers(bench: &Bench<'_>) -> Result<(), Wrong> {
    let (below, above) = (format!("conformance-{}", unique()), format!("conformance-{}", unique()));
    let backend = bench.backend;
    let on = |key: &str| Image::Layer(key.to_owned());
    must(!backend.has_layer(&below).await?, "a layer that nobody committed")?;
    let refused = backend.commit(bench.start().await?, &below).await;
    must(refused.is_err(), "a commit of a sandbox that was not to be kept")?;
    let mut sandbox = bench.start_with(|spec| spec.keep = true).await?;
    sandbox.put("/work/a", b"1", 0o600).await?;
    sandbox.put("/work/folder/b", b"2", 0o644).await?;
    sandbox.put("/work/folder/c", b"3", 0o644).await?;
    backend.commit(sandbox, &below).await?;
    must(backend.has_layer(&below).await?, "the layer is not there")?;

    let mut sandbox = bench.start_with(|spec| spec.image = on(&below)).await?;
    let look =
        Exec::bash("stat -c %a a; cat a folder/*; rm -r folder a; mkdir folder; echo 4 > folder/d", "/work");
    let output = exec(&mut sandbox, &look).await?;
    must(output.text() == "600\n123", &output)?;
    sandbox.close().await?;

    // What the closed sandbox did is not there; what this one does is kept, removals too.
    let kept = |spec: &mut Spec| (spec.image, spec.keep) = (on(&below), true);
    let mut sandbox = bench.start_with(kept).await?;
    let output = exec(&mut sandbox, &look).await?;
    must(output.text() == "600\n123", &output)?;
    backend.commit(sandbox, &above).await?;
    let mut sandbox = bench.start_with(|spec| spec.image = on(&above)).await?;
    let output = exec(&mut sandbox, &Exec::bash("ls -A . folder", "/work")).await?;
    must(output.text() == ".:\nfolder\n\nfolder:\nd\n", &output)?;
    sandbox.close().await?;

    backend.drop_layer(&below).await?;
    must(!backend.has_layer(&below).await?, "a dropped layer")?;
    let mut sandbox = bench.start_with(|spec| spec.image = on(&above)).await?;
    must(
        sandbox.get("/work/folder/d", 9).await?.as_deref() == Some(b"4\n".as_slice()),
        "the layer above it",
    )?;
    sandbox.close().await?;
    backend.drop_layer(&above).await?;
    must(!backend.has_layer(&above).await?, "a dropped layer")?;
    must(bench.start_with(|spec| spec.image = on(&above)).await.is_err(), "a start on a dropped layer")
}
