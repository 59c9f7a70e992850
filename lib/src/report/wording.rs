//! Numbers and findings in words. No sentence claims more than its interval.

use crate::grade::VerdictClass;
use crate::stats::Interval;
use crate::stats::power::FEWEST_MOVED;

use super::{Comparison, Finding, Paired, Report};

/// A share as signed percentage points, without the unit: `+12.5`.
pub(super) fn points(share: f64) -> String {
    let rounded = format!("{:+.1}", share * 100.0);
    if rounded == "-0.0" { "+0.0".to_owned() } else { rounded }
}

/// An interval of differences in percentage points: `[-3.1, +9.9]`.
pub(super) fn points_interval(interval: Interval) -> String {
    format!("[{}, {}]", points(interval.low), points(interval.high))
}

/// A share as percent, without the unit: `33.3`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0 + 0.0)
}

/// An interval of shares in percent: `[11.1, 55.6]`.
pub(super) fn percent_interval(interval: Interval) -> String {
    format!("[{}, {}]", percent(interval.low), percent(interval.high))
}

/// A p value: `0.041`, `<0.001`.
pub(super) fn p_value(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { format!("{p:.3}") }
}

/// `p = 0.041`, `p < 0.001`.
pub(super) fn p_equals(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// A count or an amount in at most five characters or so: `950`, `12.3k`, `4.5M`.
pub(super) fn short(amount: f64) -> String {
    let magnitude = amount.abs();
    match magnitude {
        _ if magnitude >= 9.9995e9 => format!("{:.1}G", amount / 1e9),
        _ if magnitude >= 999_950.0 => format!("{:.1}M", amount / 1e6),
        _ if magnitude >= 9_999.5 => format!("{:.1}k", amount / 1e3),
        _ if magnitude >= 99.95 || amount.fract() == 0.0 => format!("{amount:.0}"),
        _ => format!("{amount:.1}"),
    }
}

/// US dollars: small amounts keep their digits.
pub(super) fn dollars(amount: f64) -> String {
    match amount {
        0.0 => "$0".to_owned(),
        a if a < 0.01 => format!("${a:.5}"),
        a if a < 1.0 => format!("${a:.3}"),
        a => format!("${a:.2}"),
    }
}

/// A long name with its middle left out: names often differ at their end.
pub(super) fn clipped(name: &str, most: usize) -> String {
    let length = name.chars().count();
    if length <= most {
        return name.to_owned();
    }
    let tail = most / 2;
    let head = name.chars().take(most - 1 - tail);
    head.chain(['…']).chain(name.chars().skip(length - tail)).collect()
}

/// `1 target`, `3 targets`.
pub(super) fn counted(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

/// A verdict's name as in JSON.
pub(super) fn verdict_name(verdict: VerdictClass) -> String {
    match serde_json::to_value(verdict) {
        Ok(serde_json::Value::String(name)) => name,
        _ => format!("{verdict:?}"),
    }
}

/// The conclusion about one comparison of a study, in full.
pub(super) fn conclusion(comparison: &Comparison, family: usize) -> String {
    let figures = figures(&comparison.paired);
    format!("{}: {}", title(comparison), statement(comparison, family, &figures))
}

/// Which comparison.
pub(super) fn title(comparison: &Comparison) -> String {
    let solver = comparison.solver.as_deref().unwrap_or("all solvers");
    let ceiling = if comparison.ceiling { " (a ceiling)" } else { "" };
    format!("{}{ceiling} against {}, {solver}", comparison.condition, comparison.baseline)
}

/// What may be said about one comparison, with these figures behind the verdict.
pub(super) fn statement(comparison: &Comparison, family: usize, figures: &str) -> String {
    let mut text = claim(&comparison.paired, ["helped", "hurt"], figures);
    let shown = matches!(comparison.paired.finding, Finding::Higher | Finding::Lower);
    if shown && comparison.solver.is_some() && family > 1 {
        let p = comparison.holm_p.unwrap_or(1.0);
        let verb = if p <= 0.05 { "holds" } else { "does not hold" };
        text.push_str(&format!(" After adjustment for {family} comparisons it {verb} ({}).", p_equals(p)));
    }
    text
}

/// The effect, its interval and its p value, as they stand in a sentence: `, +12.5 pp [+3.1, +21.9], p = 0.012`.
pub(super) fn figures(paired: &Paired) -> String {
    let effect = |d: super::Estimate| format!(", {} pp {}", points(d.value), points_interval(d.interval));
    paired.delta.map_or(String::new(), |d| format!("{}, {}", effect(d), p_equals(paired.sign_flip.p)))
}

/// What a paired analysis lets one say: `words` are for a higher and for a lower rate.
pub(super) fn claim(paired: &Paired, words: [&str; 2], figures: &str) -> String {
    let moved = format!(
        "over {}: {}, {}",
        counted(paired.targets as u64, "target"),
        counted(paired.gains.len() as u64, "gain"),
        counted(paired.harms.len() as u64, "harm"),
    );
    let mut text = match paired.finding {
        Finding::NoData => "no data: no target has a verdict in both arms.".to_owned(),
        Finding::Higher => format!("{}{figures}, {moved}.", words[0]),
        Finding::Lower => format!("{}{figures}, {moved}.", words[1]),
        Finding::Equivalent => format!("no difference as large as {}{figures}, {moved}.", margin(paired)),
        Finding::NotShown => format!("no effect could be shown{figures}, {moved}. {}", blind_spot(paired)),
    };
    text.push_str(&doubts(paired));
    text
}

fn margin(paired: &Paired) -> String {
    let margin = paired.equivalence.map_or(0.0, |e| e.margin);
    format!("{} pp either way (90 % interval inside the margin)", percent(margin))
}

/// What a "no effect" could have missed.
fn blind_spot(paired: &Paired) -> String {
    match paired.detectable {
        Some(share) if share <= 1.0 => {
            format!("An effect smaller than {} pp could not have been seen (80 % power).", percent(share))
        }
        Some(_) => "With so few targets no effect of any size would have been seen (80 % power).".to_owned(),
        None => format!(
            "With {} none could be: at least {FEWEST_MOVED} must move the same way.",
            counted(paired.targets as u64, "target")
        ),
    }
}

/// What weakens a claim of a difference.
fn doubts(paired: &Paired) -> String {
    let mut text = String::new();
    let claims = match paired.finding {
        Finding::Higher => Interval::above_zero,
        Finding::Lower => Interval::below_zero,
        _ => return text,
    };
    if let Some(cluster) = paired.clustered.filter(|c| !claims(c.interval)) {
        text.push_str(&format!(
            " With {} repositories as clusters the interval is {} and does not exclude 0.",
            cluster.clusters,
            points_interval(cluster.interval)
        ));
    }
    if let Some(bounds) = paired.worst_case.filter(|b| !claims(*b)) {
        text.push_str(&format!(
            " The missing verdicts could undo it: with them the difference lies in {}.",
            points_interval(bounds)
        ));
    }
    text
}

/// What a reader must know besides the conclusions.
pub(super) fn caveats(report: &Report) -> Vec<String> {
    let mut caveats = Vec::new();
    let progress = report.progress;
    if report.arms.iter().all(|arm| arm.trials == 0) {
        caveats.push("No trial has finished yet.".to_owned());
    } else if !progress.complete() {
        caveats.push(format!(
            "This study is not finished: {} of {} trials are. Figures will change.",
            progress.finished, progress.expected
        ));
        let idle = report.arms.iter().filter(|a| a.trials == 0 && a.expected > 0);
        caveats.extend(idle.map(|a| format!("Arm {} with {} has no trial yet.", a.condition, a.solver)));
    }
    if progress.missing > 0 {
        caveats.push(format!(
            "{} failed by infrastructure and stayed missing: such pairs are left out, and worst-case bounds are given.",
            counted(progress.missing, "trial")
        ));
    }
    if !report.excluded.is_empty() {
        let n = counted(report.excluded.len() as u64, "target");
        caveats.push(format!("{n} left every arm because no fair verdict is possible there."));
    }
    if !report.study.ceilings.is_empty() {
        caveats.push(format!(
            "{}: chosen with knowledge of the answer, a ceiling that no memory system can be held to.",
            report.study.ceilings.join(", ")
        ));
    }
    let leaking = report.leaks.targets.len() as u64;
    if leaking > 0 {
        let effect = if report.leaks.excluded { "left every arm" } else { "are in the main comparisons" };
        caveats.push(format!(
            "Blocks gave the answer of {} away: they {effect}; the comparisons {} stand under leaks.",
            counted(leaking, "target"),
            if report.leaks.excluded { "with them" } else { "without them" },
        ));
    }
    let disagreements = report.study.chronology_disagreements.len() as u64;
    if disagreements > 0 {
        let n = counted(disagreements, "case");
        caveats.push(format!("Number order and merge order disagree in {n} (listed under chronology)."));
    }
    let alike = |c: &&super::Comparison| c.paired.delta.is_some_and(|d| d.method == super::Method::AllAlike);
    let alike = report.comparisons.iter().filter(alike).count() as u64;
    if alike > 0 {
        caveats.push(format!(
            "In {} all targets came out alike: resampling them shows no spread, so the interval says how many targets \
             could have come out otherwise (an exact bound).",
            counted(alike, "comparison")
        ));
    }
    if report.comparisons.iter().any(|c| c.paired.strata != super::Strata::default()) {
        caveats.push(
            "Headroom is defined by the same baseline runs that are compared: by chance alone, targets that the \
             baseline never resolved can only rise and those that it always resolved can only fall."
                .to_owned(),
        );
    }
    caveats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([points(0.125), points(-0.0004), points(-1.0)], ["+12.5", "+0.0", "-100.0"]);
        assert_eq!([p_value(0.0412), p_value(0.0)], ["0.041", "<0.001"]);
        assert_eq!(
            [0.0, 9.25, 950.4, 9_999.4, 9_999.6, 12_345.0, 999_960.0, 4.5e6].map(short),
            ["0", "9.2", "950", "9999", "10.0k", "12.3k", "1.0M", "4.5M"]
        );
        assert_eq!([0.0, 0.00123, 0.5, 12.0].map(dollars), ["$0", "$0.00123", "$0.500", "$12.00"]);
        assert_eq!(["off", "claude-sonnet-4-5"].map(|n| clipped(n, 11)), ["off", "claud…t-4-5"]);
        assert_eq!([counted(1, "harm"), counted(0, "harm")], ["1 harm", "0 harms"]);
    }
}
