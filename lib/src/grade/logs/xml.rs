//! XML as strictly as Python's ElementTree (expat) reads a text value: a document that is not well formed is none.

use std::sync::LazyLock;

use roxmltree::{Document, Node, ParsingOptions};

use super::text::{Pattern, pattern};

/// Reads a document. The encoding that it declares does not matter.
///
/// # Errors
/// Where it is not well formed.
pub(in crate::grade::logs) fn parse(document: &str) -> Result<Document<'_>, String> {
    differences(document).map_err(str::to_owned)?;
    Document::parse_with_options(document, ParsingOptions { allow_dtd: true, ..ParsingOptions::default() })
        .map_err(|error| error.to_string())
}

/// Every element of this name below the node, without the node itself. A namespace makes another name.
pub(in crate::grade::logs) fn descendants<'a, 'input>(
    node: Node<'a, 'input>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    node.descendants().skip(1).filter(move |node| is(*node, name))
}

/// The direct child elements of this name.
pub(in crate::grade::logs) fn children<'a, 'input>(
    node: Node<'a, 'input>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    node.children().filter(move |node| is(*node, name))
}

/// Whether the node has a direct child element of this name.
pub(in crate::grade::logs) fn has(node: Node<'_, '_>, name: &'static str) -> bool {
    children(node, name).next().is_some()
}

/// Whether the node is an element of this name, in no namespace.
pub(in crate::grade::logs) fn is(node: Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().namespace().is_none() && node.tag_name().name() == name
}

/// What expat rejects and roxmltree accepts.
fn differences(document: &str) -> Result<(), &'static str> {
    static DECLARATION: Pattern = LazyLock::new(|| {
        pattern(concat!(
            r#"^<\?xml[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*(?:"[a-zA-Z0-9_.:-]*"|'[a-zA-Z0-9_.:-]*')"#,
            r#"(?:[ \t\r\n]+encoding[ \t\r\n]*=[ \t\r\n]*(?:"[a-zA-Z][a-zA-Z0-9._-]*"|'[a-zA-Z][a-zA-Z0-9._-]*'))?"#,
            r#"(?:[ \t\r\n]+standalone[ \t\r\n]*=[ \t\r\n]*(?:"(?:yes|no)"|'(?:yes|no)'))?[ \t\r\n]*\?>"#,
        ))
    });
    let mut rest = document.strip_prefix('\u{feff}').unwrap_or(document);
    if rest.starts_with("<?xml")
        && !rest[5..].starts_with(|c: char| c.is_alphanumeric() || "-_.:".contains(c))
    {
        rest = &rest[DECLARATION.find(rest).ok_or("the XML declaration is wrong")?.end()..];
    }
    while let Some(at) = memchr::memchr2(b'<', b'&', rest.as_bytes()) {
        let mark = &rest[at..];
        rest = if mark.starts_with('&') {
            reference(mark)?;
            &mark[1..]
        } else if mark.starts_with("<!--") {
            behind(&mark[4..], "-->")
        } else if mark.starts_with("<![CDATA[") {
            behind(mark, "]]>")
        } else if let Some(inside) = mark.strip_prefix("<?") {
            let end = inside.find("?>").unwrap_or(inside.len());
            instruction(&inside[..end])?;
            behind(&inside[end..], "?>")
        } else if mark.starts_with("<!") {
            &mark[2..]
        } else {
            tag(&mark[1..])?
        };
    }
    Ok(())
}

fn behind<'a>(text: &'a str, end: &str) -> &'a str {
    text.find(end).map_or("", |at| &text[at + end.len()..])
}

/// A reference to a character that is none.
fn reference(text: &str) -> Result<(), &'static str> {
    let Some(number) = text.strip_prefix("&#") else { return Ok(()) };
    let (digits, base) = number.strip_prefix('x').map_or((number, 10), |hex| (hex, 16));
    let end = digits.find(';').ok_or("a reference does not end")?;
    let code = u32::from_str_radix(&digits[..end], base).ok().and_then(char::from_u32);
    code.map(|_| ()).ok_or("a reference to a character that is none")
}

/// A processing instruction, without its marks.
fn instruction(text: &str) -> Result<(), &'static str> {
    let target = text.find(is_blank).map_or(text, |at| &text[..at]);
    if target.eq_ignore_ascii_case("xml") || !target.chars().all(is_name) {
        return Err("the target of an instruction is none");
    }
    Ok(())
}

