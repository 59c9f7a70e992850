//! Secrets are taken out of earlier runs before a memory system reads them: what it keeps is injected, kept on disk and
//! sent to models.
//!
//! Each secret becomes `[redacted:KIND]`. Values that documentation uses as examples, and placeholders, are counted apart
//! and stay: they are no secrets, and tests may need them. Hashes, UUIDs and commit ids are no secrets either: a value
//! without a form of its own counts only where it looks random and stands behind a name such as `password` or `api_key`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex, RegexSet};
use serde::{Deserialize, Serialize};

use super::Experience;
use crate::trajectory::Event;

/// What was found in the runs that a store was built from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Redactions {
    /// Secrets that were replaced, by kind.
    pub replaced: BTreeMap<String, u64>,
    /// Examples of documentation and placeholders that were left, by kind.
    pub examples: BTreeMap<String, u64>,
}

impl Redactions {
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.replaced.is_empty() && self.examples.is_empty()
    }

    /// Adds what was found elsewhere.
    pub(super) fn add(&mut self, other: Self) {
        for (sums, counts) in [(&mut self.replaced, other.replaced), (&mut self.examples, other.examples)] {
            for (kind, count) in counts {
                *sums.entry(kind).or_default() += count;
            }
        }
    }
}

/// A form of secrets.
struct Form {
    kind: &'static str,
    /// The secret is the group `s`, or the whole match where there is none.
    pattern: &'static str,
    /// Whether a match is a secret: by its value, and for some by the match around it.
    is_secret: fn(&str, &Captures<'_>) -> bool,
}

fn always(_: &str, _: &Captures<'_>) -> bool {
    true
}

fn random(value: &str, _: &Captures<'_>) -> bool {
    looks_random(value)
}

/// The forms; those that say most about themselves come first.
const FORMS: [Form; 21] = [
    Form {
        kind: "private-key",
        pattern: r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----",
        is_secret: always,
    },
    Form {
        kind: "private-key",
        pattern: r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:(?:\s|\\n|[+>|-])*[A-Za-z0-9+/=]{40,})+",
        is_secret: always,
    },
    Form { kind: "aws-access-key", pattern: r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b", is_secret: always },
    Form {
        kind: "aws-secret-key",
        pattern: r#"(?i)\baws[\w-]*secret[\w-]*["']?\s*[=:]\s*["']?(?P<s>[A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"#,
        is_secret: always,
    },
    Form { kind: "gcp-api-key", pattern: r"\bAIza[0-9A-Za-z_-]{35}", is_secret: always },
    Form {
        kind: "gcp-token",
        pattern: r"\b(?:ya29\.[0-9A-Za-z_-]{20,}|GOCSPX-[0-9A-Za-z_-]{28})",
        is_secret: always,
    },
    Form {
        kind: "azure-key",
        pattern: r"(?i:AccountKey|SharedAccessKey)=(?P<s>[A-Za-z0-9+/]{43,88}={0,2})",
        is_secret: always,
    },
    Form {
        kind: "azure-signature",
        pattern: r"[?&]sig=(?P<s>[A-Za-z0-9%]{43,100}%3[dD])",
        is_secret: always,
    },
    Form {
        kind: "github-token",
        pattern: r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})\b",
        is_secret: always,
    },
    Form {
        kind: "gitlab-token",
        pattern: r"\bgl(?:pat|oat|ptt|dt|rt|cbt|soat|ft|imt|agent)-[A-Za-z0-9_-]{20,}",
        is_secret: random,
    },
    Form {
        kind: "slack-token",
        pattern: r"\bxox[abeoprs]-[0-9][A-Za-z0-9-]{12,}|\bxapp-[0-9]-[A-Za-z0-9-]{20,}",
        is_secret: always,
    },
    Form {
        kind: "slack-webhook",
        pattern: r"https://hooks\.slack\.com/(?:services|workflows)/(?P<s>[A-Za-z0-9/]{30,})",
        is_secret: always,
    },
    Form { kind: "anthropic-key", pattern: r"\bsk-ant-[A-Za-z0-9_-]{20,}", is_secret: always },
    Form {
        kind: "openai-key",
        pattern: r"\bsk-(?:(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{20,})",
        is_secret: random,
    },
    Form { kind: "npm-token", pattern: r"\bnpm_[A-Za-z0-9]{36}\b", is_secret: always },
    Form { kind: "npm-token", pattern: r"_authToken=(?P<s>[A-Za-z0-9_=/+-]{20,})", is_secret: always },
    Form { kind: "pypi-token", pattern: r"\bpypi-AgE[A-Za-z0-9_-]{50,}", is_secret: always },
    Form {
        kind: "jwt",
        pattern: r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}",
        is_secret: always,
    },
    Form {
        kind: "authorization",
        pattern: r#"(?i)\bbearer\s+(?P<s>[A-Za-z0-9._~+/-]{20,}=*)|\bauthorization["']?\s*[:=]\s*["']?(?:basic|token)\s+(?P<t>[A-Za-z0-9+/_-]{12,}=*)"#,
        is_secret: credentials,
    },
    Form {
        kind: "url-password",
        pattern: r#"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@"'<>`]{1,80}:(?P<s>[^\s/:@"'<>`]{1,160})@(?P<host>[A-Za-z0-9.-]+)"#,
        is_secret: url_password,
    },
    Form {
        kind: "assigned",
        pattern: r#"(?i)(?P<key>[A-Za-z0-9_.-]{0,40}(?:password|passwd|secret|token|api[_-]?key|access[_-]?key)[A-Za-z0-9_-]{0,20})["']?\s*(?::=|=>|=|:)\s*["']?(?P<s>[^\s"'`,;()<>\[\]{}]{12,200})"#,
        is_secret: assigned,
    },
];

