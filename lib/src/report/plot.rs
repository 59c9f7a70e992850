//! Inline SVG: intervals on an axis, and rates as a strip of cells.

use maud::{Markup, PreEscaped, html};

use crate::stats::{Cell, Interval};

/// One interval of a forest plot.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// What stands on the left.
    pub(super) label: String,
    /// The estimate.
    pub(super) value: f64,
    /// Its interval.
    pub(super) interval: Interval,
    /// A second, thin interval behind the first.
    pub(super) behind: Option<Interval>,
    /// What stands on the right.
    pub(super) words: String,
    /// `up`, `down` or `flat`: the colour.
    pub(super) class: &'static str,
}

/// The axis of a forest plot.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    /// Where the reference line stands.
    pub(super) reference: f64,
    /// What the axis shows at least, and may not exceed.
    pub(super) least: Interval,
    /// See `least`.
    pub(super) most: Interval,
    /// Half the width of the shaded band around the reference.
    pub(super) band: Option<f64>,
    /// The words at a tick.
    pub(super) tick: fn(f64) -> String,
    /// What the axis measures.
    pub(super) title: String,
}

const LEFT: f64 = 245.0;
const PLOT: f64 = 385.0;
const WIDTH: f64 = 800.0;
const LINE: f64 = 30.0;
const TOP: f64 = 8.0;

/// A forest plot with a text alternative.
pub(super) fn forest(rows: &[Row], axis: &Axis, alternative: &str) -> Markup {
    let range = axis.range(rows);
    let x = |value: f64| LEFT + PLOT * (value.clamp(range.low, range.high) - range.low) / range.width();
    let bottom = TOP + LINE * rows.len() as f64;
    let height = bottom + 46.0;
    html! {
        svg.forest viewBox=(format!("0 0 {WIDTH} {height:.0}")) role="img" aria-label=(alternative) {
            title { (alternative) }
            @if let Some(band) = axis.band {
                (rect("band", x(axis.reference - band), TOP, x(axis.reference + band) - x(axis.reference - band),
                    bottom - TOP))
            }
            @for tick in ticks(range) {
                (line("grid", x(tick), TOP, x(tick), bottom))
                (text("tick", x(tick), bottom + 17.0, "middle", &(axis.tick)(tick)))
            }
            (line("reference", x(axis.reference), TOP, x(axis.reference), bottom))
            @for (row, y) in rows.iter().zip((0..).map(|i| TOP + LINE * (f64::from(i) + 0.5))) {
                (text("label", LEFT - 14.0, y + 4.5, "end", &row.label))
                g class=(row.class) {
                    @if let Some(behind) = row.behind {
                        (line("behind", x(behind.low), y, x(behind.high), y))
                    }
                    (line("interval", x(row.interval.low), y, x(row.interval.high), y))
                    (line("interval", x(row.interval.low), y - 5.0, x(row.interval.low), y + 5.0))
                    (line("interval", x(row.interval.high), y - 5.0, x(row.interval.high), y + 5.0))
                    circle cx=(number(x(row.value))) cy=(number(y)) r="5" {}
                }
                (text("words", LEFT + PLOT + 14.0, y + 4.5, "start", &row.words))
            }
            (text("axis", LEFT + PLOT / 2.0, bottom + 38.0, "middle", &axis.title))
        }
    }
}

impl Axis {
    /// From the intervals outwards to whole ticks, within bounds.
    fn range(&self, rows: &[Row]) -> Interval {
        let ends = rows.iter().flat_map(|r| [r.interval.low, r.interval.high]);
        let (low, high) = ends.fold((self.least.low, self.least.high), |(l, h), v| (l.min(v), h.max(v)));
        let step = step(high - low);
        Interval {
            low: ((low / step - 1e-9).floor() * step).max(self.most.low),
            high: ((high / step + 1e-9).ceil() * step).min(self.most.high),
        }
    }
}

/// A step of 1, 2 or 5 times a power of ten that gives at most eight ticks.
fn step(width: f64) -> f64 {
    let rough = (width / 7.0).max(1e-9);
    let power = 10_f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough - 1e-12).unwrap_or(power)
}

fn ticks(range: Interval) -> Vec<f64> {
    let step = step(range.width());
    let first = (range.low / step - 1e-9).ceil() as i64;
    let last = (range.high / step + 1e-9).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

/// Rates of targets (columns) in arms (rows): the darker, the more replicates resolved; hatched: no verdict.
pub(super) fn strip(arms: &[(String, Vec<Cell>)], alternative: &str) -> Markup {
    let columns = arms.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0).max(1);
    let size = ((WIDTH - LEFT) / columns as f64).clamp(1.0, 26.0);
    let gap = if size > 6.0 { 2.0 } else { 0.5_f64.min(size / 4.0) };
    let height = TOP + 28.0 * arms.len() as f64;
    html! {
        svg.strip viewBox=(format!("0 0 {WIDTH} {height:.0}")) role="img" aria-label=(alternative) {
            title { (alternative) }
            defs {
                pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse"
                    patternTransform="rotate(45)" { (line("hatch", 0.0, 0.0, 0.0, 5.0)) }
            }
            @for ((name, cells), y) in arms.iter().zip((0..).map(|i| TOP + 28.0 * f64::from(i))) {
                (text("label", LEFT - 14.0, y + 16.0, "end", name))
                @for (cell, x) in cells.iter().zip((0..).map(|i| LEFT + size * f64::from(i))) {
                    (rect("back", x, y, size - gap, 22.0))
                    @match cell.rate() {
                        Some(rate) => rect.rate x=(number(x)) y=(number(y)) width=(number(size - gap)) height="22"
                            fill-opacity=(format!("{rate:.2}")) {},
                        None => (rect("none", x, y, size - gap, 22.0)),
                    }
                }
            }
        }
    }
}

fn line(class: &str, x1: f64, y1: f64, x2: f64, y2: f64) -> Markup {
    html! { line class=(class) x1=(number(x1)) y1=(number(y1)) x2=(number(x2)) y2=(number(y2)) {} }
}

fn rect(class: &str, x: f64, y: f64, width: f64, height: f64) -> Markup {
    html! {
        rect class=(class) x=(number(x)) y=(number(y)) width=(number(width)) height=(number(height)) {}
    }
}

fn text(class: &str, x: f64, y: f64, anchor: &str, words: &str) -> Markup {
    html! { text class=(class) x=(number(x)) y=(number(y)) text-anchor=(anchor) { (words) } }
}

/// A coordinate: one decimal is a tenth of a pixel.
fn number(value: f64) -> PreEscaped<String> {
    PreEscaped(format!("{value:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let close = |got: Vec<f64>, want: &[f64]| {
            assert!(
                got.len() == want.len() && got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-9),
                "{got:?}"
            );
        };
        close(ticks(Interval::new(-0.2, 0.6)), &[-0.2, 0.0, 0.2, 0.4, 0.6]);
        close(ticks(Interval::new(0.0, 1.0)), &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        for width in [0.001, 0.013, 0.3, 0.77, 1.0, 2.0, 37.0] {
            let n = ticks(Interval::new(0.0, width)).len();
            assert!((3..=8).contains(&n), "{width}: {n}");
        }
    }
}
