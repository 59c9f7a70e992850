//! What registries do wrong, and how it is told.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use memtrial::sandbox::images::{ImageError, ImageEvent, Images, Login, Reference};
use memtrial_testkit::image::{Image, Layer, host_programs};
use memtrial_testkit::{Fault, ImageRegistry};

use super::{backend, backends, block_on, settings};
use crate::memtrial;

fn small() -> Image {
    Image::new(vec![host_programs(), Layer::new().file("data", &[7; 300_000], 0o644)])
}

fn named(text: &str) -> Reference {
    Reference::parse(text).unwrap()
}

fn images(name: &str, cache: &Path, registry: &ImageRegistry) -> (Arc<Images>, super::Told) {
    let (settings, told) = settings(registry);
    (backend(name, cache, settings).images().unwrap(), told)
}

#[test]
fn faults_that_pass_cost_time_alone() {
    let limit = |retry_after| Fault::Status { code: 429, retry_after };
    let broken = Fault::Status { code: 500, retry_after: None };
    for name in backends() {
        let registry = ImageRegistry::start().unwrap();
        registry.push("acme/widget", "1", &small()).unwrap();
        registry.fail("/manifests/", [limit(Some(1)), limit(None), broken.clone()]);
        registry.fail("/blobs/", [broken.clone(), limit(Some(0)), Fault::Broken(100)]);
        let cache = tempfile::tempdir().unwrap();
        let (images, told) = images(name, cache.path(), &registry);
        block_on(images.hold(&named("acme/widget:1"))).unwrap();
        let told = told.lock().unwrap();
        let asked_for = |event: &&ImageEvent| {
            matches!(event, ImageEvent::Waiting { wait, reason, .. }
                if *wait == Duration::from_secs(1) && reason.contains("429"))
        };
        assert_eq!(told.iter().filter(asked_for).count(), 1, "Retry-After is honoured: {told:?}");
        assert!(matches!(told.last(), Some(ImageEvent::Pulled { .. })), "{told:?}");
    }
}

#[test]
fn a_broken_transfer_is_taken_up_where_it_broke() {
    let registry = ImageRegistry::start().unwrap();
    let noise = super::budget::noise(1, 200_000);
    registry.push("acme/widget", "1", &Image::new(vec![Layer::new().file("data", &noise, 0o644)])).unwrap();
    let cache = tempfile::tempdir().unwrap();
    let (images, _) = images("namespaces", cache.path(), &registry);
    // The configuration is a blob, too, and is fetched first.
    block_on(images.resolve(&named("acme/widget:1"))).unwrap();
    registry.fail(
        "/blobs/",
        [Fault::Broken(50_000), Fault::Broken(50_000), Fault::Broken(50_000), Fault::Garbage],
    );
    let error = block_on(images.hold(&named("acme/widget:1"))).err();
    // What came last was garbage: the digest says so, and the layer is fetched again as a whole.
    assert!(error.is_none(), "{error:?}");
    assert_eq!(
        registry.requests().iter().filter(|line| line.starts_with("GET /v2/acme/widget/blobs")).count(),
        6
    );
}

#[test]
fn what_does_not_pass_is_named_and_leaves_nothing() {
    for name in backends() {
        let registry = ImageRegistry::start().unwrap();
        // an engine asks for no layer that it has: this one is nobody else's
        let own = format!("{:?}", std::time::SystemTime::now());
        let own = Image::new(vec![Layer::new().file("own", own.as_bytes(), 0o644)]);
        registry.push("acme/widget", "1", &own).unwrap();
        let cache = tempfile::tempdir().unwrap();
        let (images, _) = images(name, cache.path(), &registry);
        let error = block_on(images.hold(&named("acme/widget:2"))).err().unwrap();
        assert!(matches!(&error, ImageError::Missing { .. }), "{error}");
        assert!(error.to_string().contains("docker.io/acme/widget:2 is missing"), "{error}");
        block_on(images.resolve(&named("acme/widget:1"))).unwrap();
        registry.fail("/blobs/", std::iter::repeat_n(Fault::Garbage, 40));
        let error = block_on(images.hold(&named("acme/widget:1"))).err().unwrap();
        assert!(matches!(error, ImageError::Corrupt { .. } | ImageError::Registry { .. }), "{error}");
        assert_eq!((images.list().unwrap().len(), images.used().unwrap()), (0, 0));
        assert!(std::fs::read_dir(cache.path().join("namespaces/images/layers")).is_err(), "a layer is left");
    }
}

