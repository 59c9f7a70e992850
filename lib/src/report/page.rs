//! The shell of an HTML page: one file, no external resources.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::wording::clipped;

/// The style sheet, kept apart to be read as CSS.
const STYLE: &str = include_str!("page.css");

/// A whole page.
pub(super) fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(concat!("memtrial ", env!("CARGO_PKG_VERSION")));
                title { (title) " · memtrial" }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (body) } }
        }
    };
    page.into_string() + "\n"
}

/// A table: headings, then rows; the first `left` columns hold names, the others numbers.
pub(super) fn table(caption: &str, left: usize, head: &[&str], rows: &[Vec<String>]) -> Markup {
    html! {
        div.scroll {
            table {
                caption { (caption) }
                thead { tr { @for (i, cell) in head.iter().enumerate() {
                    th scope="col" class=[(i >= left).then_some("n")] { (cell) }
                } } }
                tbody { @for row in rows { tr { @for (i, cell) in row.iter().enumerate() {
                    @if left == 1 && i == 0 { th scope="row" { (cell) } }
                    @else if i == 0 { th scope="row" title=[title(cell)] { (clipped(cell, NAME)) } }
                    @else if i < left { td title=[title(cell)] { (clipped(cell, NAME)) } }
                    @else { td class=[(i >= left).then_some("n")] { (fine(cell)) } }
                } } } }
            }
        }
    }
}

/// Characters of a name in a table; the whole name is its tooltip.
const NAME: usize = 30;

fn title(name: &str) -> Option<&str> {
    (name.chars().count() > NAME).then_some(name)
}

/// A section with a heading, where there is something in it.
pub(super) fn section(title: &str, body: &Markup) -> Markup {
    html! { @if !body.0.is_empty() { section { h2 { (title) } (body) } } }
}

/// A list, or nothing.
pub(super) fn list(lines: &[String]) -> Markup {
    html! { @if !lines.is_empty() { ul { @for line in lines { li { (fine(line)) } } } } }
}

/// The text with true minus signs before digits.
pub(super) fn fine(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let minus =
            c == '-' && matches!(before, ' ' | '[' | '(') && rest.peek().is_some_and(char::is_ascii_digit);
        out.push(if minus { '−' } else { c });
        before = c;
    }
    if out == "-" {
        return "–".to_owned();
    }
    // Numbers keep their units beside them.
    out.replace("p = ", "p\u{a0}=\u{a0}").replace(" %", "\u{a0}%").replace(" pp", "\u{a0}pp")
}

#[cfg(test)]
mod tests {
    use super::fine;

    #[test]
    fn minus_signs_are_for_numbers_only() {
        assert_eq!(fine("[-3.1, -0.5] a__b-12 gold-fails"), "[−3.1, −0.5] a__b-12 gold-fails");
        assert_eq!(fine("-"), "–");
        assert_eq!(fine("+1.0 pp, p = 0.5"), "+1.0\u{a0}pp, p\u{a0}=\u{a0}0.5");
    }
}
