//! Where a run's moments come from.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Where moments come from.
pub trait Clock: Send + Sync {
    /// Unix time in seconds; never goes back.
    fn unix(&self) -> f64;
}

/// The machine's clock, read once and then carried on by its monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    unix: f64,
    since: Instant,
}

impl SystemClock {
    /// A clock from now on.
    pub fn start() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        Self { unix, since: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn unix(&self) -> f64 {
        self.unix + self.since.elapsed().as_secs_f64()
    }
}