/// The forms' patterns, each alone and all in one.
static PATTERNS: LazyLock<Option<(RegexSet, Vec<Regex>)>> = LazyLock::new(|| {
    let set = RegexSet::new(FORMS.iter().map(|form| form.pattern)).ok()?;
    let each = FORMS.iter().map(|form| Regex::new(form.pattern)).collect::<Result<_, _>>().ok()?;
    Some((set, each))
});

/// Values that documentation uses, or pieces of them that say so.
const EXAMPLES: [&str; 4] = [
    // AWS: AKIAIOSFODNN7EXAMPLE, wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
    "example",
    // Azure's storage emulator
    "eby8vdm02xnocqflquwjpllmetlcdxj1ouzft50usrz6",
    // jwt.io
    "sflkxwrjsmekkf2qt4fwpmejf36pok6yjv_adqssw5c",
    // RFC 7617: Aladdin:open sesame
    "qwxhzgrpbjpvcgvuihnlc2ftzq",
];

/// Words of values that stand for a secret.
const PLACEHOLDERS: [&str; 12] = [
    "placeholder",
    "changeme",
    "change_me",
    "change-me",
    "dummy",
    "redacted",
    "insecure",
    "your_",
    "your-",
    "xxxx",
    "****",
    "fake",
];

/// Passwords of addresses in documentation and tests.
const PASSWORDS: [&str; 18] = [
    "bar", "baz", "dev", "foo", "p", "pass", "passwd", "password", "postgres", "pw", "pwd", "root", "s3cr3t",
    "secret", "test", "token", "user", "xxx",
];

/// Replaces the secrets of a text; `None`: it holds none.
pub fn redact(text: &str, found: &mut Redactions) -> Option<String> {
    let (set, each) = PATTERNS.as_ref()?;
    let mut own: Option<String> = None;
    for index in set.matches(text) {
        let (form, pattern) = (&FORMS[index], &each[index]);
        let now = own.as_deref().unwrap_or(text);
        let mut places: Vec<Range<usize>> = Vec::new();
        for captures in pattern.captures_iter(now) {
            let Some(place) = captures.name("s").or_else(|| captures.name("t")).or_else(|| captures.get(0))
            else {
                continue;
            };
            let value = place.as_str();
            if is_example(form.kind, value, &captures) {
                *found.examples.entry(form.kind.to_owned()).or_default() += 1;
            } else if (form.is_secret)(value, &captures) {
                places.push(place.range());
            }
        }
        if places.is_empty() {
            continue;
        }
        *found.replaced.entry(form.kind.to_owned()).or_default() += places.len() as u64;
        let mut next = String::with_capacity(now.len());
        let mut done = 0;
        for place in places {
            next.push_str(&now[done..place.start]);
            next.push_str("[redacted:");
            next.push_str(form.kind);
            next.push(']');
            done = place.end;
        }
        next.push_str(&now[done..]);
        own = Some(next);
    }
    own
}

/// Replaces the secrets of a run: issue, patch and events.
pub(super) fn redact_run(run: &mut Experience, found: &mut Redactions) {
    let mut mend = |text: &mut String| {
        if let Some(clean) = redact(text, found) {
            *text = clean;
        }
    };
    mend(&mut run.issue);
    run.patch.as_mut().map(&mut mend);
    for event in &mut run.events {
        match event {
            Event::Issue { text } | Event::Thought { text } | Event::Observation { text, .. } => mend(text),
            Event::Command { text, .. } => mend(text),
            Event::Submission { patch } => mend(patch),
            Event::Ended { .. } => {}
        }
    }
}

