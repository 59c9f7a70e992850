//! Hundreds of images within a budget of disk.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use memtrial::sandbox::images::{ImageError, ImageEvent, Reference, order};
use memtrial::sandbox::{Exec, Limits, Mount, Network, Spec};
use memtrial_testkit::ImageRegistry;
use memtrial_testkit::image::{Image, Layer, host_programs};

use super::{backend, block_on, settings};

const IMAGES: usize = 500;
const JOBS: usize = 4;

/// Bytes on disk.
fn on_disk(path: &Path) -> u64 {
    let Ok(found) = std::fs::symlink_metadata(path) else { return 0 };
    let below = if found.is_dir() { std::fs::read_dir(path).ok() } else { None };
    found.blocks() * 512 + below.into_iter().flatten().flatten().map(|e| on_disk(&e.path())).sum::<u64>()
}

pub fn noise(seed: usize, bytes: usize) -> Vec<u8> {
    let mut state = seed as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

fn name(image: usize) -> Reference {
    // Families in an order that shuffles them, so that putting them together is left to the program.
    Reference::parse(&format!("acme/widget:{}", (image * 7) % IMAGES)).unwrap()
}

/// Every image has a base that all share, a family's layer that fifty share, and one of its own.
fn study(unique: usize) {
    let registry = ImageRegistry::start().unwrap();
    let base = Layer::new().file("base", &noise(1_000_000, 8 * unique), 0o644);
    for image in 0..IMAGES {
        let family = Layer::new().file("family", &noise(2_000_000 + image / 50, 2 * unique), 0o644);
        let own = Layer::new().file("own", image.to_string().as_bytes(), 0o644);
        let own = own.file("data", &noise(image, unique - 8192), 0o644);
        let layers = vec![host_programs(), base.clone(), family, own];
        registry.push("acme/widget", &image.to_string(), &Image::new(layers)).unwrap();
    }
    // Room for the base, a few families, and some forty images.
    let budget = 60 * (unique as u64 + 16_384);
    let cache = tempfile::tempdir().unwrap();
    let (mut images, told) = settings(&registry);
    images.disk = Some(budget);
    let backend = backend("namespaces", cache.path(), images);
    let images = backend.images().unwrap();
    let (peak, done) = (Mutex::new(0), AtomicUsize::new(0));
    let folder = cache.path().join("namespaces/images/layers");
    block_on(async {
        let mut all = Vec::new();
        for image in 0..IMAGES {
            all.push(images.resolve(&name(image)).await.unwrap());
        }
        let ranks = order(&all);
        all.sort_by_key(|image| ranks[&image.name.to_string()]);
        let work = futures::stream::iter(all).map(|image| {
            let (images, backend, folder) = (&images, &backend, &folder);
            let (peak, done) = (&peak, &done);
            async move {
                let held = images.hold(&image.name).await.unwrap();
                let spec = Spec {
                    image: held.image.clone(),
                    limits: Limits::default(),
                    network: Network::None,
                    mounts: vec![Mount { host: "/usr".into(), inside: "/usr".into() }],
                    keep: false,
                    gateway: None,
                };
                let mut sandbox = backend.start(&spec).await.unwrap();
                let output = sandbox.exec(&Exec::bash("cat /own", "/")).await.unwrap();
                assert!(image.name.to_string().ends_with(&format!(":{}", output.text())), "{output:?}");
                sandbox.close().await.unwrap();
                let layers = std::fs::read_dir(folder).unwrap().map(|entry| on_disk(&entry.unwrap().path()));
                let used = images.used().unwrap().max(layers.sum());
                let mut peak = peak.lock().unwrap();
                *peak = used.max(*peak);
                assert!(used <= budget, "{used} bytes of {budget} after {done:?} images");
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
        work.buffer_unordered(JOBS).collect::<Vec<()>>().await;
    });
    let told = told.lock().unwrap();
    let count = |wanted: fn(&ImageEvent) -> bool| told.iter().filter(|event| wanted(event)).count();
    let pulled = count(|event| matches!(event, ImageEvent::Pulled { .. }));
    let dropped = count(|event| matches!(event, ImageEvent::Dropped { .. }));
    let blobs = registry.requests().iter().filter(|line| line.contains("/blobs/")).count();
    let peak = *peak.lock().unwrap();
    say(&format!(
        "{IMAGES} images, budget {budget}, peak {peak} ({} %), {dropped} dropped, {blobs} blobs",
        peak * 100 / budget
    ));
    assert_eq!((done.load(Ordering::Relaxed), pulled), (IMAGES, IMAGES));
    assert!(dropped >= IMAGES - 80, "{dropped}");
    // Each image's own layer and configuration, each family's layer about once, the two that all share once.
    assert!(blobs <= 2 * IMAGES + IMAGES / 50 + JOBS + 2, "{blobs}");
    assert!(peak > budget / 2, "{peak}");
}

#[expect(clippy::print_stderr, reason = "what a test tells a person")]
fn say(line: &str) {
    eprintln!("{line}");
}

#[test]
fn five_hundred_images_stay_within_the_budget() {
    study(24 << 10);
}

#[test]
#[ignore = "half a gigabyte of transfers: run it by name"]
fn five_hundred_images_of_a_megabyte_stay_within_the_budget() {
    study(1 << 20);
}

#[test]
fn an_image_that_can_never_fit_is_refused_before_it_is_fetched() {
    let registry = ImageRegistry::start().unwrap();
    registry
        .push("acme/big", "1", &Image::new(vec![Layer::new().file("f", &noise(1, 1 << 20), 0o644)]))
        .unwrap();
    // Small as it is sent, large as it is unpacked.
    registry
        .push("acme/bomb", "1", &Image::new(vec![Layer::new().file("f", &vec![0; 64 << 20], 0o644)]))
        .unwrap();
    let cache = tempfile::tempdir().unwrap();
    let (mut images, _) = settings(&registry);
    images.disk = Some(1 << 20);
    let images = backend("namespaces", cache.path(), images).images().unwrap();
    for (image, fetched) in [("acme/big:1", 0), ("acme/bomb:1", 1)] {
        let name = Reference::parse(image).unwrap();
        block_on(images.resolve(&name)).unwrap();
        let before = registry.requests().len();
        let error = block_on(images.hold(&name)).err().unwrap();
        assert!(matches!(error, ImageError::Budget { budget: 1_048_576, .. }), "{error}");
        assert_eq!(registry.requests().len() - before, fetched, "{image}");
        assert!(on_disk(&cache.path().join("namespaces/images")) < 2 << 20);
        assert_eq!(images.used().unwrap(), 0);
    }
}
