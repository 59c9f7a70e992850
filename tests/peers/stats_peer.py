"""Asks memtrial's statistics and their Python peers the same questions and compares the answers.

    stats_peer.py STATS_EVAL [SEED]

Deterministic quantities must agree to rounding; resampled ones to within Monte-Carlo error. Newcombe's paired interval
is in none of the Python packages: it is computed here from the published formula, with statsmodels' Wilson limits.
Exit status 1 if anything disagrees.
"""

import json
import math
import subprocess
import sys
import warnings
from itertools import product

import numpy as np
import scipy
import statsmodels
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint


class Ledger:
    """Largest disagreement per quantity, and whether it stays within its limit."""

    def __init__(self):
        self.rows = {}

    def add(self, quantity, ours, theirs, limit, unit="absolute"):
        gap = abs(ours - theirs)
        cases, worst, widest, _, failed = self.rows.get(quantity, (0, 0.0, limit, unit, 0))
        bad = not gap <= limit  # a NaN is a disagreement
        if bad and failed < 3:
            print(f"DISAGREES {quantity}: ours {ours!r}, peer {theirs!r}", file=sys.stderr)
        self.rows[quantity] = (cases + 1, max(worst, gap), max(widest, limit), unit, failed + bad)

    def report(self):
        print(f"{'quantity':<42}{'cases':>7}{'largest gap':>14}{'limit':>10}  unit")
        for quantity, (cases, worst, limit, unit, failed) in self.rows.items():
            mark = f"   {failed} FAILED" if failed else ""
            print(f"{quantity:<42}{cases:>7}{worst:>14.3g}{limit:>10.1g}  {unit}{mark}")
        return not any(row[4] for row in self.rows.values())


def ask(program, requests):
    lines = "".join(json.dumps(r) + "\n" for r in requests)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(requests), "one answer a request"
    return answers


def mid_p(b, c):
    """McNemar's two-sided mid-p by its definition: what lies further out than observed, and half of what lies level."""
    m = b + c
    if m == 0:
        return 1.0  # by convention: without a discordant pair nothing speaks against the null hypothesis
    law, distance = stats.binom.pmf(np.arange(m + 1), m, 0.5), np.abs(2 * np.arange(m + 1) - m)
    return law[distance > abs(b - c)].sum() + law[distance == abs(b - c)].sum() / 2


def newcombe(a, b, c, d):
    """Square-and-add interval for paired proportions with corrected phi (Newcombe 1998, method 10)."""
    n = a + b + c + d
    limits = [proportion_confint(x, n, method="wilson") for x in (a + b, a + c)]
    rates = [(a + b) / n, (a + c) / n]
    down = [rates[i] - limits[i][0] for i in (0, 1)]
    up = [limits[i][1] - rates[i] for i in (0, 1)]
    margins = math.sqrt((a + b) * (c + d) * (a + c) * (b + d))
    det = a * d - b * c
    if det > 0:
        det = max(0.0, det - n / 2)
    phi = det / margins if margins else 0.0
    gap = rates[0] - rates[1]
    return (
        gap - math.sqrt(max(0.0, down[0] ** 2 - 2 * phi * down[0] * up[1] + up[1] ** 2)),
        gap + math.sqrt(max(0.0, up[0] ** 2 - 2 * phi * up[0] * down[1] + down[1] ** 2)),
    )


