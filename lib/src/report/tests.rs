//! The report of small studies, as read by people, and the laws that it obeys.

use proptest::prelude::*;

use super::fixtures::{demo, facts, trial, trials};
use super::*;
use crate::audit::memory::{LeakFinding, LeakKind, LeakScan, LeakVerdict};
use crate::grade::VerdictClass;

fn build(facts: StudyFacts, trials: &[TrialRecord]) -> Report {
    Report::build(facts, trials).unwrap()
}

fn conclusion(replicates: u32, rows: &[(&str, &str, &str)]) -> String {
    let report = build(facts(&["m"], replicates, rows.len()), &trials("m", rows));
    report.conclusions.join("\n")
}

#[test]
fn the_whole_text_of_a_study() {
    let (facts, trials) = demo();
    insta::assert_snapshot!(build(facts, &trials).text(), @r"
    demo
    14 targets (2 excluded) x 2 conditions x 1 solver x 2 replicates: 48 of 48 trials finished
    lock sha256:0123456789ab seed 7

    NOTE  planted demonstration: the solver is a fake model that reads planted needles

    CONCLUSIONS
    - bm25 against off, reader: helped, +54.2 pp [+25.0, +79.2], p = 0.012, over 12 targets: 9 gains, 1
      harm. With 3 repositories as clusters the interval is [-11.1, +100.0] and does not exclude 0.

    RESOLVED, mean over targets
    condition  solver  targets  trials  missing  resolved %  95 % interval  pass@2  pass^2
    off        reader       12   24/24        0        25.0    [4.2, 50.0]    33.3    16.7
    bm25       reader       12   24/24        1        79.2   [58.3, 95.8]    90.9    63.6
      bm25 reader: with the missing trials between [75.0, 79.2] %

    DIFFERENCE FROM off, percentage points
    condition  solver   n   diff   95 % interval    SE      p  Holm p  gain  harm   MDE
    bm25       reader  12  +54.2  [+25.0, +79.2]  14.4  0.012   0.012     9     1  40.3

    ROBUSTNESS, percentage points
    condition  solver  repos    by repository   90 % interval  within ±3.0      worst case
    bm25       reader      3  [-11.1, +100.0]  [+33.3, +75.0]           no  [+50.0, +54.2]

    FLIPS (rate in the baseline > rate in the condition, where not 0 and 1)
    bm25 reader
      gains  acme__widget-12 (0>0.5), acme__widget-7, acme__widget-8, acme__widget-9 (0.5>1),
             beta__gadget-2, beta__gadget-5 (0.5>1), zeta__tool-1, zeta__tool-2, zeta__tool-5 (0>0.5)
      harms  beta__gadget-11 (1>0.5)

    HEADROOM, mean difference by the baseline's rate
    condition  solver  never: n   diff  sometimes: n   diff  always: n   diff
    bm25       reader         8  +75.0             2  +50.0          2  -25.0

    COST PER TRIAL
    condition  solver  tokens  memory  steps  seconds    list $  tokens/resolved  $/resolved
    off        reader   11.2k       0     10     35.5    $0.011            44.7k      $0.043
    bm25       reader   10.2k     400      8     35.5  $0.00967            13.6k      $0.013
    whole study: 52 trials, 565.2k tokens, list $0.529, paid unknown

    COST AS A RATIO TO off
    condition  solver  measure             ratio  95 % interval
    bm25       reader  solver tokens        0.91   [0.91, 0.91]
    bm25       reader  tokens with memory   0.95   [0.95, 0.95]
    bm25       reader  steps                0.80   [0.80, 0.80]
    bm25       reader  list price           0.91   [0.90, 0.91]
    bm25       reader  seconds              1.00   [1.00, 1.00]

    VERDICTS
    off reader: resolved 6, unresolved 18
    bm25 reader: resolved 18, unresolved 5, infrastructure 1

    MEMORY
    bm25 reader: delivered in 24 of 24 trials, 8400 tokens injected, 3 eligible runs a trial

    EXCLUDED TARGETS
    - zeta__tool-3: gold fails 3 of 3 runs
    - zeta__tool-6: gold-fails: because

    CHRONOLOGY
    - acme__widget-9 was merged before acme__widget-8

    CAVEATS
    - 1 trial failed by infrastructure and stayed missing: such pairs are left out, and worst-case
      bounds are given.
    - 2 targets left every arm because no fair verdict is possible there.
    - Number order and merge order disagree in 1 case (listed under chronology).
    - Headroom is defined by the same baseline runs that are compared: by chance alone, targets that the
      baseline never resolved can only rise and those that it always resolved can only fall.
    ");
}

#[test]
fn the_text_of_one_replicate_and_two_solvers() {
    let rows = [
        ("a__b-1", "-", "+"),
        ("a__b-2", "-", "+"),
        ("a__b-3", "+", "+"),
        ("c__d-1", "+", "-"),
        ("c__d-2", "-", "+"),
        ("c__d-3", "-", "?"),
        ("c__d-4", "+", "+"),
    ];
    let mut all = trials("big", &rows);
    all.extend(trials("small", &rows[..4]));
    insta::assert_snapshot!(build(facts(&["big", "small"], 1, 7), &all).text(), @r"
    demo
    7 targets x 2 conditions x 2 solvers x 1 replicate: 22 of 28 trials finished
    lock sha256:0123456789ab seed 7

    CONCLUSIONS
    - bm25 against off, big: no effect could be shown, +33.3 pp [-33.3, +83.3], p = 0.625, over 6
      targets: 3 gains, 1 harm. An effect smaller than 100.0 pp could not have been seen (80 % power).
    - bm25 against off, small: no effect could be shown, +25.0 pp [-50.0, +100.0], p = 1.000, over 4
      targets: 2 gains, 1 harm. With 4 targets none could be: at least 6 must move the same way.
    - bm25 against off, all solvers: no effect could be shown, +33.3 pp [-33.3, +83.3], p = 0.625, over
      6 targets: 3 gains, 1 harm. An effect smaller than 93.4 pp could not have been seen (80 % power).

    RESOLVED, mean over targets
    condition  solver  targets  trials  missing  resolved %  95 % interval
    off        big           7     7/7        0        42.9   [15.8, 75.0]
    off        small         4     4/7        0        50.0   [15.0, 85.0]
    bm25       big           6     7/7        1        83.3   [43.6, 97.0]
    bm25       small         4     4/7        0        75.0   [30.1, 95.4]
      bm25 big: with the missing trials between [71.4, 85.7] %

    DIFFERENCE FROM off, percentage points
    condition  solver  n   diff    95 % interval    SE      p  Holm p  gain  harm    MDE
    bm25       big     6  +33.3   [-33.3, +83.3]  33.3  0.625   1.000     3     1  100.0
    bm25       small   4  +25.0  [-50.0, +100.0]  47.9  1.000   1.000     2     1      -
    bm25       all     6  +33.3   [-33.3, +83.3]  33.3  0.625   0.625     3     1   93.4

    ROBUSTNESS, percentage points
    condition  solver  repos     by repository    90 % interval  within ±3.0      worst case
    bm25       big         2  [-100.0, +100.0]   [-16.7, +83.3]           no  [+28.6, +42.9]
    bm25       small       2  [-100.0, +100.0]  [-50.0, +100.0]           no               -
    bm25       all         2  [-100.0, +100.0]   [-16.7, +83.3]           no  [+28.6, +42.9]

    ONE REPLICATE: paired tests
    condition  solver  both  cond. only  base only  neither  exact p  mid-p   Newcombe 95 %
    bm25       big        2           3          1        0    0.625  0.375  [-27.2, +72.6]
    bm25       small      1           2          1        0    1.000  0.625  [-46.1, +74.7]

    FLIPS (rate in the baseline > rate in the condition, where not 0 and 1)
    bm25 big
      gains  a__b-1, a__b-2, c__d-2
      harms  c__d-1
    bm25 small
      gains  a__b-1, a__b-2
      harms  c__d-1
    bm25 all
      gains  a__b-1, a__b-2, c__d-2
      harms  c__d-1

    HEADROOM, mean difference by the baseline's rate
    condition  solver  never: n    diff  sometimes: n  diff  always: n   diff
    bm25       big            3  +100.0             0     -          3  -33.3
    bm25       small          2  +100.0             0     -          2  -50.0
    bm25       all            3  +100.0             0     -          3  -33.3

    COST PER TRIAL
    condition  solver  tokens  memory  steps  seconds    list $  tokens/resolved  $/resolved
    off        big      10.7k       0     10     35.5    $0.010            25.0k      $0.024
    off        small    10.7k       0     10     35.5    $0.010            21.4k      $0.020
    bm25       big       9729     400      8     35.5  $0.00923            13.6k      $0.013
    bm25       small     9675     400      8     35.5  $0.00917            12.9k      $0.012
    whole study: 22 trials, 229.0k tokens, list $0.214, paid unknown

    COST AS A RATIO TO off
    condition  solver  measure             ratio  95 % interval
    bm25       big     solver tokens        0.91   [0.91, 0.91]
    bm25       big     tokens with memory   0.94   [0.94, 0.94]
    bm25       big     steps                0.80   [0.80, 0.80]
    bm25       big     list price           0.90   [0.90, 0.90]
    bm25       big     seconds              1.00   [1.00, 1.00]
    bm25       small   solver tokens        0.91   [0.91, 0.91]
    bm25       small   tokens with memory   0.94   [0.94, 0.94]
    bm25       small   steps                0.80   [0.80, 0.80]
    bm25       small   list price           0.90   [0.90, 0.90]
    bm25       small   seconds              1.00   [1.00, 1.00]
    bm25       all     solver tokens        0.91   [0.91, 0.91]
    bm25       all     tokens with memory   0.94   [0.94, 0.94]
    bm25       all     steps                0.80   [0.80, 0.80]
    bm25       all     list price           0.90   [0.90, 0.90]
    bm25       all     seconds              1.00   [1.00, 1.00]

    VERDICTS
    off big: resolved 3, unresolved 4
    off small: resolved 2, unresolved 2
    bm25 big: resolved 5, unresolved 1, infrastructure 1
    bm25 small: resolved 3, unresolved 1

    MEMORY
    bm25 big: delivered in 7 of 7 trials, 2450 tokens injected, 3 eligible runs a trial
    bm25 small: delivered in 4 of 4 trials, 1400 tokens injected, 3 eligible runs a trial

    CAVEATS
    - This study is not finished: 22 of 28 trials are. Figures will change.
    - 1 trial failed by infrastructure and stayed missing: such pairs are left out, and worst-case
      bounds are given.
    - Headroom is defined by the same baseline runs that are compared: by chance alone, targets that the
      baseline never resolved can only rise and those that it always resolved can only fall.
    ");
}

#[test]
fn a_study_without_trials_says_so() {
    insta::assert_snapshot!(build(facts(&["m"], 2, 5), &[]).text(), @r"
    demo
    5 targets x 2 conditions x 1 solver x 2 replicates: 0 of 20 trials finished
    lock sha256:0123456789ab seed 7

    CONCLUSIONS
    - bm25 against off, m: no data: no target has a verdict in both arms.

    RESOLVED, mean over targets
    condition  solver  targets  trials  missing  resolved %  95 % interval  pass@2  pass^2
    off        m             0    0/10        0           -              -       -       -
    bm25       m             0    0/10        0           -              -       -       -

    DIFFERENCE FROM off, percentage points
    condition  solver  n  diff  95 % interval  SE  p  Holm p  gain  harm  MDE
    bm25       m       0     -              -   -  -       -     0     0    -

    CAVEATS
    - No trial has finished yet.
    ");
}

#[test]
fn claims_never_exceed_their_interval() {
    let names: Vec<String> = (1..=12).map(|n| format!("a__b-{n}")).collect();
    let rows = |off: &'static str, on: &'static str, n: usize| -> Vec<(&str, &str, &str)> {
        names[..n].iter().map(|id| (id.as_str(), off, on)).collect()
    };
    // One target, whatever it did, shows nothing.
    insta::assert_snapshot!(conclusion(1, &rows("-", "+", 1)), @r"bm25 against off, m: no effect could be shown, +100.0 pp [-90.0, +100.0], p = 1.000, over 1 target: 1 gain, 0 harms. With 1 target none could be: at least 6 must move the same way.");
    // All alike: resampling shows no spread, the exact bound does.
    insta::assert_snapshot!(conclusion(1, &rows("+", "+", 12)), @r"bm25 against off, m: no effect could be shown, +0.0 pp [-22.1, +22.1], p = 1.000, over 12 targets: 0 gains, 0 harms. An effect smaller than 50.0 pp could not have been seen (80 % power).");
    // Five gains of five: no exact test reaches 5 %.
    insta::assert_snapshot!(conclusion(1, &rows("-", "+", 5)), @r"bm25 against off, m: no effect could be shown, +100.0 pp [+9.9, +100.0], p = 0.062, over 5 targets: 5 gains, 0 harms. With 5 targets none could be: at least 6 must move the same way.");
    // Twelve of twelve do.
    insta::assert_snapshot!(conclusion(1, &rows("-", "+", 12)), @r"bm25 against off, m: helped, +100.0 pp [+55.8, +100.0], p < 0.001, over 12 targets: 12 gains, 0 harms.");
    insta::assert_snapshot!(conclusion(1, &rows("+", "-", 12)), @r"bm25 against off, m: hurt, -100.0 pp [-100.0, -55.8], p < 0.001, over 12 targets: 0 gains, 12 harms.");
    insta::assert_snapshot!(conclusion(1, &rows("?", "+", 3)), @r"bm25 against off, m: no data: no target has a verdict in both arms.");
}

#[test]
fn missing_verdicts_that_could_undo_a_claim_are_named() {
    let names: Vec<String> = (1..=20).map(|n| format!("a{}__b-{n}", n % 7)).collect();
    let rows: Vec<(&str, &str, &str)> = names
        .iter()
        .enumerate()
        .map(|(i, id)| if i < 8 { (id.as_str(), "-", "+") } else { (id.as_str(), "+", "?") })
        .collect();
    insta::assert_snapshot!(conclusion(1, &rows), @r"bm25 against off, m: helped, +100.0 pp [+37.5, +100.0], p = 0.008, over 8 targets: 8 gains, 0 harms. The missing verdicts could undo it: with them the difference lies in [-20.0, +40.0].");
}

#[test]
fn excluded_targets_leave_every_arm() {
    let (facts, trials) = demo();
    let report = build(facts, &trials);
    let ids: Vec<&str> = report.excluded.iter().map(|e| e.instance_id.as_str()).collect();
    assert_eq!(ids, ["zeta__tool-3", "zeta__tool-6"]);
    assert!(report.targets.iter().all(|t| t.instance_id.as_str() != "zeta__tool-6"));
    assert_eq!(report.progress, Progress { expected: 48, finished: 48, missing: 1 });
    // The costs of what was excluded are counted all the same.
    assert_eq!(report.spent.trials, 52);
}

#[test]
fn pairs_are_complete_by_replicate() {
    let (facts, trials) = demo();
    let paired = &build(facts, &trials).comparisons[0].paired;
    assert_eq!((paired.targets, paired.pairs, paired.missing_pairs), (12, 23, 1));
    // zeta__tool-2: the first replicate is missing with memory, so the baseline's first does not count either.
    let flip = paired.gains.iter().find(|f| f.id == "zeta__tool-2").unwrap();
    assert_eq!((flip.baseline, flip.tested), (0.0, 1.0));
}

#[test]
fn foreign_and_doubled_trials_are_refused() {
    let one = trial("off", "m", 1, "a__b-1", VerdictClass::Resolved);
    let error =
        |facts: StudyFacts, trials: &[TrialRecord]| Report::build(facts, trials).unwrap_err().to_string();
    insta::assert_snapshot!(error(facts(&["n"], 1, 1), std::slice::from_ref(&one)), @r#"trial off/m/1/a__b-1 is not of study "demo": it has no solver "m"; the trials folder holds records of another study or of an older study file"#);
    insta::assert_snapshot!(error(facts(&["m"], 1, 1), &[one.clone(), one.clone()]), @r"trial off/m/1/a__b-1 has two records; keep the one of the latest attempt");
    insta::assert_snapshot!(error(StudyFacts { baseline: "none".into(), ..facts(&["m"], 1, 1) }, &[]), @r#"baseline "none" is no condition of study "demo"; its conditions are off, bm25"#);
    let late = trial("off", "m", 2, "a__b-1", VerdictClass::Resolved);
    insta::assert_snapshot!(error(facts(&["m"], 1, 1), &[late]), @r#"trial off/m/2/a__b-1 is not of study "demo": its replicates are 1 to 1; the trials folder holds records of another study or of an older study file"#);
    insta::assert_snapshot!(error(facts(&["m", "m"], 1, 1), &[]), @r#"study "demo" names solver "m" twice; give each its own name"#);
    insta::assert_snapshot!(error(StudyFacts { equivalence_margin: 3.0, ..facts(&["m"], 1, 1) }, &[]), @r"equivalence margin 3 is not between 0 and 1 (0.03 means 3 percentage points)");
}

#[test]
fn json_reads_back() {
    let (facts, trials) = demo();
    let report = build(facts, &trials);
    let json = serde_json::to_string_pretty(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
}

#[test]
fn unknown_prices_stay_unknown() {
    let (facts, mut trials) = demo();
    trials[3].solver_cost.list_usd = None;
    let report = build(facts, &trials);
    assert!(report.arms.iter().any(|a| a.usage.list_usd.is_none()));
    assert_eq!(report.comparisons[0].ratios.list_usd, None);
    assert!(report.comparisons[0].ratios.steps.is_some());
}

#[test]
fn holm_covers_the_comparisons_of_one_family() {
    let mut facts = facts(&["m", "n"], 1, 8);
    facts.conditions.push("notes".to_owned());
    let names: Vec<String> = (1..=8).map(|n| format!("a__b-{n}")).collect();
    let rows: Vec<(&str, &str, &str)> = names.iter().map(|id| (id.as_str(), "-", "+")).collect();
    let all: Vec<TrialRecord> = ["m", "n"].into_iter().flat_map(|s| trials(s, &rows)).collect();
    let report = build(facts, &all);
    // Two comparisons with data per solver, one pooled; `notes` has none yet and does not count.
    assert_eq!(report.family, 2);
    let p = 2.0 / 256.0;
    let adjusted: Vec<Option<f64>> = report.comparisons.iter().map(|c| c.holm_p).collect();
    assert_eq!(adjusted, [Some(2.0 * p), Some(2.0 * p), Some(p), None, None, None]);
}

/// A scan of a block with one finding.
fn scan(verdict: LeakVerdict) -> Option<LeakScan> {
    let weight = if verdict == LeakVerdict::Leak { 1.0 } else { 0.5 };
    let evidence = "3 of 4 lines of the gold patch, as \"close()\"".to_owned();
    Some(LeakScan { verdict, findings: vec![LeakFinding { kind: LeakKind::GoldLines, evidence, weight }] })
}

/// The demonstration with a leak for acme__widget-7 and a suspicion for beta__gadget-2.
fn leaky(exclude: bool) -> Report {
    let (mut facts, mut trials) = demo();
    facts.exclude_leaks = exclude;
    for trial in trials.iter_mut().filter(|trial| trial.key.condition == "bm25") {
        trial.leak = match trial.key.instance_id.as_str() {
            "acme__widget-7" => scan(LeakVerdict::Leak),
            "beta__gadget-2" => scan(LeakVerdict::Suspicious),
            _ => Some(LeakScan::default()),
        };
    }
    build(facts, &trials)
}

#[test]
fn leaks_are_counted_listed_and_compared_without() {
    let report = leaky(false);
    let text = report.text();
    let section = text.split("\nLEAKS\n").nth(1).unwrap().split("\n\n").next().unwrap();
    insta::assert_snapshot!(section, @r#"
    condition  solver  scanned  leaks  suspicious
    bm25       reader       24      2           2
    - bm25 acme__widget-7, 2 trials: leak: 1 (gold-lines: 3 of 4 lines of the gold patch, as "close()")
    - bm25 beta__gadget-2, 2 trials: suspicious: 0.5 (gold-lines: 3 of 4 lines of the gold patch, as
      "close()")
    without 1 target whose answer a block gave away:
    - bm25 against off, reader: helped, +50.0 pp [+22.7, +77.3], p = 0.023, over 11 targets: 8 gains, 1
      harm. With 3 repositories as clusters the interval is [-17.7, +100.0] and does not exclude 0.
    condition  solver   n   diff   95 % interval    SE      p  Holm p  gain  harm   MDE
    bm25       reader  11  +50.0  [+22.7, +77.3]  15.1  0.023   0.023     8     1  42.2
    "#);
    assert_eq!((report.comparisons[0].paired.targets, report.leaks.comparisons[0].paired.targets), (12, 11));
    assert!(report.leaks.comparisons[0].paired.gains.iter().all(|flip| flip.id != "acme__widget-7"));
    assert!(report.caveats.iter().any(|caveat| caveat.contains("of 1 target away")), "{:?}", report.caveats);
    let page = report.html();
    assert!(page.contains("<h2>Leaks</h2>") && page.contains("gold-lines"), "{page}");
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    let (facts, trials) = demo();
    assert!(!build(facts, &trials).text().contains("LEAKS"));
}

#[test]
fn leaks_leave_every_arm_where_the_study_says_so() {
    let (out, kept) = (leaky(true), leaky(false));
    let ids: Vec<&str> = out.excluded.iter().map(|e| e.instance_id.as_str()).collect();
    assert_eq!(ids, ["acme__widget-7", "zeta__tool-3", "zeta__tool-6"]);
    assert_eq!(out.excluded[0].reason, "the block of bm25 gives the answer away");
    assert_eq!(out.comparisons, kept.leaks.comparisons);
    assert_eq!(out.leaks.comparisons, kept.comparisons);
    assert_eq!(out.leaks.blocks, kept.leaks.blocks);
    assert_eq!(out.progress.expected, 44);
}

#[test]
fn ceilings_are_called_so() {
    let (mut facts, trials) = demo();
    facts.ceilings.push("bm25".to_owned());
    let report = build(facts, &trials);
    assert!(
        report.conclusions[0].starts_with("bm25 (a ceiling) against off, reader:"),
        "{:?}",
        report.conclusions
    );
    assert!(
        report.caveats.iter().any(|caveat| caveat.starts_with("bm25: chosen with knowledge of the answer"))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn the_order_of_trials_leaves_no_trace(order in Just(()).prop_perturb(|(), mut rng| {
        let mut order: Vec<usize> = (0..52).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, (rng.next_u32() as usize) % (i + 1));
        }
        order
    })) {
        let (facts, trials) = demo();
        let shuffled: Vec<TrialRecord> = order.iter().map(|&i| trials[i].clone()).collect();
        let (here, there) = (build(facts.clone(), &trials), build(facts, &shuffled));
        prop_assert_eq!(here.text(), there.text());
        prop_assert_eq!(here.html(), there.html());
        prop_assert_eq!(serde_json::to_string(&here).unwrap(), serde_json::to_string(&there).unwrap());
    }
}

#[test]
fn the_page_is_whole_and_loads_nothing() {
    let (mut facts, trials) = demo();
    facts.name = "<script>alert(1)</script> & co".to_owned();
    let page = build(facts, &trials).html();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    for outside in ["http://", "https://", "src=", "href=", "@import", "<script"] {
        assert!(!page.contains(outside), "{outside}");
    }
    // Every table has a heading row with scopes, every plot a text alternative.
    assert_eq!(page.matches("<svg").count(), page.matches("role=\"img\" aria-label=").count());
    assert_eq!(page.matches("<table").count(), page.matches("<thead").count());
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt; &amp; co"));
    for part in ["Conclusions", "planted demonstration", "acme__widget-12", "gold fails 3 of 3 runs", "+54.2"]
    {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn pages_of_degenerate_studies_render() {
    let rows = [("a__b-1", "-", "+")];
    for (facts, trials) in [
        (facts(&["m"], 1, 0), Vec::new()),
        (facts(&["m"], 1, 1), trials("m", &rows)),
        (facts(&["m"], 1, 1), trials("m", &[("a__b-1", "?", "?")])),
        (facts(&["m"], 1, 1), trials("m", &[("a__b-1", "x", "+")])),
        (facts(&["m", "n"], 3, 9), trials("n", &rows)),
        (
            StudyFacts { conditions: vec!["off".into()], ..facts(&["m"], 1, 1) },
            trials("m", &[("a__b-1", "+", "")]),
        ),
    ] {
        let report = build(facts, &trials);
        let (text, page) = (report.text(), report.html());
        let words = |s: &str| s.split(|c: char| !c.is_ascii_alphanumeric()).any(|w| w == "NaN" || w == "inf");
        assert!(!words(&text) && !words(&page) && !text.contains("-0.0"), "{text}");
    }
}