/// Whether a value is known from documentation, or says itself that it is none. What would be no secret anyway does
/// not count as an example.
fn is_example(kind: &str, value: &str, captures: &Captures<'_>) -> bool {
    let lower = value.to_lowercase();
    let said = EXAMPLES.iter().chain(&PLACEHOLDERS).any(|word| lower.contains(word));
    match kind {
        "url-password" => {
            let host = captures.name("host").map_or("", |host| host.as_str());
            said || PASSWORDS.binary_search(&lower.as_str()).is_ok()
                || is_reserved(host)
                || is_template(value)
        }
        // a block without a key in it
        "private-key" => {
            let body = value.split("-----").nth(2).unwrap_or_default();
            body.chars().filter(|c| c.is_ascii_alphanumeric()).count() < 32 || said
        }
        "assigned" => said && looks_random(value),
        _ => said || is_monotone(value),
    }
}

/// A host that is nobody's.
fn is_reserved(host: &str) -> bool {
    let host = host.to_lowercase();
    ["example.com", "example.org", "example.net", ".example", ".test", ".invalid"]
        .iter()
        .any(|end| host.ends_with(end))
        || host == "example"
        || host == "host"
        || host == "hostname"
}

/// `${PASSWORD}`, `%s`, `{password}`.
fn is_template(value: &str) -> bool {
    value.contains(['$', '{', '}', '%']) && !value.contains("%40")
        || value.chars().all(|c| c == '*' || c == '.')
}

/// A value of one character many times, or of few.
fn is_monotone(value: &str) -> bool {
    let tail: Vec<char> = value.chars().filter(|c| c.is_ascii_alphanumeric()).skip(4).collect();
    let mut kinds = tail.clone();
    kinds.sort_unstable();
    kinds.dedup();
    tail.len() >= 8 && kinds.len() <= 3
}

fn credentials(value: &str, _: &Captures<'_>) -> bool {
    looks_random(value) || (value.ends_with('=') && entropy(value) > 3.0)
}

fn url_password(value: &str, captures: &Captures<'_>) -> bool {
    // a port, or a piece of code
    let whole = captures.get(0).map_or("", |whole| whole.as_str());
    !value.chars().all(|c| c.is_ascii_digit()) && !whole.contains(['(', ')', '\\', '*', '['])
}

fn assigned(value: &str, captures: &Captures<'_>) -> bool {
    let key = captures.name("key").map_or("", |key| key.as_str()).to_lowercase();
    let of_hash = ["hash", "digest", "checksum", "sha1", "sha256", "md5", "public"]
        .iter()
        .any(|word| key.contains(word));
    // names, calls and addresses are no values
    let code = value.contains("://")
        || value.contains('$')
        || value.starts_with(['/', '.', '-', '%', '@', '&', '*']);
    !of_hash && !code && looks_random(value)
}

/// Letters and digits without the order that words, numbers and hashes of others have: many kinds of characters,
/// changing often; no UUID.
fn looks_random(value: &str) -> bool {
    let tail = value.trim_end_matches('=');
    let count = tail.chars().count();
    let digits = tail.chars().filter(char::is_ascii_digit).count();
    let letters = tail.chars().filter(char::is_ascii_alphabetic).count();
    if count < 12 || digits < 2 || letters < 4 || !tail.is_ascii() || is_uuid(tail) {
        return false;
    }
    let class = |c: char| match c {
        '0'..='9' => Some(0),
        'a'..='z' => Some(1),
        'A'..='Z' => Some(2),
        _ => None,
    };
    let classes: Vec<u8> = tail.chars().filter_map(class).collect();
    let changes = classes.array_windows().filter(|[a, b]| a != b).count();
    changes * 4 >= classes.len() && entropy(tail) >= 3.2
}

fn is_uuid(value: &str) -> bool {
    let parts: Vec<usize> = value.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && value.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

/// Bits a character.
fn entropy(value: &str) -> f64 {
    let mut counts: BTreeMap<char, f64> = BTreeMap::new();
    for c in value.chars() {
        *counts.entry(c).or_default() += 1.0;
    }
    let length = value.chars().count() as f64;
    counts.values().map(|n| -(n / length) * (n / length).log2()).sum()
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
