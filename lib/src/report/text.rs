//! The report as text for a terminal of 100 columns.

use super::table::{Table, wrap};
use super::wording::{
    clipped, counted, dollars, p_value, percent, percent_interval, points, points_interval, short,
    verdict_name,
};
use super::{Arm, Comparison, Flip, Paired, Report};
use crate::llm::Cost;

/// What stands where there is no number.
pub(super) const NONE: &str = "-";

/// A number in words, or a dash.
pub(super) fn or_dash<T>(value: Option<T>, words: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), words)
}

impl Report {
    /// The report as aligned text, 100 columns wide, without colour.
    pub fn text(&self) -> String {
        let mut out = self.header();
        section(&mut out, "CONCLUSIONS", &bullets(&self.conclusions));
        section(&mut out, "RESOLVED, mean over targets", &self.resolved_table());
        section(
            &mut out,
            &format!("DIFFERENCE FROM {}, percentage points", self.study.baseline),
            &delta_table(&self.comparisons),
        );
        section(&mut out, "ROBUSTNESS, percentage points", &self.robustness_table());
        section(&mut out, "ONE REPLICATE: paired tests", &self.single_table());
        section(
            &mut out,
            "FLIPS (rate in the baseline > rate in the condition, where not 0 and 1)",
            &self.flips(),
        );
        section(&mut out, "HEADROOM, mean difference by the baseline's rate", &self.strata_table());
        section(&mut out, "COST PER TRIAL", &self.cost_table());
        section(&mut out, &format!("COST AS A RATIO TO {}", self.study.baseline), &self.ratio_table());
        section(&mut out, "VERDICTS", &self.verdicts());
        section(&mut out, "MEMORY", &self.memory_table());
        section(&mut out, "LEAKS", &self.leaks_text());
        section(&mut out, "EXCLUDED TARGETS", &self.exclusions());
        section(&mut out, "CHRONOLOGY", &bullets(&self.study.chronology_disagreements));
        section(&mut out, "CAVEATS", &bullets(&self.caveats));
        out
    }

    fn header(&self) -> String {
        let study = &self.study;
        let mut out = format!("{}\n", study.name);
        out.push_str(&wrap("", &self.design()));
        out.push_str(&wrap("", &format!("lock {}  seed {}", study.lock_digest, study.seed)));
        for note in &study.notes {
            out.push('\n');
            out.push_str(&wrap("NOTE  ", note));
        }
        out
    }

    /// The grid in one line.
    pub(super) fn design(&self) -> String {
        let (study, progress) = (&self.study, self.progress);
        let excluded = match self.excluded.len() {
            0 => String::new(),
            n => format!(" ({n} excluded)"),
        };
        format!(
            "{}{excluded} x {} x {} x {}: {} of {} trials finished",
            counted(study.targets as u64, "target"),
            counted(study.conditions.len() as u64, "condition"),
            counted(study.solvers.len() as u64, "solver"),
            counted(u64::from(study.replicates), "replicate"),
            progress.finished,
            progress.expected,
        )
    }

    fn resolved_table(&self) -> String {
        let head = ["condition", "solver", "targets", "trials", "missing", "resolved %", "95 % interval"];
        let replicates = u64::from(self.study.replicates);
        let together = [format!("pass@{replicates}"), format!("pass^{replicates}")];
        let more: Vec<&str> = together.iter().filter(|_| replicates > 1).map(String::as_str).collect();
        let mut table = Table::new(2, &[&head[..], &more].concat());
        for arm in &self.arms {
            let rate = arm.resolved_rate;
            let mut cells = clip(arm_names(arm));
            cells.extend([
                arm.targets.to_string(),
                format!("{}/{}", arm.trials, arm.expected),
                arm.missing.to_string(),
                or_dash(rate, |r| percent(r.value)),
                or_dash(rate, |r| percent_interval(r.interval)),
            ]);
            if replicates > 1 {
                let all = arm.reliability.iter().find(|r| r.k == replicates);
                cells.extend([or_dash(all, |r| percent(r.any)), or_dash(all, |r| percent(r.all))]);
            }
            table.row(cells);
        }
        let mut out = table.render();
        for arm in &self.arms {
            if let Some(bounds) = arm.worst_case {
                let name = format!("{} {}", arm.condition, arm.solver);
                out.push_str(&wrap(
                    "  ",
                    &format!("{name}: with the missing trials between {} %", percent_interval(bounds)),
                ));
            }
        }
        out
    }

