//! Pieces of pages: cards, interval plots, tables of flips.

use maud::{Markup, html};

use crate::stats::Interval;

use super::page::fine;
use super::plot::{Axis, Row, forest};
use super::wording::{clipped, counted, p_equals, percent, points, points_interval, title};
use super::{Comparison, Finding, Paired};

/// Names for plots, where room is short.
pub(super) fn short_names(names: Vec<String>) -> String {
    names.iter().map(|n| clipped(n, 14)).collect::<Vec<_>>().join(" · ")
}

fn class_of(finding: Finding) -> &'static str {
    match finding {
        Finding::Higher => "up",
        Finding::Lower => "down",
        Finding::NoData | Finding::Equivalent | Finding::NotShown => "flat",
    }
}

/// The number large, its interval, and what may be said.
pub(super) fn card(who: &str, paired: &Paired, claim: &str) -> Markup {
    let sentence = fine(claim);
    let capital: String = sentence.chars().take(1).flat_map(char::to_uppercase).collect();
    html! {
        div class=(format!("card {}", class_of(paired.finding))) {
            p.who { (who) }
            p.big { @if let Some(delta) = paired.delta {
                (fine(&points(delta.value))) " pp " small { (fine(&points_interval(delta.interval))) ", "
                    (p_equals(paired.sign_flip.p)) }
            } @else { "no data" } }
            p { (capital) (sentence.chars().skip(1).collect::<String>()) }
        }
    }
}

/// Differences with their intervals; behind each the interval by repository.
pub(super) fn delta_forest<'a>(rows: impl Iterator<Item = (String, &'a Paired)>, title: &str) -> Markup {
    let mut margin = None;
    let rows: Vec<Row> = rows
        .filter_map(|(label, paired)| {
            let delta = paired.delta?;
            margin = paired.equivalence.map(|e| e.margin);
            Some(Row {
                label,
                value: delta.value,
                interval: delta.interval,
                behind: paired.clustered.map(|c| c.interval),
                words: fine(&format!("{} {}", points(delta.value), points_interval(delta.interval))),
                class: class_of(paired.finding),
            })
        })
        .collect();
    let axis = Axis {
        reference: 0.0,
        least: Interval::new(-0.1, 0.1),
        most: Interval::new(-1.0, 1.0),
        band: margin,
        tick: |v| fine(&format!("{:+.0}", v * 100.0).replace("+0", "0").replace("-0", "0")),
        title: title.to_owned(),
    };
    html! { figure {
        (forest(&rows, &axis, &format!("{title}, with 95 % intervals")))
        figcaption { "Dot and whiskers: Δ and its 95 % interval over targets. Wide pale bar: the interval with \
            repositories as clusters. Shaded: the equivalence margin." }
    } }
}

/// Ratios of costs with their intervals.
pub(super) fn ratio_forest(c: &Comparison) -> Markup {
    let rows: Vec<Row> = c
        .ratios
        .named()
        .into_iter()
        .filter_map(|(measure, ratio)| {
            let ratio = ratio?;
            let interval = ratio.interval.unwrap_or(Interval::new(ratio.ratio, ratio.ratio));
            Some(Row {
                label: measure.to_owned(),
                value: ratio.ratio,
                interval,
                behind: None,
                words: format!("{:.2} [{:.2}, {:.2}]", ratio.ratio, interval.low, interval.high),
                class: "flat",
            })
        })
        .collect();
    let axis = Axis {
        reference: 1.0,
        least: Interval::new(0.8, 1.2),
        most: Interval::new(0.0, f64::MAX),
        band: None,
        tick: |v| format!("{v:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
        title: "ratio of totals to the baseline".to_owned(),
    };
    html! { @if !rows.is_empty() {
        h3 { (title(c)) }
        figure { (forest(&rows, &axis, &format!("Cost ratios of {}", title(c)))) }
    } }
}

/// Gains and harms with their targets, folded where they are many.
pub(super) fn flips(title: &str, paired: &Paired) -> Markup {
    let moved = |class: &'static str| if class == "up" { &paired.gains } else { &paired.harms };
    let (gains, harms) = (paired.gains.len(), paired.harms.len());
    html! {
        h3 { (title) }
        details open[gains + harms <= 16] {
            summary { (counted(gains as u64, "gain")) ", " (counted(harms as u64, "harm")) ", "
                (counted((paired.targets - gains - harms) as u64, "target")) " unmoved" }
            @if gains + harms > 0 { div.scroll { table {
                thead { tr { th scope="col" { "target" } th.n scope="col" { "baseline" } th.n scope="col" { "tested" }
                    th.n scope="col" { "Δ pp" } } }
                tbody { @for class in ["up", "down"] { @for f in moved(class) { tr {
                    th scope="row" { code { (f.id) } }
                    td.n { (percent(f.baseline)) " %" } td.n { (percent(f.tested)) " %" }
                    td class=(format!("n {class}")) { (fine(&points(f.tested - f.baseline))) }
                } } } }
            } } }
        }
    }
}
