//! The report as a table for people.

use super::{LevelQuality, QualityReport, Rate};

impl QualityReport {
    /// The report as aligned text, without colour.
    pub fn text(&self) -> String {
        let mut out = format!(
            "{}: {} targets, reference: gold patch of {}, resolved run of {}; {} without either left out; {:.1} s\n",
            self.system,
            self.targets,
            self.gold_patches,
            self.resolved_runs,
            self.without_reference.len(),
            self.seconds
        );
        for level in &self.levels {
            out.push('\n');
            out.push_str(&level.text(self.targets));
        }
        out
    }
}

impl LevelQuality {
    fn text(&self, targets: usize) -> String {
        let mut out = format!(
            "{}: {} of {targets} targets have a relevant record to find\n",
            self.level.name().to_uppercase(),
            self.answerable
        );
        let ks: Vec<usize> =
            self.rankings.first().map_or_else(Vec::new, |r| r.at.iter().map(|at| at.k).collect());
        let mut head = vec!["ranking".to_owned()];
        for (place, k) in ks.iter().enumerate() {
            head.push(format!("recall@{k}"));
            if place == 0 {
                head.push("95 %".to_owned());
            }
        }
        head.extend(ks.last().map(|k| format!("found@{k}")));
        head.extend(["MRR".to_owned(), "95 %".to_owned()]);
        let mut rows = vec![head];
        for ranking in &self.rankings {
            let mut cells = vec![ranking.name.clone()];
            for (place, at) in ranking.at.iter().enumerate() {
                cells.push(percent(at.recall));
                if place == 0 {
                    cells.push(interval(at.recall));
                }
            }
            cells.extend(ranking.at.last().map(|at| percent(at.found)));
            cells.extend([percent(ranking.mrr), interval(ranking.mrr)]);
            rows.push(cells);
        }
        out.push_str(&aligned(&rows));
        let a = &self.abstention;
        out.push_str(&format!(
            "  abstained for {}, rightly {} {}; delivered for {}, first record relevant {} {}\n",
            a.abstained,
            percent(a.rightly),
            interval(a.rightly),
            a.delivered,
            percent(a.precision),
            interval(a.precision)
        ));
        out
    }
}

fn percent(rate: Option<Rate>) -> String {
    rate.map_or("-".to_owned(), |rate| format!("{:.1}", rate.mean * 100.0))
}

fn interval(rate: Option<Rate>) -> String {
    rate.map_or_else(String::new, |rate| {
        format!("[{:.1}, {:.1}]", rate.interval.low * 100.0, rate.interval.high * 100.0)
    })
}

/// Columns of equal width: the first to the left, the others to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = width(column);
            match column {
                0 => line.push_str(&format!("  {cell:<width$}")),
                _ => line.push_str(&format!("  {cell:>width$}")),
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
