//! Issues that say the same, and issues that name the target.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::{LeakFinding, LeakKind, finding, quoted};
use crate::task::InstanceId;

/// Words of a shingle.
const SHINGLE: usize = 3;

/// Issues of fewer shingles are compared by their titles alone.
const FEW_SHINGLES: usize = 10;

/// Characters before a number that can make it a reference.
const TAIL: usize = 120;

/// Comments of templates and headings: they are the same in every issue of a repository.
static TEMPLATE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?s)<!--.*?-->|(?m:^\s*#{1,6} .*$)|(?m:^\*\*[^*\n]*\*\*:?\s*$)").ok());

/// What is put before or behind the title of a port of another change.
static PORT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^(?:\s*(?:\[[^\]]*\]|(?:back|forward)-?port(?:ed)?(?: of| to [\w.\-/]+)?|re-?apply|reland|re-?open(?:ed)?|revert|cherry-?pick(?:ed)?|fixed)\s*:?\s*)+|\s*\((?:(?:gh-|#)\d+[,\s]*)+\)\s*$|\s*#\d+\s*$",
    )
    .ok()
});

static PORT_WORDS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)back-?port|cherry[- ]?pick|forward-?port|\breland\b|re-?apply").ok());

/// Whether two issues are nearly one.
pub(super) fn similar(source: &InstanceId, text: &str, target: &str) -> Option<LeakFinding> {
    let (own, others) = (title(text), title(target));
    if own.split(' ').count() >= 3 && own == others {
        let evidence = format!("the issue of {source} has the target's title {}", quoted(&own));
        return Some(finding(LeakKind::SimilarIssue, evidence, 1.0));
    }
    let (own, others) = (shingles(text), shingles(target));
    let least = own.len().min(others.len());
    if least < FEW_SHINGLES {
        return None;
    }
    let common = own.intersection(&others).count();
    let share = common as f64 / least as f64;
    let evidence =
        format!("{:.0} % of the shorter issue's shingles are in {source}'s and the target's", share * 100.0);
    match share {
        0.8.. => Some(finding(LeakKind::SimilarIssue, evidence, 1.0)),
        0.6.. => Some(finding(LeakKind::SimilarIssue, evidence, 0.5)),
        _ => None,
    }
}

/// The first line in words, without what a port adds.
fn title(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let bare = PORT.as_ref().map_or(line.into(), |port| port.replace_all(line, ""));
    // a second look: `[Backport] title (#12)` has both
    words(&bare).join(" ")
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn shingles(text: &str) -> BTreeSet<String> {
    let own = TEMPLATE.as_ref().map_or(text.into(), |template| template.replace_all(text, " "));
    words(&own).windows(SHINGLE).map(|window| window.join(" ")).collect()
}

/// Whether a text names the target's pull request: `#12`, `GH-12`, `pull/12`, `issues/12`.
pub(super) fn refers(text: &str, target: &InstanceId, repo: &str, place: &str) -> Option<LeakFinding> {
    let number = target.number().to_string();
    let line = text.lines().find(|line| names(line, &number, repo))?;
    let port = PORT_WORDS.as_ref().is_some_and(|words| words.is_match(line));
    let how = if port { "is a port of the target" } else { "names the target" };
    let evidence = format!("{place} {how}: {}", quoted(line.trim()));
    Some(finding(LeakKind::RefersToTarget, evidence, if port { 1.0 } else { 0.5 }))
}

fn names(line: &str, number: &str, repo: &str) -> bool {
    line.match_indices(number).any(|(at, _)| {
        let (before, behind) = (&line[..at], &line[at + number.len()..]);
        if behind.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            return false;
        }
        // no more of a long line than an address needs
        let tail = before.char_indices().rev().nth(TAIL).map_or(0, |(start, _)| start);
        let before = &before[tail..];
        let lower = before.to_lowercase();
        if lower.ends_with("gh-") || lower.ends_with("pr ") || lower.ends_with("pull request ") {
            return true;
        }
        if let Some(before) = before.strip_suffix('#') {
            // owner/name#12 of another repository is another's
            let word = |c: char| c.is_alphanumeric() || "-_./".contains(c);
            let owner = before.rsplit(|c: char| !word(c)).next().unwrap_or_default();
            return owner.is_empty() || owner.eq_ignore_ascii_case(repo) || !owner.contains('/');
        }
        let address = ["/pull/", "/pulls/", "/issues/"].iter().find_map(|kind| lower.strip_suffix(kind));
        address.is_some_and(|address| address.ends_with(&repo.to_lowercase()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_of_ports_are_the_titles() {
        let plain = title("Reader leaks a handle on retry\n\nbody");
        for ported in [
            "[Backport] Reader leaks a handle on retry",
            "[5.2.x] Fixed: Reader leaks a handle on retry (#1234)",
            "Backport of Reader leaks a handle on retry",
            "\n  Reader leaks a handle on retry #99",
            "Reopened: Reader leaks a handle on retry (gh-12, gh-13)",
        ] {
            assert_eq!(title(ported), plain, "{ported:?}");
        }
    }

    #[test]
    fn knows_a_reference_to_the_target() {
        for (line, expected) in [
            ("see #77", true),
            ("see acme/widget#77.", true),
            ("see other/thing#77", false),
            ("https://github.com/acme/widget/pull/77", true),
            ("https://github.com/acme/gadget/pull/77", false),
            ("GH-77: x", true),
            ("#777", false),
            ("#770 and 77 of them", false),
            ("77", false),
            ("in PR 77", true),
            ("#77a", false),
        ] {
            assert_eq!(names(line, "77", "acme/widget"), expected, "{line:?}");
        }
    }
}
