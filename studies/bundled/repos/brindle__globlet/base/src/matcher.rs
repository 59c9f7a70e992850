/// Whether a path matches a pattern of literals, `*`, `?` and classes such as `[abc]`.
pub fn matches(pattern: &str, path: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let path: Vec<char> = path.chars().collect();
    here(&pattern, &path)
}

fn here(pattern: &[char], path: &[char]) -> bool {
    match pattern.split_first() {
        None => path.is_empty(),
        Some(('*', rest)) => (0..=path.len()).any(|taken| here(rest, &path[taken..])),
        Some(('?', rest)) => !path.is_empty() && here(rest, &path[1..]),
        Some(('[', rest)) => class(rest, path),
        Some((literal, rest)) => path.first() == Some(literal) && here(rest, &path[1..]),
    }
}

/// Matches one character against the class that `pattern` begins with, behind its opening bracket.
fn class(pattern: &[char], path: &[char]) -> bool {
    let end = pattern.iter().position(|&c| c == ']');
    match (end, path.split_first()) {
        (Some(end), Some((&found, rest))) => {
            holds(&pattern[..end], found) && here(&pattern[end + 1..], rest)
        }
        _ => false,
    }
}

fn holds(set: &[char], found: char) -> bool {
    set.contains(&found)
}
