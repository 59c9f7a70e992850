//! What expat refuses and `roxmltree` lets pass: declarations out of order, names that are none, references to
//! characters that are none, reserved prefixes.
//!
//! Of a document type, the declarations' own syntax is not looked at, and default attributes are not filled in.

use std::sync::LazyLock;

use regex::Regex;

use super::names;

/// Whether expat would let the text pass, as far as `roxmltree` does not see to it.
pub(super) fn is_lawful(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let body = match text.strip_prefix("<?xml") {
        Some(rest) if rest.starts_with([' ', '\t', '\r', '\n', '?']) => match declaration(text) {
            Some(length) => &text[length..],
            None => return false,
        },
        _ => text,
    };
    let mut rest = body;
    while let Some(at) = rest.find(['<', '&']) {
        let mark = &rest[at..];
        let step = if mark.starts_with('&') { reference(mark) } else { markup(mark) };
        match step {
            Some(length) => rest = &mark[length..],
            None => return false,
        }
    }
    true
}

/// The length of an XML declaration.
fn declaration(text: &str) -> Option<usize> {
    static DECLARATION: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(concat!(
            r#"^<\?xml[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*(?:"[A-Za-z0-9_.-]*"|'[A-Za-z0-9_.-]*')"#,
            r#"(?:[ \t\r\n]+encoding[ \t\r\n]*=[ \t\r\n]*(?:"[A-Za-z][A-Za-z0-9._-]*"|'[A-Za-z][A-Za-z0-9._-]*'))?"#,
            r#"(?:[ \t\r\n]+standalone[ \t\r\n]*=[ \t\r\n]*(?:"(?:yes|no)"|'(?:yes|no)'))?[ \t\r\n]*\?>"#,
        ))
        .ok()
    });
    DECLARATION.as_ref()?.find(text).map(|found| found.end())
}

/// The length of a reference's beginning; `None`: it names a character that is none.
fn reference(mark: &str) -> Option<usize> {
    let Some(number) = mark.strip_prefix("&#") else { return Some(1) };
    let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |digits| (digits, 16));
    let digits = &digits[..digits.find(';')?];
    let c = char::from_u32(u32::from_str_radix(digits, radix).ok()?)?;
    let lawful =
        matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..) && !digits.starts_with('+');
    lawful.then_some(2)
}

/// The length of what begins with `<`, as far as it has been looked at.
fn markup(mark: &str) -> Option<usize> {
    for (head, end) in [("<!--", "-->"), ("<![CDATA[", "]]>")] {
        if let Some(inside) = mark.strip_prefix(head) {
            return inside.find(end).map(|at| head.len() + at + end.len());
        }
    }
    if let Some(inside) = mark.strip_prefix("<?") {
        let (target, after) = inside.split_at(inside.find(|c: char| is_blank(c) || c == '?')?);
        let ended = after.starts_with(is_blank) || after.starts_with("?>");
        let lawful = ended && is_name(target) && !target.eq_ignore_ascii_case("xml");
        return inside.find("?>").filter(|_| lawful).map(|at| at + 4);
    }
    if mark.starts_with("<!") {
        return Some(2);
    }
    tag(mark)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// The length of a tag whose names are lawful.
fn tag(mark: &str) -> Option<usize> {
    let inside = mark[1..].strip_prefix('/').unwrap_or(&mark[1..]);
    let end = inside.find(|c: char| is_blank(c) || matches!(c, '>' | '/'))?;
    if !is_qualified(&inside[..end]) || inside[..end].starts_with("xmlns:") {
        return None;
    }
    let mut rest = &inside[end..];
    loop {
        rest = rest.trim_start_matches(|c| is_blank(c) || c == '/');
        if let Some(after) = rest.strip_prefix('>') {
            return Some(mark.len() - after.len());
        }
        let (name, value) = rest.split_once('=')?;
        let name = name.trim_end_matches(is_blank);
        let value = value.trim_start_matches(is_blank);
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, after) = value[1..].split_once(quote)?;
        if !is_qualified(name) || !declares_lawfully(name, value) || !references(value) {
            return None;
        }
        rest = after;
    }
}

fn references(value: &str) -> bool {
    value.match_indices("&#").all(|(at, _)| reference(&value[at..]).is_some())
}

/// Whether an attribute that declares a prefix may do so.
fn declares_lawfully(name: &str, value: &str) -> bool {
    const XML: &str = "http://www.w3.org/XML/1998/namespace";
    const XMLNS: &str = "http://www.w3.org/2000/xmlns/";
    match name.strip_prefix("xmlns:") {
        Some("xmlns") => false,
        Some("xml") => value == XML,
        Some(_) => !value.is_empty() && value != XML && value != XMLNS,
        None => name != "xmlns" || (value != XML && value != XMLNS),
    }
}

fn is_qualified(name: &str) -> bool {
    match name.split_once(':') {
        Some((prefix, local)) => is_name(prefix) && is_name(local),
        None => is_name(name),
    }
}

/// Whether a text is a name without colon.
fn is_name(text: &str) -> bool {
    text.starts_with(names::begins) && text.chars().all(names::continues)
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn takes_and_refuses_what_expat_does() {
        for text in [
            "<?xml version='1.0' encoding=\"bogus-1\" standalone='no' ?>\n<a/>",
            "\u{feff}<?xml version=\"1.1\"?><a/>",
            "<!DOCTYPE a [<!ENTITY e 'v'>]><a b='&e;'/>",
            "<a xmlns:p='u' p:b='1' b='2'>&#65;&#x1F600;<?pi x?></a>",
            "<a><![CDATA[<b c='&#0;'>]]></a>",
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
        for text in [
            "",
            " <?xml version='1.0'?><a/>",
            "<?xml?><a/>",
            "<?xml encoding='utf-8' version='1.0'?><a/>",
            "<a/><?XML x?>",
            "<a/><b/>",
            "<a/>text",
            "<a b='1' b='2'/>",
            "<a>\u{1b}[0m</a>",
            "<a>&undefined;</a>",
            "<a>&#0;</a>",
            "<a b='&#x110000;'/>",
            "<a>]]></a>",
            "<p:a/>",
            "<:a/>",
            "<a:b:c xmlns:a='u'/>",
            "<a xmlns:x=''/>",
            "<a😀/>",
            "<a><b></a></b>",
            "<a b=c/>",
            "<a b='<'/>",
            "<a",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn deep_documents_are_no_danger() {
        let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
        assert!(parse(&deep).is_ok());
    }
}
