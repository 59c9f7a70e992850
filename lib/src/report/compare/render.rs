//! A comparison of two runs as text and as HTML.

use maud::{Markup, html};

use super::read::outcome_name;
use super::{Comparison, RunFacts, Sensitivity};
use crate::report::page::{list, page, section, table};
use crate::report::pieces::{card, delta_forest, flips};
use crate::report::table::{Table, wrap};
use crate::report::text::{bullets, flip_list, or_dash, paired_notes, section as text_section};
use crate::report::wording::{claim, counted, figures, p_value, percent, points, points_interval};

/// How many ids of a list are printed.
const SHOWN: usize = 10;

/// What may be said about A and B.
pub(super) fn conclusion(comparison: &Comparison) -> String {
    sentence(comparison, &figures(&comparison.paired))
}

/// The claim, and a warning where the interval that a gate would use sees it otherwise.
fn sentence(comparison: &Comparison, figures: &str) -> String {
    let mut text = claim(&comparison.paired, ["A solved more than B", "A solved fewer than B"], figures);
    let doubt = comparison.sensitivity.as_ref().and_then(|s| s.newcombe).zip(comparison.interval());
    if let Some((strict, plain)) =
        doubt.filter(|(s, p)| s.above_zero() != p.above_zero() || s.below_zero() != p.below_zero())
    {
        text.push_str(&format!(
            " That rests on doubtful failures: without them the Newcombe interval is {} instead of {}.",
            points_interval(strict),
            points_interval(plain)
        ));
    }
    text
}

impl Comparison {
    /// The comparison as aligned text, 100 columns wide, without colour.
    pub fn text(&self) -> String {
        let mut out = String::from("A against B; differences are A - B, in percentage points\n");
        out.push_str(&wrap("A  ", &run_words(&self.a)));
        out.push_str(&wrap("B  ", &run_words(&self.b)));
        text_section(&mut out, "CONCLUSION", &wrap("", &self.conclusion));
        text_section(&mut out, "PAIRED", &self.paired_table());
        text_section(&mut out, "TESTS AND INTERVALS", &self.tests());
        if self.paired.targets > 0 {
            let flips = wrap("gains  ", &flip_list(&self.paired.gains))
                + &wrap("harms  ", &flip_list(&self.paired.harms));
            text_section(&mut out, "FLIPS", &flips);
        }
        text_section(&mut out, "NOT COMPARED", &bullets(&self.left_out()));
        out
    }

    /// The comparison as one self-contained HTML page.
    pub fn html(&self) -> String {
        let body = html! {
            header {
                p.kicker { "memtrial · two graded runs, paired by task" }
                h1 { "A against B" }
                p.meta { strong { "A " } (run_words(&self.a)) }
                p.meta { strong { "B " } (run_words(&self.b)) }
                p.meta { "Differences are A − B · seed " (self.seed) }
            }
            (section("Conclusion", &html! { div.cards {
                (card("A against B", &self.paired, &sentence(self, "")))
            } }))
            @if self.paired.targets > 0 {
                (section("Difference", &self.html_difference()))
                (section("Targets", &flips("Flips from B (baseline) to A (tested)", &self.paired)))
            }
            (section("Not compared", &list(&self.left_out())))
            footer { "Made by memtrial " (env!("CARGO_PKG_VERSION")) "." }
        };
        page("A against B", &body)
    }

    fn html_difference(&self) -> Markup {
        let t = self.paired.single.map(|s| s.table).unwrap_or_default();
        let row = |name: &str, cells: [u64; 2]| {
            let total = cells[0] + cells[1];
            vec![name.to_owned(), cells[0].to_string(), cells[1].to_string(), total.to_string()]
        };
        let rows = [
            row("A resolved", [t.both, t.only_a]),
            row("A not resolved", [t.only_b, t.neither]),
            row("all", [t.both + t.only_b, t.only_a + t.neither]),
        ];
        let tests: Vec<Vec<String>> = self.test_rows().into_iter().map(Vec::from).collect();
        html! {
            (delta_forest(std::iter::once(("A − B".to_owned(), &self.paired)), "Resolved rate, A − B in percentage points"))
            (table("Tasks with a verdict in both runs.", 1, &["", "B resolved", "B not resolved", "all"], &rows))
            (table("Newcombe's interval decides a gate (--fail-if-worse).", 1, &["quantity", "value"], &tests))
        }
    }