#[test]
fn a_rate_limit_beyond_the_deadline_is_told() {
    let registry = ImageRegistry::start().unwrap();
    registry.push("acme/widget", "1", &small()).unwrap();
    registry.fail("/manifests/", [Fault::Status { code: 429, retry_after: Some(86_400) }]);
    let cache = tempfile::tempdir().unwrap();
    let (images, _) = images("namespaces", cache.path(), &registry);
    let error = block_on(images.resolve(&named("acme/widget:1"))).unwrap_err();
    assert!(matches!(error, ImageError::RateLimited { .. }), "{error}");
    assert!(
        error.to_string().contains("429 Too Many Requests") && error.to_string().contains("--registry"),
        "{error}"
    );
}

#[test]
fn a_hostile_layer_is_refused_with_its_digest() {
    let registry = ImageRegistry::start().unwrap();
    let hostile = Image::new(vec![Layer::new().file("../../../../etc/owned", b"1", 0o644)]);
    registry.push("acme/evil", "1", &hostile).unwrap();
    let cache = tempfile::tempdir().unwrap();
    let (images, _) = images("namespaces", cache.path(), &registry);
    let error = block_on(images.hold(&named("acme/evil:1"))).err().unwrap();
    assert!(matches!(error, ImageError::Layer { .. }), "{error}");
    assert!(error.to_string().contains("it leads out of the layer"), "{error}");
}

#[test]
fn a_login_gets_a_token_and_is_never_told() {
    let registry = ImageRegistry::start().unwrap();
    registry.push("acme/widget", "1", &small()).unwrap();
    // base64 of user:hunter2-canary
    registry.ask_for_token("Basic dXNlcjpodW50ZXIyLWNhbmFyeQ==");
    let cache = tempfile::tempdir().unwrap();
    let (nobody, _) = images("namespaces", cache.path(), &registry);
    let error = block_on(nobody.resolve(&named("acme/widget:1"))).unwrap_err();
    assert!(matches!(error, ImageError::Denied { .. }), "{error}");
    let (mut settings, told) = settings(&registry);
    settings.logins = Arc::new(|host| {
        host.starts_with("127.").then(|| Login { user: "user".into(), password: "hunter2-canary".into() })
    });
    let somebody = backend("namespaces", cache.path(), settings.clone()).images().unwrap();
    block_on(somebody.hold(&named("acme/widget:1"))).unwrap();
    let error = block_on(somebody.resolve(&named("acme/widget:2"))).unwrap_err();
    assert!(!format!("{error:?} {settings:?} {:?}", told.lock().unwrap()).contains("canary"));
}

#[test]
fn another_machines_image_is_refused_early_with_a_clear_word() {
    let registry = ImageRegistry::start().unwrap();
    let foreign = if cfg!(target_arch = "x86_64") { "arm64" } else { "amd64" };
    let image = Image { architecture: foreign.into(), ..small() };
    let digest = registry.push("swebench/arm", "1", &image).unwrap();
    registry.push_index("swebench/both", "1", &[(foreign, &digest)]);
    let folder = tempfile::tempdir().unwrap();
    for name in ["swebench/arm:1", "swebench/both:1"] {
        let args = ["image", "pull", "--name", name, "--cache", "cache", "--registry", &registry.host()];
        let (code, out, err) = memtrial(folder.path(), &args);
        assert_eq!((code, out.as_str()), (4, ""), "{err}");
        assert!(err.contains(&format!("it is for linux/{foreign}")), "{err}");
    }
    assert!(
        registry.requests().iter().all(|line| !line.contains("/blobs/") || line.contains(&config_of(&image)))
    );
}

/// Only the small configuration may have been fetched.
fn config_of(image: &Image) -> String {
    memtrial_testkit::image::digest(&image.config().unwrap())
}

#[test]
fn tags_that_move_are_followed_and_digests_are_not_asked_for_twice() {
    let registry = ImageRegistry::start().unwrap();
    let first = registry.push("acme/widget", "1", &small()).unwrap();
    let cache = tempfile::tempdir().unwrap();
    let hold = |name: &str| {
        let (images, _) = images("namespaces", cache.path(), &registry);
        block_on(images.hold(&named(name))).unwrap().resolved.digest.clone()
    };
    assert_eq!(hold("acme/widget:1"), first);
    let before = registry.requests().len();
    assert_eq!(hold("acme/widget:1"), first);
    assert_eq!(registry.requests().split_off(before), ["HEAD /v2/acme/widget/manifests/1"]);
    let second = registry.push("acme/widget", "1", &Image::new(vec![host_programs()])).unwrap();
    assert_ne!(first, second);
    assert_eq!(hold("acme/widget:1"), second);
    let before = registry.requests().len();
    assert_eq!(hold(&format!("acme/widget@{first}")), first);
    assert_eq!(registry.requests().split_off(before), Vec::<String>::new());
}
