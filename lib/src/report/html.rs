//! The report as one self-contained HTML page.

use maud::{Markup, html};

use crate::stats::Interval;

use super::page::{list, page, section, table};
use super::pieces::{card, delta_forest, flips, ratio_forest, short_names};
use super::plot::{Axis, Row, forest, strip};
use super::text::{NONE, arm_names, comparison_names, or_dash};
use super::wording::{
    counted, dollars, p_value, percent, percent_interval, points, points_interval, short, statement, title,
    verdict_name,
};
use super::{Comparison, Report};

/// The heading of tables of [`difference_cells`].
pub(super) const DIFFERENCE_HEAD: [&str; 11] = [
    "condition",
    "solver",
    "n",
    "Δ pp",
    "95 % interval",
    "p",
    "Holm p",
    "McNemar mid-p",
    "gains",
    "harms",
    "MDE",
];

impl Report {
    /// The report as one HTML page: no external resources, light and dark, plots as inline SVG.
    pub fn html(&self) -> String {
        let baseline = &self.study.baseline;
        let body = html! {
            (self.html_header())
            (section("Conclusions", &self.html_cards()))
            (section(&format!("Difference from {baseline}"), &self.html_differences()))
            (section("Resolved", &self.html_resolved()))
            (section("Targets", &self.html_targets()))
            (section("Headroom", &self.html_headroom()))
            (section("Cost", &self.html_cost()))
            (section("Memory", &self.html_memory()))
            (section("Leaks", &self.leaks_html()))
            (section("Verdicts", &self.html_verdicts()))
            (section("Excluded targets", &self.html_excluded()))
            (section("Chronology", &list(&self.study.chronology_disagreements)))
            (section("Caveats", &list(&self.caveats)))
            (section("Methods", &methods(self)))
            footer { "Made by memtrial " (env!("CARGO_PKG_VERSION")) ". The same figures, to full precision, are in "
                code { "report.json" } "." }
        };
        page(&self.study.name, &body)
    }

    fn html_header(&self) -> Markup {
        html! {
            header {
                p.kicker { "memtrial · controlled trial of memory" }
                h1 { (self.study.name) }
                p.meta { (self.design().replace(" x ", " × ")) }
                p.meta { "lock " code { (self.study.lock_digest) } " · seed " (self.study.seed) }
                @for note in &self.study.notes { p.note { strong { "Note. " } (note) } }
                @if !self.progress.complete() {
                    p.note { strong { "Not finished. " }
                        (self.progress.finished) " of " (self.progress.expected) " trials are. Figures will change." }
                }
            }
        }
    }

    fn html_cards(&self) -> Markup {
        html! { div.cards { @for c in &self.comparisons {
            (card(&title(c), &c.paired, &statement(c, self.family, "")))
        } } }
    }

    fn html_differences(&self) -> Markup {
        let rows = |cells: fn(&Comparison) -> Vec<String>| -> Vec<Vec<String>> {
            self.with_data().map(|c| [comparison_names(c), cells(c)].concat()).collect()
        };
        let margin = format!("within ±{}", percent(self.study.equivalence_margin));
        let robust = ["condition", "solver", "repositories", "by repository", "90 % interval"];
        html! { @if self.with_data().next().is_some() {
            (delta_forest(self.with_data().map(|c| (short_names(comparison_names(c)), &c.paired)),
                &format!("Resolved rate, difference from {} in percentage points", self.study.baseline)))
            (table("Δ: mean over targets of the difference of resolved rates, in percentage points. McNemar: one \
                replicate only. MDE: smallest effect that 80 % power finds.", 2,
                &DIFFERENCE_HEAD, &rows(difference_cells)))
            (table("By repository: t interval with repositories as clusters. Within: whether the 90 % interval lies inside \
                the equivalence margin. Worst case: Δ if all missing verdicts had gone one way.", 2,
                &[&robust[..], &[&margin, "missing pairs", "worst case"]].concat(), &rows(robustness_cells)))
        } }
    }

    fn html_resolved(&self) -> Markup {
        let rows: Vec<Row> = self
            .arms
            .iter()
            .filter_map(|arm| {
                let rate = arm.resolved_rate?;
                Some(Row {
                    label: short_names(arm_names(arm)),
                    value: rate.value,
                    interval: rate.interval,
                    behind: arm.worst_case,
                    words: format!("{} {}", percent(rate.value), percent_interval(rate.interval)),
                    class: "flat",
                })
            })
            .collect();
        let axis = Axis {
            reference: 0.0,
            least: Interval::new(0.0, 1.0),
            most: Interval::new(0.0, 1.0),
            band: None,
            tick: |v| format!("{:.0}", v * 100.0),
            title: "resolved, % (mean over targets)".to_owned(),
        };
        let cells: Vec<Vec<String>> = self.arms.iter().map(resolved_cells).collect();
        html! {
            @if !rows.is_empty() {
                figure { (forest(&rows, &axis, "Resolved rate of each arm with its 95 % interval")) }
            }
            (table("pass@k: at least one of k replicates resolves; pass^k: all k do. Both for k = all replicates.", 2,
                &["condition", "solver", "targets", "trials", "missing", "resolved %", "95 % interval", "pass@k",
                    "pass^k"], &cells))
        }
    }

