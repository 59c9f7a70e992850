//! Jinja2 templates, rendered as Jinja2 would render them for mini-swe-agent: undefined names are errors, Python's
//! string methods work, and values print as Python prints them.

use std::sync::LazyLock;

use minijinja::value::{Kwargs, Serde, Value as Jinja, ValueKind};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};
use serde_json::{Map, Value};

/// A template that cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the template {name} cannot be rendered: {reason}")]
pub struct TemplateError {
    /// The configuration key, for example `agent.instance_template`.
    pub name: String,
    /// What is wrong, with the line in the template.
    pub reason: String,
    /// The name of the exception that mini-swe-agent would end with.
    pub class: &'static str,
}

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_filter("tojson", tojson);
    environment.set_formatter(|out, state, value| match value.kind() {
        ValueKind::None | ValueKind::Bool | ValueKind::Number | ValueKind::Map | ValueKind::Seq => {
            out.write_str(&repr(value)?).map_err(Error::from)
        }
        _ => minijinja::escape_formatter(out, state, value),
    });
    environment
});

/// Renders a template. `name` is the configuration key that errors name.
pub(super) fn render(
    name: &str,
    template: &str,
    variables: &Map<String, Value>,
) -> Result<String, TemplateError> {
    ENVIRONMENT.render_str(template, Jinja::from(Serde(variables))).map_err(|error| failed(name, &error))
}

/// Whether a template names a variable.
pub(super) fn names(template: &str, variable: &str) -> bool {
    let parsed = ENVIRONMENT.template_from_str(template);
    parsed.is_ok_and(|template| template.undeclared_variables(false).contains(variable))
}

/// Finds syntax errors without rendering.
pub(super) fn check(name: &str, template: &str) -> Result<(), TemplateError> {
    ENVIRONMENT.template_from_str(template).map(drop).map_err(|error| failed(name, &error))
}

fn failed(name: &str, error: &Error) -> TemplateError {
    let class = match error.kind() {
        ErrorKind::UndefinedError => "UndefinedError",
        ErrorKind::SyntaxError => "TemplateSyntaxError",
        _ => "TemplateRuntimeError",
    };
    let mut reason = error.to_string();
    if let Some(place) = reason.find(" (in ") {
        reason.truncate(place);
    }
    if let Some(line) = error.line() {
        reason.push_str(&format!(" (line {line})"));
    }
    TemplateError { name: name.to_owned(), reason, class }
}

/// `repr` of a Python value, as `str()` prints it inside containers and for the constants.
fn repr(value: &Jinja) -> Result<String, Error> {
    let mut text = String::new();
    write_repr(&json_of(value)?, &mut text);
    Ok(text)
}

fn json_of(value: &Jinja) -> Result<Value, Error> {
    serde_json::to_value(value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()).with_source(error))
}

fn write_repr(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(number) => out.push_str(&number_repr(number)),
        Value::String(text) => write_str_repr(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_repr(item, out);
            }
            out.push(']');
        }
        Value::Object(entries) => {
            out.push('{');
            for (index, (key, item)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_str_repr(key, out);
                out.push_str(": ");
                write_repr(item, out);
            }
            out.push('}');
        }
    }
}

/// Python writes floats outside 1e-4..1e16 with an exponent of two digits at least.
fn number_repr(number: &serde_json::Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    let scientific = format!("{float:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        -4..16 => format!("{float:?}"),
        exponent => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
    }
}

