//! How many requests an endpoint bears at once, learnt from what it says.
//!
//! Every address has one gate, which all clients of that address share. A reply widens it slowly, "too many requests"
//! halves it, and `Retry-After` closes it for everybody: one caller's rejection spares the others theirs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Bounds the requests under way at each address, over all solvers that share it.
#[derive(Debug, Default)]
pub struct Limiter(Mutex<BTreeMap<String, Arc<Gate>>>);

impl Limiter {
    /// The gate of this address, which holds no secrets. Where several solvers share an address, the first one's
    /// `most` holds.
    pub(super) fn gate(&self, address: &str, most: usize) -> Arc<Gate> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(address.to_owned()).or_insert_with(|| Arc::new(Gate::new(most))).clone()
    }
}

/// The gate of one address.
#[derive(Debug)]
pub(super) struct Gate {
    most: f64,
    state: Mutex<State>,
    /// Those who wait stand in a row; the first alone listens to `changed`.
    row: tokio::sync::Mutex<()>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    /// Requests that may be under way; 1 or more.
    width: f64,
    under_way: usize,
    closed_until: Option<Instant>,
    last_cut: Option<Instant>,
}

/// The right to have one request under way, until it is dropped.
#[derive(Debug)]
pub(super) struct Pass {
    gate: Arc<Gate>,
    begun: Instant,
}

impl Gate {
    fn new(most: usize) -> Self {
        let most = most.max(1) as f64;
        let state = State { width: most, under_way: 0, closed_until: None, last_cut: None };
        Self { most, state: Mutex::new(state), row: tokio::sync::Mutex::new(()), changed: Notify::new() }
    }

    /// Waits for the right to send a request, first come first served.
    pub async fn enter(self: &Arc<Self>) -> Pass {
        let _first = self.row.lock().await;
        loop {
            let closed = match self.try_enter() {
                Ok(pass) => return pass,
                Err(closed) => closed,
            };
            match closed {
                Some(until) => tokio::time::sleep_until(until).await,
                None => self.changed.notified().await,
            }
        }
    }

    /// A pass, or how long the gate is closed (`None`: until something changes).
    fn try_enter(self: &Arc<Self>) -> Result<Pass, Option<Instant>> {
        let mut state = self.lock();
        let now = Instant::now();
        if let Some(until) = state.closed_until.filter(|until| *until > now) {
            return Err(Some(until));
        }
        if state.under_way >= state.width as usize {
            return Err(None);
        }
        state.under_way += 1;
        Ok(Pass { gate: self.clone(), begun: now })
    }

    /// How many requests may be under way by now; a part of one counts for later.
    #[cfg(test)]
    pub fn width(&self) -> f64 {
        self.lock().width
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass {
    /// The endpoint bore the request: one more after a whole round of them.
    pub fn borne(&self) {
        let mut state = self.gate.lock();
        state.width = (state.width + 1.0 / state.width).min(self.gate.most);
    }

    /// The endpoint said that it was too much, and perhaps for how long it wants none. The requests of one burst halve
    /// the width once.
    pub fn too_much(&self, wait: Option<Duration>) {
        let mut state = self.gate.lock();
        let now = Instant::now();
        if state.last_cut.is_none_or(|cut| self.begun > cut) {
            state.width = (state.width / 2.0).max(1.0);
            state.last_cut = Some(now);
        }
        if let Some(until) = wait.and_then(|wait| now.checked_add(wait)) {
            state.closed_until = state.closed_until.max(Some(until));
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.gate.lock().under_way -= 1;
        self.gate.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn enters(gate: &Arc<Gate>) -> bool {
        tokio::time::timeout(Duration::from_millis(1), gate.enter()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_rejections_halves_the_width_once_and_replies_widen_it_again() {
        let gate = Arc::new(Gate::new(8));
        let passes = futures::future::join_all((0..8).map(|_| gate.enter())).await;
        assert!(!enters(&gate).await, "a ninth got in");
        tokio::time::advance(SECOND).await;
        passes.iter().for_each(|pass| pass.too_much(None));
        drop(passes);
        assert_eq!(gate.width(), 4.0);
        tokio::time::advance(SECOND).await;
        let later = gate.enter().await;
        later.too_much(None);
        assert_eq!(gate.width(), 2.0);
        for _ in 0..100 {
            later.borne();
        }
        assert_eq!(gate.width(), 8.0, "no wider than it was allowed");
    }

    #[tokio::test(start_paused = true)]
    async fn one_callers_wait_is_everybodys() {
        let gate = Arc::new(Gate::new(4));
        let pass = gate.enter().await;
        pass.too_much(Some(10 * SECOND));
        pass.too_much(Some(3 * SECOND));
        drop(pass);
        assert!(!enters(&gate).await);
        tokio::time::advance(9 * SECOND).await;
        assert!(!enters(&gate).await);
        tokio::time::advance(SECOND).await;
        assert!(enters(&gate).await);
    }

    #[tokio::test(start_paused = true)]
    async fn the_width_never_falls_below_one_and_nobody_is_forgotten() {
        let gate = Arc::new(Gate::new(3));
        for _ in 0..5 {
            let pass = gate.enter().await;
            tokio::time::advance(SECOND).await;
            pass.too_much(None);
        }
        assert_eq!(gate.width(), 1.0);
        let work = (0..50).map(|_| async {
            let _pass = gate.enter().await;
            tokio::task::yield_now().await;
        });
        futures::future::join_all(work).await;
        assert_eq!(gate.lock().under_way, 0);
    }

    #[tokio::test]
    async fn addresses_have_gates_of_their_own() {
        let limiter = Limiter::default();
        let (one, other) = (limiter.gate("http://a/v1", 1), limiter.gate("http://b/v1", 1));
        let _pass = one.enter().await;
        assert!(enters(&other).await && !enters(&limiter.gate("http://a/v1", 9)).await);
    }
}