    fn html_targets(&self) -> Markup {
        // Targets side by side by how the first comparison moved them: gains, then unmoved, then harms.
        let first = self.with_data().next();
        let moved = |id: &str| {
            first.map_or(1, |c| match () {
                () if c.paired.gains.iter().any(|f| f.id == id) => 0,
                () if c.paired.harms.iter().any(|f| f.id == id) => 2,
                () => 1,
            })
        };
        let mut rows: Vec<_> = self.targets.iter().collect();
        rows.sort_by_key(|r| (moved(r.instance_id.as_str()), r.instance_id.clone()));
        let arms: Vec<(String, Vec<_>)> = self
            .arms
            .iter()
            .enumerate()
            .map(|(i, arm)| (short_names(arm_names(arm)), rows.iter().map(|r| r.arms[i]).collect()))
            .collect();
        let names: Vec<&str> = arms.iter().map(|(name, _)| name.as_str()).collect();
        let cells: Vec<Vec<String>> = self
            .targets
            .iter()
            .map(|r| {
                std::iter::once(r.instance_id.to_string())
                    .chain(r.arms.iter().map(|c| cell_words(*c)))
                    .collect()
            })
            .collect();
        html! { @if !rows.is_empty() {
            figure {
                (strip(&arms, "Share of resolved replicates of each target in each arm"))
                figcaption { "One column a target: those that gained first, those that lost last. The stronger the colour, the more \
                    replicates resolved; hatched: no verdict." }
            }
            @for c in self.with_data() { (flips(&title(c), &c.paired)) }
            details {
                summary { "All targets" }
                (table("Resolved of replicates with a verdict.", 1, &[&["target"], &names[..]].concat(), &cells))
            }
        } }
    }

    fn html_headroom(&self) -> Markup {
        let rows: Vec<Vec<String>> = self
            .with_data()
            .map(|c| {
                let mut cells = comparison_names(c);
                let s = c.paired.strata;
                for stratum in [s.never, s.sometimes, s.always] {
                    cells.extend([stratum.targets.to_string(), or_dash(stratum.delta, points)]);
                }
                cells
            })
            .collect();
        html! { @if !rows.is_empty() {
            (table("Targets by how often the baseline resolved them, and their mean difference in percentage points. The \
                classes come from the same runs that are compared: by chance alone, the first can only rise and the last \
                can only fall.", 2,
                &["condition", "solver", "never: n", "Δ", "sometimes: n", "Δ", "always: n", "Δ"], &rows))
        } }
    }

    fn html_cost(&self) -> Markup {
        let per_trial: Vec<Vec<String>> = self
            .arms
            .iter()
            .filter(|a| a.trials > 0)
            .map(|arm| {
                let (u, mut cells) = (&arm.usage, arm_names(arm));
                cells.extend([
                    or_dash(u.solver_tokens.per_trial, short),
                    or_dash(u.memory_tokens.per_trial, short),
                    or_dash(u.steps.per_trial, short),
                    or_dash(u.seconds.per_trial, short),
                    or_dash(u.list_usd.and_then(|s| s.per_trial), dollars),
                    or_dash(u.solver_tokens.per_resolved, short),
                    or_dash(u.list_usd.and_then(|s| s.per_resolved), dollars),
                ]);
                cells
            })
            .collect();
        let all = self.spent.solver.plus(self.spent.memory);
        html! { @if !per_trial.is_empty() {
            (table("Means over finished trials. Memory tokens: retrieval and this trial's share of the build.", 2,
                &["condition", "solver", "tokens", "memory tokens", "steps", "seconds", "list price",
                    "tokens / resolved", "price / resolved"], &per_trial))
            @for c in self.with_data() { (ratio_forest(c)) }
            p.small { "Whole study: " (counted(self.spent.trials, "trial")) ", "
                (short(super::arm::tokens(all) as f64)) " tokens, list price "
                (all.list_usd.map_or("unknown".to_owned(), dollars)) ", paid "
                (all.paid_usd.map_or("unknown".to_owned(), dollars)) (self.given_up()) "." }
        } }
    }

