use super::*;
use serde_json::json;

fn headers(name: &'static str, value: &str) -> HeaderMap {
    HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_str(value).unwrap())])
}

#[test]
fn retry_after_in_all_its_spellings() {
    let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
    let after = |name, value: &str| retry_after(&headers(name, value), now);
    assert_eq!(after("retry-after", "7"), Some(Duration::from_secs(7)));
    assert_eq!(after("retry-after", " 0.5 "), Some(Duration::from_millis(500)));
    assert_eq!(after("retry-after", "Sun, 06 Nov 1994 08:50:00 GMT"), Some(Duration::from_secs(23)));
    assert_eq!(after("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
    assert_eq!(after("retry-after-ms", "1500"), Some(Duration::from_millis(1500)));
    for absurd in ["-3", "soon", "nan", "1e99", ""] {
        assert_eq!(after("retry-after", absurd), None, "{absurd}");
    }
    assert_eq!(retry_after(&HeaderMap::new(), now), None);
}

#[test]
fn what_a_status_means() {
    for status in [400, 401, 403, 404, 405, 413, 422, 308] {
        assert_eq!(meaning(status, &json!({}), ""), Meaning::Final(status));
    }
    for status in [408, 409, 425, 429, 500, 502, 503, 504, 520, 529] {
        assert_eq!(meaning(status, &json!({}), ""), Meaning::Passing);
    }
    assert_eq!(meaning(429, &json!({"code": "insufficient_quota"}), "pay"), Meaning::Final(429));
}

#[test]
fn a_prompt_that_does_not_fit_is_told_from_a_rate_limit() {
    let long = "This model's maximum context length is 8192 tokens.";
    for status in [400, 413, 422, 500] {
        assert_eq!(meaning(status, &json!({}), long), Meaning::TooLong);
    }
    assert_eq!(meaning(400, &json!({"code": "context_length_exceeded"}), ""), Meaning::TooLong);
    assert_eq!(meaning(400, &json!({"type": "exceed_context_size_error"}), ""), Meaning::TooLong);
    assert_eq!(meaning(429, &json!({}), "tokens per minute: prompt is too long"), Meaning::Passing);
    assert_eq!(meaning(401, &json!({}), long), Meaning::Final(401));
}

#[test]
fn addresses() {
    let transport = |url: &str| Transport::new(&Endpoint::new(url, "m"));
    let it = transport("http://user:secret@127.0.0.1:9/v1/?api-version=2").ok().unwrap();
    assert_eq!(it.label, "http://127.0.0.1:9/v1/");
    assert_eq!(it.url(&["chat", "completions"]).path(), "/v1/chat/completions");
    assert_eq!(it.url(&["models"]).query(), Some("api-version=2"));
    for bad in ["", "localhost:1", "ftp://h/v1", "/v1", "http://"] {
        let error = transport(bad).err().unwrap().to_string();
        assert!(error.contains("base-url must look like"), "{bad}: {error}");
    }
}

#[test]
fn a_key_that_no_header_can_carry_is_named_and_not_shown() {
    let endpoint = Endpoint::new("http://127.0.0.1:1/v1", "m").with_key(Secret::new("sk-with\nnewline"));
    let error = Transport::new(&endpoint).err().unwrap();
    assert!(
        error.to_string().contains("no HTTP header can carry") && !format!("{error:?}").contains("sk-with")
    );
}
