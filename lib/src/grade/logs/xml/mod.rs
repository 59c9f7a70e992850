//! XML as expat accepts it, for rules that must take and refuse the documents that the reference parsers do.

mod law;

use roxmltree::{Document, Node, ParsingOptions};

use super::status::Status;

/// Parses a document; `None`: it is not well formed.
pub(super) fn parse(text: &str) -> Option<Document<'_>> {
    if !law::is_lawful(text) {
        return None;
    }
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).ok()
}

/// Whether a node is an element of this name without a namespace.
pub(super) fn is(node: &Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().name() == name && node.tag_name().namespace().is_none()
}

/// The value of an attribute without a namespace.
pub(super) fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    let found = node.attributes().find(|one| one.name() == name && one.namespace().is_none())?;
    Some(found.value())
}

/// The elements of this name below a node, in the order of the document.
pub(super) fn below<'a, 'd>(node: Node<'a, 'd>, name: &'static str) -> impl Iterator<Item = Node<'a, 'd>> {
    node.descendants().skip(1).filter(move |inner| is(inner, name))
}

/// The status that a test case's direct children give it: the first of `order` that is there.
pub(super) fn status(case: Node<'_, '_>, order: [(&str, Status); 3]) -> Status {
    let has = |name: &str| case.children().any(|child| is(&child, name));
    order.into_iter().find_map(|(name, status)| has(name).then_some(status)).unwrap_or(Status::Passed)
}
