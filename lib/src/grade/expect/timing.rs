//! Names without durations, as SWE-rebench V2 compares them.

use std::sync::LazyLock;

use regex::Regex;

use super::super::logs::text;

/// Removes durations from a name as SWE-rebench V2 does: a bracketed one at the end, every ` in N sec`, a
/// parenthesised one at the end; then blanks around it.
pub fn without_timing(name: &str) -> String {
    static TIMING: LazyLock<[Regex; 3]> = LazyLock::new(|| {
        [
            text::pattern(r"(?i)ω*\[ω*\d+(?:\.\d+)?ω*(?:ms|s)ω*\]ω*$"),
            text::pattern(r"(?i)ω+inω+\d+(?:\.\d+)?ω+(?:msec|sec)(?P<end>$|[^\p{L}\p{N}_])"),
            text::pattern(r"(?i)ω*\(ω*\d+(?:\.\d+)?ω*(?:ms|s)ω*\)ω*$"),
        ]
    });
    let [bracketed, anywhere, parenthesised] = &*TIMING;
    let name = bracketed.replace_all(name, "");
    // The word boundary is matched by a character, which is put back; a next match may begin with it.
    let mut name = name.into_owned();
    let mut from = 0;
    while let Some(found) = anywhere.captures_at(&name, from) {
        let (Some(whole), Some(end)) = (found.get(0), found.name("end")) else { break };
        let (start, cut) = (whole.start(), end.start());
        name.replace_range(start..cut, "");
        from = start;
    }
    text::trim(&parenthesised.replace_all(&name, "")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_timing_as_the_reference_does() {
        for (name, normal) in [
            ("a (3ms) [2 ms]", "a"),
            ("a [2 ms] (3ms)", "a [2 ms]"),
            ("a [2 ms] [3 ms]", "a [2 ms]"),
            ("runs in 3 sec flat", "runs flat"),
            ("a in 1 sec in 2 sec b", "a b"),
            ("a in 3 seconds", "a in 3 seconds"),
            ("a in 3 secs", "a in 3 secs"),
            ("a in 3sec", "a in 3sec"),
            ("a[2ms]", "a"),
            ("a(3s)", "a"),
            ("x [1 min]", "x [1 min]"),
            ("x (1,234 ms)", "x (1,234 ms)"),
            ("a (3m)", "a (3m)"),
            ("(3ms)", ""),
            ("in 3 sec", "in 3 sec"),
        ] {
            assert_eq!(without_timing(name), normal, "{name:?}");
        }
    }
}