/// A tag behind its `<`; gives what follows it.
fn tag(text: &str) -> Result<&str, &'static str> {
    let end = text.find(|c| is_blank(c) || c == '>').unwrap_or(text.len());
    name(text[..end].trim_matches('/'))?;
    let mut rest = &text[end..];
    let mut default_seen = false;
    loop {
        rest = rest.trim_start_matches(|c| is_blank(c) || c == '/');
        let Some(at) = memchr::memchr2(b'=', b'>', rest.as_bytes()) else { return Ok("") };
        if rest.as_bytes()[at] == b'>' {
            return Ok(&rest[at + 1..]);
        }
        let key = rest[..at].trim_end_matches(is_blank);
        name(key)?;
        let quoted = rest[at + 1..].trim_start_matches(is_blank);
        let Some(quote @ ('"' | '\'')) = quoted.chars().next() else {
            return Err("an attribute is not quoted");
        };
        let end = quoted[1..].find(quote).ok_or("an attribute does not end")?;
        let value = &quoted[1..=end];
        for (at, _) in value.match_indices("&#") {
            reference(&value[at..])?;
        }
        if key == "xmlns" && std::mem::replace(&mut default_seen, true) {
            return Err("an attribute stands twice");
        }
        namespace(key, value)?;
        rest = &quoted[end + 2..];
    }
}

fn namespace(key: &str, value: &str) -> Result<(), &'static str> {
    let prefix = key.strip_prefix("xmlns:");
    let wrong = prefix == Some("xmlns") || prefix.is_some() && value.is_empty();
    if wrong || (prefix.is_some() || key == "xmlns") && value.contains('}') {
        return Err("a namespace is declared wrongly");
    }
    Ok(())
}

fn name(name: &str) -> Result<(), &'static str> {
    if name.starts_with(':') || name.ends_with(':') {
        return Err("a name is half empty");
    }
    Ok(())
}

/// Whether a name may hold the character, where it is ASCII.
fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.".contains(c) || !c.is_ascii()
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_expat_accepts() {
        for document in [
            "<a/>",
            " \n<a/>\n",
            "\u{feff}<?xml version='1.1' encoding='foo'?><a/>",
            "<?xml version=\"1.0\" standalone=\"no\" ?><!-- c --><a/><?pi x?>",
            "<a>\u{7f}\u{85}&#10;&#x41;</a>",
            "<a xmlns:b='u' b:x='1' x='2'/>",
            "<!DOCTYPE a [<!ENTITY e 'v'>]><a b='&e;'/>",
            "<a><![CDATA[ <b> &#0; ]]></a>",
        ] {
            assert!(parse(document).is_ok(), "{document:?}: {:?}", parse(document).err());
        }
    }

    #[test]
    fn rejects_what_expat_rejects() {
        for document in [
            "",
            "<a>",
            "<a/><b/>",
            "<a/>x",
            " <?xml version='1.0'?><a/>",
            "<?xml?><a/>",
            "<?XML x?><a/>",
            "<?xml version='1.0' encoding=''?><a/>",
            "<?xml version='1.0' standalone='maybe'?><a/>",
            "<a>\u{1b}[0m</a>",
            "<a>\u{ffff}</a>",
            "<a>&nbsp;</a>",
            "<a>&#1;</a>",
            "<a>&#xD800;</a>",
            "<a b='&#x110000;'/>",
            "<a>]]></a>",
            "<a b='1' b='2'/>",
            "<a b='1'c='2'/>",
            "<a xmlns='u' xmlns='v'/>",
            "<a b='<'/>",
            "<a b=1/>",
            "<b:a/>",
            "<:a/>",
            "<a xmlns:b=''/>",
            "<1a/>",
            "<a><?p:i x?></a>",
            "<!DOCTYPE a [<!ENTITY e '&f;'><!ENTITY f '&e;'>]><a>&e;</a>",
        ] {
            assert!(parse(document).is_err(), "{document:?}");
        }
    }

    #[test]
    fn attributes_are_normalised_and_namespaces_make_other_names() {
        let document = parse("<a><t b='x\ty\nz&#10;'/><t xmlns='u'/></a>").unwrap();
        let found: Vec<_> = descendants(document.root_element(), "t").collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].attribute("b"), Some("x y z\n"));
        assert!(has(document.root_element(), "t") && children(document.root_element(), "u").next().is_none());
    }

    #[test]
    fn depth_and_entities_do_no_harm() {
        let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
        assert!(parse(&deep).is_ok());
        let mut bomb = String::from("<!DOCTYPE a [<!ENTITY e0 'lol'>");
        for level in 1..30 {
            bomb += &format!("<!ENTITY e{level} '{}'>", format!("&e{};", level - 1).repeat(10));
        }
        assert!(parse(&(bomb + "]><a>&e29;</a>")).is_err());
    }
}
