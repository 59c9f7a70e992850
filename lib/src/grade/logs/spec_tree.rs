//! Trees of specifications, as RSpec's documentation format and hspec print them: groups, and examples below them,
//! two blanks a level; the group of the first level behind an empty line.

use super::status::Status;

/// An example or a group of a tree.
struct Node<T> {
    depth: usize,
    text: String,
    example: Option<Example<T>>,
}

/// An example and where it stands.
struct Example<T> {
    line: usize,
    path: Vec<String>,
    status: Status,
    extra: T,
}

/// Reads a tree line by line.
pub(super) struct SpecTree<T> {
    /// From the group of the first level to the last line of the tree.
    stack: Vec<Node<T>>,
    done: Vec<(usize, Vec<String>, Status, T)>,
    blank: bool,
}

impl<T> Default for SpecTree<T> {
    fn default() -> Self {
        Self { stack: Vec::new(), done: Vec::new(), blank: true }
    }
}

impl<T> SpecTree<T> {
    /// A line: its text without marks, what the mark says (`None`: it may be a group or a pass), and something to
    /// keep with an example.
    pub(super) fn line(&mut self, at: usize, line: &str, read: impl Fn(&str) -> (&str, Option<Status>, T)) {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        let blank = std::mem::replace(&mut self.blank, text.is_empty());
        let depth = indent / 2;
        // A line that a test printed is not one level below its parent, or not behind an empty line.
        let parent = self.stack.get(depth.wrapping_sub(1)).is_some_and(|node| !node.marked());
        if text.is_empty() || indent % 2 == 1 || (depth == 0 && !blank) || (depth > 0 && !parent) {
            return;
        }
        self.cut(depth);
        let (name, status, extra) = read(text);
        let marked = status.is_some();
        let mut path: Vec<String> = self.stack.iter().map(|node| node.text.clone()).collect();
        for node in &mut self.stack {
            node.example = None;
        }
        path.push(name.to_owned());
        let example = Example { line: at, path, status: status.unwrap_or(Status::Passed), extra };
        // An unmarked line of the first level is a group, of which nothing may be left.
        let example = (depth > 0 || marked).then_some(example);
        self.stack.push(Node {
            depth: if marked { usize::MAX } else { depth },
            text: name.to_owned(),
            example,
        });
    }

    fn cut(&mut self, depth: usize) {
        for node in self.stack.drain(depth.min(self.stack.len())..).rev() {
            if let Some(Example { line, path, status, extra }) = node.example {
                self.done.push((line, path, status, extra));
            }
        }
    }

    /// The examples: line, path, status, and what was kept.
    pub(super) fn examples(&mut self) -> Vec<(usize, Vec<String>, Status, T)> {
        self.cut(0);
        self.blank = true;
        std::mem::take(&mut self.done)
    }
}

impl<T> Node<T> {
    /// Whether it has a mark, so that it is an example for sure.
    fn marked(&self) -> bool {
        self.depth == usize::MAX
    }
}