def tables(program, ledger, rng):
    cells = [[int(x) for x in rng.integers(0, 1 + 10 ** rng.uniform(0, 2.6), 4)] for _ in range(2000)]
    cells = [c for c in cells if sum(c)] + [[0, 0, 0, 10], [10, 0, 0, 0], [0, 5, 0, 5], [0, 7, 0, 0], [3, 0, 900, 4]]
    for (a, b, c, d), ours in zip(cells, ask(program, [{"op": "table", "cells": t} for t in cells])):
        ledger.add("McNemar exact (statsmodels)", ours["exact"], mcnemar([[a, b], [c, d]], exact=True).pvalue, 1e-12)
        ledger.add("McNemar mid-p (formula, scipy binom)", ours["mid_p"], mid_p(b, c), 1e-12)
        for end, peer in zip(("low", "high"), newcombe(a, b, c, d)):
            ledger.add("Newcombe paired 95 % (formula)", ours["newcombe"][end], peer, 1e-9)
        for end, peer in zip(("low", "high"), proportion_confint(a + b, a + b + c + d, method="wilson")):
            ledger.add("Wilson 95 % (statsmodels)", ours["wilson"][end], peer, 1e-10)


def draw_sample(rng, largest):
    n, runs = int(rng.integers(4, largest)), int(rng.integers(1, 5))
    x = rng.integers(0, runs + 1, n) / runs - rng.integers(0, runs + 1, n) / runs
    clusters = [f"r{i}" for i in rng.integers(0, max(2, n // 4), n)]
    return x, clusters


def samples(program, ledger, rng):
    data = [draw_sample(rng, 120) for _ in range(300)]
    data = [(x, g) for x, g in data if len(set(g)) > 1 and x.std() > 0]
    requests = [{"op": "sample", "x": list(x), "clusters": g, "seed": i} for i, (x, g) in enumerate(data)]
    for (x, groups), ours in zip(data, ask(program, requests)):
        n = len(x)
        ledger.add("standard error (scipy sem)", ours["se"], stats.sem(x), 1e-14)
        low, high = stats.t.interval(0.95, n - 1, loc=x.mean(), scale=stats.sem(x))
        ledger.add("t interval (scipy)", ours["t"]["low"], low, 1e-9)
        ledger.add("t interval (scipy)", ours["t"]["high"], high, 1e-9)

        # statsmodels' small-sample factor is C/(C-1) * (n-1)/(n-k) with k = 1 here, that is C/(C-1): ours.
        codes = np.unique(groups, return_inverse=True)[1]
        fit = sm.OLS(x, np.ones(n)).fit(cov_type="cluster", cov_kwds={"groups": codes, "use_correction": True}, use_t=True)
        ledger.add("clustered SE (statsmodels OLS)", ours["clustered_se"], fit.bse[0], 1e-13)
        for end, peer in zip(("low", "high"), fit.conf_int()[0]):
            ledger.add("clustered t interval (statsmodels OLS)", ours["clustered_t"][end], peer, 1e-8)

    # Resampled quantities: gaps are in units of the ideal bootstrap standard error. The 2.5 % point of 10,000
    # resamples has a Monte-Carlo deviation of about 0.027 of them; means move in steps, hence the wider limit.
    for (x, _), ours in list(zip(data, ask(program, requests)))[:60]:
        if len(x) < 10:
            continue
        peer = stats.bootstrap((x,), np.mean, n_resamples=10000, method="percentile", random_state=rng, vectorized=True)
        unit, step = x.std() / math.sqrt(len(x)), np.unique(np.abs(x[x != 0])).min() / len(x)
        limit = 0.15 + step / unit
        for end, theirs in zip(("low", "high"), peer.confidence_interval):
            ledger.add("bootstrap interval (scipy)", ours["bootstrap"][end] / unit, theirs / unit, limit, "SE")
        ledger.add("bootstrap SE, ideal (scipy)", ours["ideal_bootstrap_se"] / peer.standard_error, 1.0, 0.04, "ratio")


def sign_flips(program, ledger, rng):
    data = [draw_sample(rng, 16)[0] for _ in range(150)]
    requests = [{"op": "sample", "x": list(x), "clusters": ["r"] * len(x), "seed": 1} for x in data]
    for x, ours in zip(data, ask(program, requests)):
        # The peers get whole twelfths: in thirds, scipy takes sums that differ in the last bit for different.
        x = np.rint(12 * x)
        peer = stats.permutation_test((x,), np.sum, permutation_type="samples", n_resamples=np.inf) if x.any() else None
        # scipy doubles the smaller tail; the distribution is symmetric, so that is the two-sided share of |sums|,
        # except where the observed sum is 0 (then capped at 1).
        if peer is not None:
            ledger.add("sign-flip, exact (scipy permutation)", ours["sign_flip"]["p"], min(1.0, peer.pvalue), 1e-12)
        signs = np.array(list(product((1, -1), repeat=int(np.count_nonzero(x)))))
        sums = np.abs(signs @ np.abs(x[x != 0])) if x.any() else np.zeros(1)
        share = np.mean(sums >= abs(x.sum()) - 1e-9)
        ledger.add("sign-flip, exact (enumerated)", ours["sign_flip"]["p"], share, 1e-12)

    data = [draw_sample(rng, 120)[0] for _ in range(60)]
    requests = [{"op": "sample", "x": list(x), "clusters": ["r"] * len(x), "seed": 1} for x in data]
    for x, ours in zip(data, ask(program, requests)):
        if ours["sign_flip"]["exact"]:
            continue
        flips = rng.choice((-1, 1), (100_000, len(x)))
        p = (np.count_nonzero(np.abs(flips @ x) >= abs(x.sum()) - 1e-9) + 1) / 100_001
        deviation = math.sqrt(2 * max(p * (1 - p), 1e-5) / 100_000)
        ledger.add("sign-flip, random (numpy)", ours["sign_flip"]["p"] / deviation, p / deviation, 5, "SD")


def others(program, ledger, rng):
    vectors = [list(rng.uniform(0, 1, int(rng.integers(1, 20))) ** 3) for _ in range(500)]
    for p, ours in zip(vectors, ask(program, [{"op": "holm", "p": p} for p in vectors])):
        for mine, peer in zip(ours, multipletests(p, method="holm")[1]):
            ledger.add("Holm (statsmodels)", mine, peer, 1e-14)

    pairs = [rng.lognormal(8, 1, (int(rng.integers(10, 100)), 2)) for _ in range(40)]
    requests = [{"op": "ratio", "pairs": p.tolist(), "seed": 3} for p in pairs]
    for p, ours in zip(pairs, ask(program, requests)):
        ratio = lambda a, b, axis=-1: np.sum(a, axis=axis) / np.sum(b, axis=axis)
        peer = stats.bootstrap((p[:, 0], p[:, 1]), ratio, paired=True, n_resamples=10000, method="percentile", random_state=rng)
        ledger.add("ratio of totals (numpy)", ours["ratio"], ratio(p[:, 0], p[:, 1]), 1e-12)
        for end, theirs in zip(("low", "high"), peer.confidence_interval):
            unit = peer.standard_error
            ledger.add("ratio interval (scipy bootstrap)", ours["interval"][end] / unit, theirs / unit, 0.3, "SE")

    triples = [(n, c, k) for n in range(1, 13) for c in range(n + 1) for k in range(1, n + 1)]
    requests = [{"op": "reliability", "n": n, "c": c, "k": k} for n, c, k in triples]
    for (n, c, k), (any_of, all_of) in zip(triples, ask(program, requests)):
        ledger.add("pass@k (math.comb)", any_of, 1 - math.comb(n - c, k) / math.comb(n, k), 1e-14)
        ledger.add("pass^k (scipy hypergeom)", all_of, stats.hypergeom.pmf(k, n, c, k), 1e-12)


def main():
    program, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    warnings.simplefilter("ignore")
    ledger, rng = Ledger(), np.random.default_rng(seed)
    print(f"scipy {scipy.__version__}, statsmodels {statsmodels.__version__}, numpy {np.__version__}, seed {seed}")
    for part in (tables, samples, sign_flips, others):
        part(program, ledger, rng)
    sys.exit(0 if ledger.report() else 1)


if __name__ == "__main__":
    main()
