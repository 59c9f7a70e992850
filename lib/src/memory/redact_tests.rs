use super::*;

/// What becomes of a text: `kind*count` of replaced and `(kind*count)` of examples, and the text.
fn redacted(text: &str) -> (String, String) {
    let mut found = Redactions::default();
    let clean = redact(text, &mut found).unwrap_or_else(|| text.to_owned());
    let replaced = found.replaced.iter().map(|(kind, n)| format!("{kind}*{n}"));
    let examples = found.examples.iter().map(|(kind, n)| format!("({kind}*{n})"));
    (replaced.chain(examples).collect::<Vec<_>>().join(" "), clean)
}

/// A made-up random text of a length. Written so that no secret stands in this file.
fn noise(length: usize) -> String {
    let letters = "q7XbR2mLk9TzWv4HsYc8NdJ5gPf3UaE6";
    letters.chars().cycle().take(length).collect()
}

fn block(name: &str, body: &str) -> String {
    let dashes = "-".repeat(5);
    format!("{dashes}BEGIN {name}{dashes}\n{body}\n{dashes}END {name}{dashes}")
}

#[test]
fn secrets_of_every_form_are_replaced() {
    let upper = |length| noise(length).to_uppercase();
    let hex = "9f86d081884c7d659a2feaa0c55ad015";
    let key = block("RSA PRIVATE KEY", &format!("{}\n{}", noise(64), noise(64)));
    let cut = format!("{}BEGIN PRIVATE KEY{}\n+{}\n+{}\nmore", "-----", "-----", noise(64), noise(64));
    for (text, kinds, left) in [
        (format!("id {}{} end", "AKIA", upper(16)), "aws-access-key*1", "id [redacted:aws-access-key] end"),
        (format!("{}{}", "ASIA", upper(16)), "aws-access-key*1", "[redacted:aws-access-key]"),
        (
            format!("aws_secret_access_key = {}", noise(40)),
            "aws-secret-key*1",
            "aws_secret_access_key = [redacted:aws-secret-key]",
        ),
        (
            format!("AWS_SECRET_KEY='{}'", noise(40)),
            "aws-secret-key*1",
            "AWS_SECRET_KEY='[redacted:aws-secret-key]'",
        ),
        (format!("key={}{}", "AIza", noise(35)), "gcp-api-key*1", "key=[redacted:gcp-api-key]"),
        (format!("{}{}", "ya29.", noise(60)), "gcp-token*1", "[redacted:gcp-token]"),
        (format!("{}{}", "GOCSPX-", noise(28)), "gcp-token*1", "[redacted:gcp-token]"),
        (
            format!("AccountName=a;AccountKey={}==;End", noise(86)),
            "azure-key*1",
            "AccountName=a;AccountKey=[redacted:azure-key];End",
        ),
        (
            format!("https://a.blob.core.windows.net/c?sv=1&sig={}%3D", noise(43)),
            "azure-signature*1",
            "https://a.blob.core.windows.net/c?sv=1&sig=[redacted:azure-signature]",
        ),
        (format!("{}{}", "ghp_", noise(36)), "github-token*1", "[redacted:github-token]"),
        (format!("({}{})", "ghs_", noise(36)), "github-token*1", "([redacted:github-token])"),
        (format!("{}{}", "github_pat_", noise(60)), "github-token*1", "[redacted:github-token]"),
        (format!("{}{}", "glpat-", noise(20)), "gitlab-token*1", "[redacted:gitlab-token]"),
        (format!("{}1234567890-{}", "xoxb-", noise(24)), "slack-token*1", "[redacted:slack-token]"),
        (
            format!("https://hooks.slack.com/services/{}", upper(40)),
            "slack-webhook*1",
            "https://hooks.slack.com/services/[redacted:slack-webhook]",
        ),
        (format!("{}{}", "sk-ant-api03-", noise(60)), "anthropic-key*1", "[redacted:anthropic-key]"),
        (format!("{}{}", "sk-", noise(48)), "openai-key*1", "[redacted:openai-key]"),
        (format!("{}{}", "sk-proj-", noise(60)), "openai-key*1", "[redacted:openai-key]"),
        (format!("{}{}", "npm_", noise(36)), "npm-token*1", "[redacted:npm-token]"),
        (
            format!("//registry.npmjs.org/:_authToken={}", noise(36)),
            "npm-token*1",
            "//registry.npmjs.org/:_authToken=[redacted:npm-token]",
        ),
        (format!("{}{}", "pypi-AgEIcHlwaS5vcmc", noise(80)), "pypi-token*1", "[redacted:pypi-token]"),
        (format!("eyJ{}.eyJ{}.{}", noise(20), noise(30), noise(43)), "jwt*1", "[redacted:jwt]"),
        (
            format!("Authorization: Bearer {}", noise(40)),
            "authorization*1",
            "Authorization: Bearer [redacted:authorization]",
        ),
        (
            format!("-H 'authorization: token {}'", noise(40)),
            "authorization*1",
            "-H 'authorization: token [redacted:authorization]'",
        ),
        (
            format!("Authorization: Basic {}==", noise(22)),
            "authorization*1",
            "Authorization: Basic [redacted:authorization]",
        ),
        (
            "git clone https://bob:hunter2x@git.acme.io/a".to_owned(),
            "url-password*1",
            "git clone https://bob:[redacted:url-password]@git.acme.io/a",
        ),
        (
            "postgres://app:Zx81-qq@db.acme.io:5432/app".to_owned(),
            "url-password*1",
            "postgres://app:[redacted:url-password]@db.acme.io:5432/app",
        ),
        (key.clone(), "private-key*1", "[redacted:private-key]"),
        (
            format!("before\n{key}\nafter\n{key}"),
            "private-key*2",
            "before\n[redacted:private-key]\nafter\n[redacted:private-key]",
        ),
        (block("PGP PRIVATE KEY BLOCK", &noise(200)), "private-key*1", "[redacted:private-key]"),
        (cut, "private-key*1", "[redacted:private-key]\nmore"),
        (format!("password = \"{}\"", noise(16)), "assigned*1", "password = \"[redacted:assigned]\""),
        (format!("DB_PASSWORD={}", noise(20)), "assigned*1", "DB_PASSWORD=[redacted:assigned]"),
        (format!("'api_key': '{hex}'"), "assigned*1", "'api_key': '[redacted:assigned]'"),
        (format!("client-secret: {}", noise(24)), "assigned*1", "client-secret: [redacted:assigned]"),
        (format!("export TOKEN={}\n", noise(24)), "assigned*1", "export TOKEN=[redacted:assigned]\n"),
        (
            format!("{}{} and {}{}", "ghp_", noise(36), "npm_", noise(36)),
            "github-token*1 npm-token*1",
            "[redacted:github-token] and [redacted:npm-token]",
        ),
    ] {
        let (found, clean) = redacted(&text);
        assert_eq!((found.as_str(), clean.as_str()), (kinds, left), "{text}");
        assert_eq!(redacted(&clean), (String::new(), clean.clone()), "a second time: {clean}");
    }
}