    fn paired_table(&self) -> String {
        let Some(single) = self.paired.single.filter(|_| self.paired.targets > 0) else {
            return String::new();
        };
        let t = single.table;
        let mut table = Table::new(1, &["", "B resolved", "B not resolved", "all"]);
        for (name, left, right) in [("A resolved", t.both, t.only_a), ("A not resolved", t.only_b, t.neither)]
        {
            table.row(vec![name.to_owned(), left.to_string(), right.to_string(), (left + right).to_string()]);
        }
        let columns = [t.both + t.only_b, t.only_a + t.neither, t.n()];
        table.row(std::iter::once("all".to_owned()).chain(columns.map(|n| n.to_string())).collect());
        table.render()
    }

    fn tests(&self) -> String {
        let mut table = Table::new(2, &["quantity", "value"]);
        for row in self.test_rows() {
            table.row(row.into());
        }
        table.render_rows()
    }

    fn test_rows(&self) -> Vec<[String; 2]> {
        let p = &self.paired;
        let (Some(delta), Some(single)) = (p.delta, p.single) else { return Vec::new() };
        let rates = format!("{} %, {} %", or_dash(p.rate_a, percent), or_dash(p.rate_b, percent));
        let mut rows = vec![
            ["resolved by A, by B".to_owned(), rates],
            ["difference".to_owned(), points(delta.value)],
            ["Newcombe 95 %".to_owned(), points_interval(single.newcombe)],
            ["bootstrap 95 %".to_owned(), or_dash(self.bootstrap, points_interval)],
            ["McNemar exact p".to_owned(), p_value(single.mcnemar_exact)],
            ["McNemar mid-p".to_owned(), p_value(single.mcnemar_mid_p)],
            ["smallest effect at 80 % power".to_owned(), or_dash(p.detectable, percent)],
        ];
        rows.extend(paired_notes(p));
        if let Some(s) = &self.sensitivity {
            rows.extend(sensitivity_rows(s));
        }
        rows
    }

    fn left_out(&self) -> Vec<String> {
        let lists = [
            ("listed by A only", &self.only_in_a),
            ("listed by B only", &self.only_in_b),
            ("attempted by neither", &self.attempted_by_neither),
            ("excluded, no fair verdict possible", &self.excluded),
        ];
        let named = lists.into_iter().filter(|(_, ids)| !ids.is_empty());
        named
            .map(|(what, ids)| format!("{} {what}: {}", counted(ids.len() as u64, "task"), first(ids)))
            .collect()
    }
}

fn sensitivity_rows(s: &Sensitivity) -> Vec<[String; 2]> {
    let what = format!("without {}", counted(s.ids.len() as u64, "doubtful failure"));
    let figures = format!(
        "{} {}, mid-p {}, {}",
        or_dash(s.delta, points),
        or_dash(s.newcombe, points_interval),
        or_dash(s.mcnemar_mid_p, p_value),
        counted(s.targets as u64, "task"),
    );
    vec![
        [what, figures],
        ["  worst case of those".to_owned(), or_dash(s.worst_case, points_interval)],
        ["  they are".to_owned(), first(&s.ids)],
    ]
}

fn first(ids: &[String]) -> String {
    let more = if ids.len() > SHOWN { format!(" and {} more", ids.len() - SHOWN) } else { String::new() };
    format!("{}{more}", ids[..ids.len().min(SHOWN)].join(", "))
}

fn run_words(run: &RunFacts) -> String {
    let outcomes: Vec<String> =
        run.outcomes.iter().map(|(o, n)| format!("{} {n}", outcome_name(*o))).collect();
    format!("{}: {} ({})", run.path, counted(run.listed as u64, "task"), outcomes.join(", "))
}