    fn robustness_table(&self) -> String {
        let margin = format!("within ±{}", percent(self.study.equivalence_margin));
        let head = ["condition", "solver", "repos", "by repository", "90 % interval"];
        let mut table = Table::new(2, &[&head[..], &[&margin, "worst case"]].concat());
        for c in self.with_data() {
            let p = &c.paired;
            let mut cells = clip(comparison_names(c));
            cells.extend([
                or_dash(p.clustered, |c| c.clusters.to_string()),
                or_dash(p.clustered, |c| points_interval(c.interval)),
                or_dash(p.equivalence, |e| points_interval(e.interval90)),
                or_dash(p.equivalence, |e| if e.equivalent { "yes" } else { "no" }.to_owned()),
                or_dash(p.worst_case, points_interval),
            ]);
            table.row(cells);
        }
        table.render_rows()
    }

    /// Comparisons with at least one target.
    pub(super) fn with_data(&self) -> impl Iterator<Item = &Comparison> {
        self.comparisons.iter().filter(|c| c.paired.targets > 0)
    }

    fn single_table(&self) -> String {
        let head = ["condition", "solver", "both", "cond. only", "base only", "neither", "exact p", "mid-p"];
        let mut table = Table::new(2, &[&head[..], &["Newcombe 95 %"]].concat());
        for c in self.with_data().filter(|c| c.solver.is_some()) {
            let Some(single) = c.paired.single else { continue };
            let t = single.table;
            let mut cells = clip(comparison_names(c));
            cells.extend([t.both, t.only_a, t.only_b, t.neither].map(|n| n.to_string()));
            cells.extend([p_value(single.mcnemar_exact), p_value(single.mcnemar_mid_p)]);
            cells.push(points_interval(single.newcombe));
            table.row(cells);
        }
        table.render_rows()
    }

    fn flips(&self) -> String {
        let mut out = String::new();
        for c in self.with_data() {
            out.push_str(&format!("{}\n", comparison_names(c).join(" ")));
            out.push_str(&wrap("  gains  ", &flip_list(&c.paired.gains)));
            out.push_str(&wrap("  harms  ", &flip_list(&c.paired.harms)));
        }
        out
    }

    fn strata_table(&self) -> String {
        let head = ["condition", "solver", "never: n", "diff", "sometimes: n", "diff", "always: n", "diff"];
        let mut table = Table::new(2, &head);
        for c in self.with_data() {
            let mut cells = clip(comparison_names(c));
            let s = c.paired.strata;
            for stratum in [s.never, s.sometimes, s.always] {
                cells.extend([stratum.targets.to_string(), or_dash(stratum.delta, points)]);
            }
            table.row(cells);
        }
        table.render_rows()
    }

    fn cost_table(&self) -> String {
        let head = ["condition", "solver", "tokens", "memory", "steps", "seconds", "list $"];
        let mut table = Table::new(2, &[&head[..], &["tokens/resolved", "$/resolved"]].concat());
        for arm in self.arms.iter().filter(|a| a.trials > 0) {
            let u = &arm.usage;
            let mut cells = clip(arm_names(arm));
            cells.extend([
                or_dash(u.solver_tokens.per_trial, short),
                or_dash(u.memory_tokens.per_trial, short),
                or_dash(u.steps.per_trial, short),
                or_dash(u.seconds.per_trial, short),
                or_dash(u.list_usd.and_then(|s| s.per_trial), dollars),
                or_dash(u.solver_tokens.per_resolved, short),
                or_dash(u.list_usd.and_then(|s| s.per_resolved), dollars),
            ]);
            table.row(cells);
        }
        let all = self.spent.solver.plus(self.spent.memory);
        let mut out = table.render();
        out.push_str(&wrap(
            "",
            &format!(
                "whole study: {}, {} tokens, list {}, paid {}{}",
                counted(self.spent.trials, "trial"),
                short(super::arm::tokens(all) as f64),
                all.list_usd.map_or("unknown".to_owned(), dollars),
                all.paid_usd.map_or("unknown".to_owned(), dollars),
                self.given_up(),
            ),
        ));
        if self.spent.trials == 0 { String::new() } else { out }
    }

    /// What of the cost went into attempts that were given up; empty where nothing did.
    pub(super) fn given_up(&self) -> String {
        let cost = self.spent.abandoned;
        if cost == Cost::ZERO {
            return String::new();
        }
        let (calls, tokens) = (counted(cost.calls, "call"), short(super::arm::tokens(cost) as f64));
        format!(", {calls} and {tokens} tokens of it in attempts that were given up")
    }

    fn ratio_table(&self) -> String {
        let mut table = Table::new(3, &["condition", "solver", "measure", "ratio", "95 % interval"]);
        for c in self.with_data() {
            for (measure, ratio) in c.ratios.named() {
                let mut cells = clip(comparison_names(c));
                let interval = ratio.and_then(|r| r.interval);
                cells.extend([
                    measure.to_owned(),
                    or_dash(ratio, |r| format!("{:.2}", r.ratio)),
                    or_dash(interval, |i| format!("[{:.2}, {:.2}]", i.low, i.high)),
                ]);
                table.row(cells);
            }
        }
        table.render_rows()
    }