#[test]
fn examples_of_documentation_are_counted_and_left() {
    let empty = block("RSA PRIVATE KEY", "...");
    for (text, kinds) in [
        ("AKIAIOSFODNN7EXAMPLE", "(aws-access-key*1)"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "(aws-secret-key*1)"),
        ("http://user:password@host:21/", "(url-password*1)"),
        ("https://user:Pa55w0rd1@www.example.com/a", "(url-password*1)"),
        ("ftp://u:${PASSWORD}@files.acme.io", "(url-password*1)"),
        ("Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "(authorization*1)"),
        ("ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "(github-token*1)"),
        ("sk-ant-your-key-goes-here-please", "(anthropic-key*1)"),
        (
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
            "(jwt*1)",
        ),
        (empty.as_str(), "(private-key*1)"),
    ] {
        assert_eq!(redacted(text), (kinds.to_owned(), text.to_owned()), "{text}");
    }
}

#[test]
fn what_is_no_secret_is_left() {
    let base64 = format!("data:image/png;base64,{}", noise(400));
    for text in [
        "",
        "the password must be long, the token too",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "index 9ae1e4f3d2..07c3e5a1b9 100644",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "id = 550e8400-e29b-41d4-a716-446655440000",
        "token = 550e8400-e29b-41d4-a716-446655440000",
        "password_hash = 5f4dcc3b5aa765d61d8327deb882cf99",
        "token_md5: 9f86d081884c7d659a2feaa0c55ad015",
        base64.as_str(),
        "password = get_random_string(12)",
        "token = PasswordResetTokenGenerator().make_token(user0)",
        "SECRET_KEY = os.environ['SECRET_KEY_2']",
        "secret = settings.SECRET_KEY_FALLBACKS",
        "access_token = self.cleaned_data1",
        "password: correct-horse-battery-staple",
        "password=\"abcdefghijkl\"",
        "token: 123456789012345678",
        "csrf_token = '1bcdefghij2bcdefghij3bcdefghij4bcdefghij'",
        "tokens = tokenize.generate_tokens(f.readline)",
        "sk-learn-contrib-and-a-long-name-of-a-package",
        "the bearer of this_long_name_of_something_else",
        "http://localhost:8000/a@b",
        "https://user@host/path:with@signs",
        "re.compile(r'://([^:]+):([^@]+)@(.*)')",
        "AKIA is a prefix; AKIAshort",
        "BEGIN PRIVATE KEY",
        "eyJhbGciOiJIUzI1NiJ9 alone",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 bob@acme",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "key=token=secret=password",
        "Größe: password=äöüäöüäöüäöü12",
    ] {
        assert_eq!(redacted(text), (String::new(), text.to_owned()), "{text}");
    }
}

#[test]
fn a_run_is_cleaned_everywhere() {
    let secret = format!("{}{}", "ghp_", noise(36));
    let mut run = Experience {
        instance_id: crate::task::InstanceId::parse("acme__widget-3").unwrap(),
        issue: format!("a {secret}"),
        patch: Some(format!("+{secret}")),
        exit_status: None,
        outcome: None,
        events: vec![
            Event::Issue { text: secret.clone() },
            Event::Thought { text: secret.clone() },
            Event::command(format!("curl -H {secret}")),
            Event::Observation { text: secret.clone(), exit_code: Some(0) },
            Event::Submission { patch: secret.clone() },
            Event::Ended { status: None, resolved: None },
        ],
    };
    let mut found = Redactions::default();
    redact_run(&mut run, &mut found);
    assert!(!serde_json::to_string(&run).unwrap().contains(&secret));
    assert_eq!(found.replaced, BTreeMap::from([("github-token".to_owned(), 7)]));
    assert_eq!(run.issue, "a [redacted:github-token]");
}

#[test]
fn long_texts_take_time_in_proportion() {
    // texts that make careless patterns look back again and again
    let word = |piece: &str| piece.repeat(400_000 / piece.len());
    for text in
        [word("token="), word("a:"), word("-----BEGIN PRIVATE KEY-----"), word("x://a:b"), word("password")]
    {
        let started = std::time::Instant::now();
        redact(&text, &mut Redactions::default());
        assert!(started.elapsed().as_secs() < 20, "{}", &text[..20]);
    }
}

/// Where `MEMTRIAL_DATA` names the folder of real data: what 416 real runs hold.
#[test]
fn real_runs_raise_no_false_alarm() {
    use crate::dataset::{Chronology, History, HistoryStore, MergeDates};
    use crate::memory::host::Experiences;

    let Ok(data) = std::env::var("MEMTRIAL_DATA") else { return };
    let folder = std::path::Path::new(&data).join("trajectories/swebench-verified_gemini3pro_mini-1.15");
    let store = HistoryStore::open(&folder).unwrap();
    let repos: std::collections::BTreeSet<String> = store.ids().map(|id| id.repo_key().to_owned()).collect();
    let (mut found, mut runs) = (Redactions::default(), 0);
    for repo in repos {
        let target = crate::task::InstanceId::parse(&format!("{repo}-99999999")).unwrap();
        let history =
            History::for_target(&store, &target, Chronology::Number, &MergeDates::default()).unwrap();
        for id in history.eligible() {
            let mut run = history.read(&id, true).unwrap();
            redact_run(&mut run, &mut found);
            runs += 1;
        }
    }
    assert_eq!(runs, 416);
    assert_eq!(found.replaced, BTreeMap::new());
}
