//! Evaluates the statistics on JSON lines, one request and one answer a line: the door through which
//! `scripts/test-peers-stats.sh` compares them with scipy and statsmodels.
//!
//! Requests: `{"op": "table", "cells": [a, b, c, d]}`, `{"op": "sample", "x": [..], "clusters": [..], "seed": 0}`,
//! `{"op": "holm", "p": [..]}`, `{"op": "ratio", "pairs": [[a, b], ..], "seed": 0}`,
//! `{"op": "reliability", "n": 4, "c": 2, "k": 1}`.

use std::io::{self, BufRead, Write};

use memtrial::stats::{self, PairedTable, Sample};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Request {
    Table { cells: [u64; 4] },
    Sample { x: Vec<f64>, clusters: Vec<String>, seed: u64 },
    Holm { p: Vec<f64> },
    Ratio { pairs: Vec<(f64, f64)>, seed: u64 },
    Reliability { n: u64, c: u64, k: u64 },
}

fn answer(request: Request) -> Value {
    match request {
        Request::Table { cells: [both, only_a, only_b, neither] } => {
            let table = PairedTable { both, only_a, only_b, neither };
            json!({
                "exact": table.mcnemar_exact(),
                "mid_p": table.mcnemar_mid_p(),
                "difference": table.difference(),
                "newcombe": table.newcombe(0.95),
                "wilson": stats::wilson(both + only_a, table.n(), 0.95),
            })
        }
        Request::Sample { x, clusters, seed } => {
            let clustered = stats::clustered(clusters.iter().map(String::as_str).zip(x.iter().copied()));
            let sample = Sample::new(x);
            let of = |f: fn(&Sample) -> Option<f64>| sample.as_ref().and_then(f);
            json!({
                "mean": of(Sample::mean),
                "se": of(Sample::standard_error),
                "ideal_bootstrap_se": of(Sample::ideal_bootstrap_se),
                "t": sample.as_ref().and_then(|s| s.t_interval(0.95)),
                "clustered_se": clustered.map(|c| c.standard_error),
                "clustered_t": clustered.map(|c| c.interval(0.95)),
                "bootstrap": sample.as_ref().and_then(|s| s.bootstrap(seed)).map(|b| b.interval(0.95)),
                "sign_flip": sample.as_ref().map(|s| s.sign_flip(seed)),
            })
        }
        Request::Holm { p } => json!(stats::holm(&p)),
        Request::Ratio { pairs, seed } => json!(stats::ratio_of_totals(&pairs, seed)),
        Request::Reliability { n, c, k } => json!([stats::pass_at_k(n, c, k), stats::pass_hat_k(n, c, k)]),
    }
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        writeln!(out, "{}", answer(serde_json::from_str(&line?)?))?;
    }
    Ok(())
}