    fn verdicts(&self) -> String {
        let mut out = String::new();
        for arm in self.arms.iter().filter(|a| a.trials > 0) {
            let list: Vec<String> =
                arm.verdicts.iter().map(|(v, n)| format!("{} {n}", verdict_name(*v))).collect();
            out.push_str(&wrap("", &format!("{} {}: {}", arm.condition, arm.solver, list.join(", "))));
        }
        out
    }

    fn memory_table(&self) -> String {
        let mut out = String::new();
        for arm in self.arms.iter().filter(|arm| arm.memory.is_used()) {
            let m = &arm.memory;
            let mut line = format!(
                "{} {}: delivered in {} of {}, {} tokens injected, {} eligible runs a trial",
                arm.condition,
                arm.solver,
                m.delivered,
                counted(arm.trials, "trial"),
                short(m.injected_tokens as f64),
                or_dash(m.mean_eligible, short),
            );
            for asks in m.asks() {
                line.push_str(&format!("; {asks}"));
            }
            for (reason, n) in &m.abstained {
                line.push_str(&format!("; nothing delivered in {n}: {reason}"));
            }
            out.push_str(&wrap("", &line));
        }
        out
    }

    fn exclusions(&self) -> String {
        let lines: Vec<String> =
            self.excluded.iter().map(|e| format!("{}: {}", e.instance_id, e.reason)).collect();
        bullets(&lines)
    }
}

/// Differences of comparisons with their intervals and p values.
pub(super) fn delta_table(comparisons: &[Comparison]) -> String {
    let head =
        ["condition", "solver", "n", "diff", "95 % interval", "SE", "p", "Holm p", "gain", "harm", "MDE"];
    let mut table = Table::new(2, &head);
    for c in comparisons {
        let p = &c.paired;
        let mut cells = clip(comparison_names(c));
        cells.extend([
            p.targets.to_string(),
            or_dash(p.delta, |d| points(d.value)),
            or_dash(p.delta, |d| points_interval(d.interval)),
            or_dash(p.standard_error, percent),
            or_dash(p.delta, |_| p_value(p.sign_flip.p)),
            or_dash(c.holm_p, p_value),
            p.gains.len().to_string(),
            p.harms.len().to_string(),
            or_dash(p.detectable, percent),
        ]);
        table.row(cells);
    }
    table.render_rows()
}

/// A heading and its body, where there is a body.
pub(super) fn section(out: &mut String, title: &str, body: &str) {
    if !body.is_empty() {
        out.push_str(&format!("\n{title}\n{body}"));
    }
}

pub(super) fn bullets(lines: &[String]) -> String {
    lines.iter().map(|line| wrap("- ", line)).collect()
}

pub(super) fn arm_names(arm: &Arm) -> Vec<String> {
    vec![arm.condition.clone(), arm.solver.clone()]
}

pub(super) fn comparison_names(c: &Comparison) -> Vec<String> {
    vec![c.condition.clone(), c.solver.clone().unwrap_or_else(|| "all".to_owned())]
}

/// Further intervals of one comparison, each with its name.
pub(super) fn paired_notes(paired: &Paired) -> Vec<[String; 2]> {
    let mut rows = Vec::new();
    if let Some(c) = paired.clustered {
        rows.push([format!("{} repositories as clusters 95 %", c.clusters), points_interval(c.interval)]);
    }
    if let Some(e) = paired.equivalence {
        let inside = if e.equivalent { "inside" } else { "not inside" };
        let words = format!("{}, {inside} ±{}", points_interval(e.interval90), percent(e.margin));
        rows.push(["equivalence, bootstrap 90 %".to_owned(), words]);
    }
    if let Some(bounds) = paired.worst_case {
        let name = format!("worst case of {}", counted(paired.missing_pairs, "missing pair"));
        rows.push([name, points_interval(bounds)]);
    }
    rows
}

/// Names for tables: two of them and a dozen figures fit into 100 columns.
fn clip(names: Vec<String>) -> Vec<String> {
    names.iter().map(|name| clipped(name, 14)).collect()
}

/// `a__b-1, a__b-2 (0.5>1), …`, or `none`.
pub(super) fn flip_list(flips: &[Flip]) -> String {
    let rate = |q: f64| {
        let text = format!("{q:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let one = |f: &Flip| match (f.tested - f.baseline).abs() {
        // All the way: the heading says which.
        1.0 => f.id.clone(),
        _ => format!("{} ({}>{})", f.id, rate(f.baseline), rate(f.tested)),
    };
    if flips.is_empty() { "none".to_owned() } else { flips.iter().map(one).collect::<Vec<_>>().join(", ") }
}
