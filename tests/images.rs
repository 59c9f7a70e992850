//! Published images from a registry on this machine: three shapes of them graded, what a registry does wrong, the budget.

mod budget;
mod faults;
mod shapes;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use memtrial::sandbox::images::{ImageEvent, ImageSettings, Patience};
use memtrial::sandbox::{self, Backend};
use memtrial_testkit::ImageRegistry;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future)
}

/// What was told of images.
type Told = Arc<Mutex<Vec<ImageEvent>>>;

/// Settings that ask `registry` in Docker Hub's place, without patience.
fn settings(registry: &ImageRegistry) -> (ImageSettings, Told) {
    let told = Told::default();
    let heard = told.clone();
    let settings = ImageSettings {
        mirror: Some(registry.host()),
        patience: Patience {
            tries: 3,
            first: Duration::from_millis(5),
            longest: Duration::from_millis(40),
            deadline: Duration::from_secs(60),
        },
        on_event: Arc::new(move |event| heard.lock().unwrap().push(event.clone())),
        ..ImageSettings::default()
    };
    (settings, told)
}

fn backend(name: &str, cache: &Path, images: ImageSettings) -> Arc<dyn Backend> {
    let settings = sandbox::Settings { images, ..sandbox::Settings::new(cache.to_owned()) };
    sandbox::open(name, &settings).unwrap()
}

/// The back ends that can be tried here.
fn backends() -> Vec<&'static str> {
    match std::env::var_os("MEMTRIAL_DOCKER_IMAGE") {
        Some(_) => vec!["namespaces", "docker"],
        None => vec!["namespaces"],
    }
}
