//! Aligned tables and wrapped lines for a terminal of 100 columns.

/// Columns of the terminal that text is written for.
pub(super) const WIDTH: usize = 100;

/// A table whose first column is left-aligned and whose others are right-aligned.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
    left: usize,
}

impl Table {
    /// A table with these headings, the first `left` columns left-aligned.
    pub(super) fn new(left: usize, head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|h| (*h).to_owned()).collect()], left }
    }

    /// Appends a row.
    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// [`Table::render`], or nothing where there is no row below the headings.
    pub(super) fn render_rows(&self) -> String {
        if self.rows.len() > 1 { self.render() } else { String::new() }
    }

    /// The lines, each with its line end.
    pub(super) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|r| r.get(column)).map(|c| c.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let cells: Vec<String> = row
                .iter()
                .enumerate()
                .map(|(i, cell)| {
                    if i < self.left {
                        format!("{cell:<w$}", w = widths[i])
                    } else {
                        format!("{cell:>w$}", w = widths[i])
                    }
                })
                .collect();
            out.push_str(cells.join("  ").trim_end());
            out.push('\n');
        }
        out
    }
}

/// Breaks a text into lines of at most [`WIDTH`] columns; the first begins with `first`, the others with as many
/// blanks.
pub(super) fn wrap(first: &str, text: &str) -> String {
    let indent = first.chars().count();
    let mut out = String::from(first);
    let mut column = indent;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > indent && column + 1 + length > WIDTH {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_lines_wrap() {
        let mut table = Table::new(1, &["arm", "Δ"]);
        table.row(vec!["off".into(), "+1.0".into()]);
        table.row(vec!["bm25-long".into(), "-12.5".into()]);
        insta::assert_snapshot!(table.render(), @r"
        arm            Δ
        off         +1.0
        bm25-long  -12.5
        ");
        let text = wrap("  - ", &"word ".repeat(30));
        assert!(text.lines().all(|l| l.chars().count() <= WIDTH && l.starts_with("  ")));
        assert_eq!(text.split_whitespace().filter(|w| *w == "word").count(), 30);
    }
}
