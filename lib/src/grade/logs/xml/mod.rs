//! XML as strictly as Python's ElementTree (expat) reads a text value: a document that is not well formed is none.

mod law;
mod names;

use roxmltree::{Document, Node, ParsingOptions};

/// Reads a document. The encoding that it declares does not matter.
///
/// # Errors
/// Where it is not well formed.
pub(super) fn parse(document: &str) -> Result<Document<'_>, String> {
    if !law::is_lawful(document) {
        return Err("it is not well formed".to_owned());
    }
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(document, options).map_err(|error| error.to_string())
}

/// Every element of this name below the node, without the node itself. A namespace makes another name.
pub(super) fn descendants<'a, 'input>(
    node: Node<'a, 'input>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    node.descendants().skip(1).filter(move |node| is(*node, name))
}

/// The direct child elements of this name.
pub(super) fn children<'a, 'input>(
    node: Node<'a, 'input>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    node.children().filter(move |node| is(*node, name))
}

/// Whether the node has a direct child element of this name.
pub(super) fn has(node: Node<'_, '_>, name: &'static str) -> bool {
    children(node, name).next().is_some()
}

/// Whether the node is an element of this name, in no namespace.
pub(super) fn is(node: Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().namespace().is_none() && node.tag_name().name() == name
}

/// The value of an attribute in no namespace.
pub(super) fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.attributes().find(|one| one.name() == name && one.namespace().is_none()).map(|one| one.value())
}
