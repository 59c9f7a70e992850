//! Files in and out, mounts, layers.

use fs_err as fs;
use futures::FutureExt;

use super::{Bench, Claim, Try, Wrong, bash, must};
use crate::sandbox::namespaces::unique;
use crate::sandbox::{Exec, Image, Mount, Spec};

pub(super) fn cases<'a>() -> Vec<(&'static str, Option<Claim>, Try<'a>)> {
    vec![
        ("files go in and come out", None, |bench| round_trip(bench).boxed()),
        ("a link at a file's place is replaced, not followed", None, |bench| link(bench).boxed()),
        ("what is no file is absent, what is too large is refused", None, |bench| refused(bench).boxed()),
        ("mounts can be read", None, |bench| mounts(bench).boxed()),
        ("mounts cannot be written", Some(Claim::Isolation), |bench| read_only(bench).boxed()),
        ("what is not committed is gone", None, |bench| gone(bench).boxed()),
        ("layers are committed, started on, stacked and dropped", None, |bench| layers(bench).boxed()),
    ]
}

async fn round_trip(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    let bytes: Vec<u8> = (0..2_000_000u32).map(|i| (i * 7 % 256) as u8).collect();
    sandbox.put("/work/a b/c", &bytes, 0o640).await?;
    let back = sandbox.get("/work/a b/c", 1 << 30).await?;
    must(back.as_deref() == Some(&bytes), back.map(|bytes| bytes.len()))?;
    let output = sandbox.exec(&Exec::bash("stat -c '%a %s' c; ls -A", "/work/a b")).await?;
    must(output.text() == "640 2000000\nc\n", &output)?;
    sandbox.put("/work/a b/c", b"", 0o755).await?;
    must(sandbox.get("/work/a b/c", 0).await?.as_deref() == Some(b"".as_slice()), "an empty file")?;
    Ok(sandbox.close().await?)
}

async fn link(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mut sandbox = bench.start().await?;
    sandbox.put("/work/victim", b"mine", 0o644).await?;
    let linked = Exec::bash("ln -s victim link", "/work");
    must(sandbox.exec(&linked).await?.success(), "ln")?;
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

fn folder(bench: &Bench<'_>) -> Result<Mount, Wrong> {
    let host = bench.options.scratch.join(format!("mount {}", unique()));
    fs::create_dir_all(host.join("sub"))?;
    fs::write(host.join("sub/file"), "from the host")?;
    Ok(Mount { host, inside: "/mnt/of/host".into() })
}

async fn mounts(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mount = folder(bench)?;
    let mut sandbox = bench.start_with(|spec| spec.mounts.push(mount)).await?;
    let output = sandbox.exec(&Exec::bash("cat sub/file", "/mnt/of/host")).await?;
    must(output.text() == "from the host", &output)?;
    Ok(sandbox.close().await?)
}

async fn read_only(bench: &Bench<'_>) -> Result<(), Wrong> {
    let mount = folder(bench)?;
    let host = mount.host.clone();
    let mut sandbox = bench.start_with(|spec| spec.mounts.push(mount)).await?;
    for change in ["echo x > sub/file", "echo x > new", "rm sub/file", "chmod 777 sub/file", "mkdir d"] {
        let output = sandbox.exec(&Exec::bash(change, "/mnt/of/host")).await?;
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
    let output = sandbox.exec(&look).await?;
    must(output.text() == "600\n123", &output)?;
    sandbox.close().await?;

    // What the closed sandbox did is not there; what this one does is kept, removals too.
    let kept = |spec: &mut Spec| (spec.image, spec.keep) = (on(&below), true);
    let mut sandbox = bench.start_with(kept).await?;
    let output = sandbox.exec(&look).await?;
    must(output.text() == "600\n123", &output)?;
    backend.commit(sandbox, &above).await?;
    let mut sandbox = bench.start_with(|spec| spec.image = on(&above)).await?;
    let output = sandbox.exec(&Exec::bash("ls -A . folder", "/work")).await?;
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