    fn html_memory(&self) -> Markup {
        let used = self.arms.iter().filter(|arm| arm.memory.is_used());
        let in_the_run = self.arms.iter().any(|arm| arm.memory.in_the_run());
        let rows: Vec<Vec<String>> = used
            .map(|arm| {
                let (m, mut cells) = (&arm.memory, arm_names(arm));
                let reasons: Vec<String> = m.abstained.iter().map(|(r, n)| format!("{n} × {r}")).collect();
                let per = m.injected_tokens as f64 / m.delivered.max(1) as f64;
                cells.extend([
                    format!("{}/{}", m.delivered, arm.trials),
                    short(per),
                    or_dash(m.mean_eligible, short),
                    if reasons.is_empty() { NONE.to_owned() } else { reasons.join("; ") },
                ]);
                let asks = m.asks();
                cells.extend(
                    in_the_run.then(|| if asks.is_empty() { NONE.to_owned() } else { asks.join("; ") }),
                );
                cells
            })
            .collect();
        let head = [
            "condition",
            "solver",
            "delivered",
            "tokens a delivery",
            "eligible runs",
            "abstained",
            "in the run",
        ];
        let head = if in_the_run { &head[..] } else { &head[..6] };
        html! { @if !rows.is_empty() {
            (table("Eligible runs: earlier trajectories of the same repository, mean over trials.", 2, head, &rows))
        } }
    }

    fn html_verdicts(&self) -> Markup {
        let mut classes: Vec<_> = self.arms.iter().flat_map(|a| a.verdicts.keys().copied()).collect();
        classes.sort_unstable();
        classes.dedup();
        let names: Vec<String> = classes.iter().map(|c| verdict_name(*c)).collect();
        let head: Vec<&str> =
            ["condition", "solver"].into_iter().chain(names.iter().map(String::as_str)).collect();
        let rows: Vec<Vec<String>> = self
            .arms
            .iter()
            .map(|arm| {
                let count = |class| arm.verdicts.get(class).copied().unwrap_or(0).to_string();
                arm_names(arm).into_iter().chain(classes.iter().map(count)).collect()
            })
            .collect();
        html! { @if !classes.is_empty() { (table("Trials by verdict.", 2, &head, &rows)) } }
    }

    fn html_excluded(&self) -> Markup {
        html! { @if !self.excluded.is_empty() { ul { @for e in &self.excluded {
            li { code { (e.instance_id) } ": " (e.reason) }
        } } } }
    }
}

pub(super) fn difference_cells(c: &Comparison) -> Vec<String> {
    let p = &c.paired;
    vec![
        p.targets.to_string(),
        or_dash(p.delta, |d| points(d.value)),
        or_dash(p.delta, |d| points_interval(d.interval)),
        p_value(p.sign_flip.p),
        or_dash(c.holm_p, p_value),
        or_dash(p.single, |s| p_value(s.mcnemar_mid_p)),
        p.gains.len().to_string(),
        p.harms.len().to_string(),
        or_dash(p.detectable, percent),
    ]
}

fn robustness_cells(c: &Comparison) -> Vec<String> {
    let p = &c.paired;
    vec![
        or_dash(p.clustered, |c| c.clusters.to_string()),
        or_dash(p.clustered, |c| points_interval(c.interval)),
        or_dash(p.equivalence, |e| points_interval(e.interval90)),
        or_dash(p.equivalence, |e| if e.equivalent { "yes" } else { "no" }.to_owned()),
        p.missing_pairs.to_string(),
        or_dash(p.worst_case, points_interval),
    ]
}

fn resolved_cells(arm: &super::Arm) -> Vec<String> {
    let most = arm.reliability.last();
    let mut cells = arm_names(arm);
    cells.extend([
        arm.targets.to_string(),
        format!("{}/{}", arm.trials, arm.expected),
        arm.missing.to_string(),
        or_dash(arm.resolved_rate, |r| percent(r.value)),
        or_dash(arm.resolved_rate, |r| percent_interval(r.interval)),
        or_dash(most, |r| percent(r.any)),
        or_dash(most, |r| percent(r.all)),
    ]);
    cells
}

fn cell_words(cell: crate::stats::Cell) -> String {
    match (cell.observed(), cell.missing) {
        (0, 0) => NONE.to_owned(),
        (n, 0) => format!("{}/{n}", cell.resolved),
        (n, missing) => format!("{}/{n}, {missing} missing", cell.resolved),
    }
}

fn methods(report: &Report) -> Markup {
    html! {
        ul {
            li { "The unit of analysis is the target: its replicates are averaged first, and pairs without both verdicts \
                are left out." }
            li { "Intervals of differences: percentile bootstrap over targets, " (crate::stats::RESAMPLES) " resamples, \
                seed " (report.study.seed) "; where all targets came out alike, an exact bound instead." }
            li { "p: two-sided sign-flip permutation test, exact where possible. Holm p: adjusted over "
                (counted(report.family as u64, "comparison")) " of single solvers; pooled ones form their own family." }
            li { "“Helped” and “hurt” are said only where the interval excludes 0 and p ≤ 0.05." }
            li { "Ratios are of totals over the same pairs, with a bootstrap over targets." }
        }
    }
}