fn write_str_repr(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if (c as u32) < 0x20 || (0x7f..0xa1).contains(&(c as u32)) => {
                out.push_str(&format!("\\x{:02x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}

/// Jinja2's `tojson`: Python's `json.dumps` with sorted keys and all non-ASCII escaped, made safe for HTML.
fn tojson(value: &Jinja, indent: Option<usize>, kwargs: Kwargs) -> Result<Jinja, Error> {
    let indent = match indent {
        Some(indent) => Some(indent),
        None => kwargs.get::<Option<usize>>("indent")?,
    };
    kwargs.assert_all_used()?;
    let mut text = String::new();
    write_json(&json_of(value)?, indent, 0, &mut text);
    Ok(Jinja::from_safe_string(text))
}

fn write_json(value: &Value, indent: Option<usize>, depth: usize, out: &mut String) {
    let line = |depth: usize, out: &mut String| {
        if let Some(width) = indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', width * depth));
        }
    };
    let comma = if indent.is_some() { "," } else { ", " };
    match value {
        Value::String(text) => write_json_string(text, out),
        Value::Array(items) if !items.is_empty() => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(comma);
                }
                line(depth + 1, out);
                write_json(item, indent, depth + 1, out);
            }
            line(depth, out);
            out.push(']');
        }
        Value::Object(entries) if !entries.is_empty() => {
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, item)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push_str(comma);
                }
                line(depth + 1, out);
                write_json_string(key, out);
                out.push_str(": ");
                write_json(item, indent, depth + 1, out);
            }
            line(depth, out);
            out.push('}');
        }
        Value::Number(number) => out.push_str(&number_repr(number)),
        plain => out.push_str(&plain.to_string()),
    }
}

fn write_json_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\'' => out.push_str(&format!("\\u{:04x}", c as u32)),
            ' '..='~' => out.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rendered(template: &str, variables: Value) -> String {
        render("t", template, variables.as_object().unwrap()).unwrap()
    }

    #[test]
    fn tojson_escapes_as_jinja2_does() {
        let text = json!({"x": "<a href='é'>&\n\"\\ 😀\u{7f}\u{1}"});
        assert_eq!(
            rendered("{{ x | tojson }}", text),
            r#""\u003ca href=\u0027\u00e9\u0027\u003e\u0026\n\"\\ \ud83d\ude00\u007f\u0001""#
        );
        let nested = json!({"x": {"b": [1, 2.5, null, true], "a": {}}});
        assert_eq!(rendered("{{ x | tojson }}", nested.clone()), r#"{"a": {}, "b": [1, 2.5, null, true]}"#);
        assert_eq!(
            rendered("{{ x | tojson(indent=1) }}", nested),
            "{\n \"a\": {},\n \"b\": [\n  1,\n  2.5,\n  null,\n  true\n ]\n}"
        );
    }

    #[test]
    fn values_print_as_in_python() {
        let floats = json!({"x": [0.1, 0.0001, 0.00001, -2.5e-7, 1e15, 1e16, 1.5e300, 0.0, 7]});
        assert_eq!(
            rendered("{{x[2]}} {{x}} {{x|tojson}}", floats),
            "1e-05 [0.1, 0.0001, 1e-05, -2.5e-07, 1000000000000000.0, 1e+16, 1.5e+300, 0.0, 7] \
             [0.1, 0.0001, 1e-05, -2.5e-07, 1000000000000000.0, 1e+16, 1.5e+300, 0.0, 7]"
        );
        let variables = json!({"n": null, "t": true, "f": 3.0, "l": ["a", "it's", 1], "m": {"k": false}});
        assert_eq!(
            rendered("{{n}} {{t}} {{f}} {{l}} {{m}}", variables),
            "None True 3.0 ['a', \"it's\", 1] {'k': False}"
        );
    }

    #[test]
    fn an_undefined_name_is_an_error_that_names_template_and_line() {
        let error = render("agent.instance_template", "a\n{{ nothing }}", &Map::new()).unwrap_err();
        assert_eq!(error.class, "UndefinedError");
        assert_eq!(
            error.to_string(),
            "the template agent.instance_template cannot be rendered: undefined value: `nothing` is undefined (line 2)"
        );
        assert_eq!(check("t", "{% if %}").unwrap_err().class, "TemplateSyntaxError");
    }

    #[test]
    fn lengths_and_slices_count_code_points() {
        assert_eq!(rendered("{{ x|length }} {{ x[:2] }} {{ x[-1:] }}", json!({"x": "é😀b"})), "3 é😀 b");
    }
}
