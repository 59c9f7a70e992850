//! `install_config` and its kin → [`Recipe`]: the keys of SWE-rebench v1 and V2, and Live's columns.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::error::RowError;
use super::fields::Fields;
use crate::task::Recipe;

/// Keys that only SWE-rebench v1 writes.
const V1_KEYS: [&str; 6] = ["python", "packages", "reqs_path", "env_yml_path", "pip_packages", "pre_install"];

/// Takes the recipe out of a row.
pub(super) fn take(fields: &mut Fields) -> Result<Recipe, Box<RowError>> {
    let mut recipe = match fields.object("install_config")? {
        Some(config) => from_config(fields, config)?,
        None => Recipe::default(),
    };
    let column = |fields: &mut Fields, name| match fields.take(name) {
        Some((found, value)) => fields.commands(found, value),
        None => Ok(Vec::new()),
    };
    // Live prints reports by commands of their own after the tests; what they print belongs to the log.
    let (tests, prints) = (column(fields, "test_cmds")?, column(fields, "print_cmds")?);
    let rebuild = column(fields, "rebuild_cmds")?;
    if recipe.test_cmd.is_empty() {
        recipe.test_cmd = tests;
        recipe.test_cmd.extend(prints);
    }
    if recipe.build.is_empty() {
        recipe.build = rebuild;
    }
    let parser = fields.name("log_parser")?;
    recipe.log_parser = recipe.log_parser.or(parser);
    Ok(recipe)
}

fn from_config(fields: &Fields, mut config: Map<String, Value>) -> Result<Recipe, Box<RowError>> {
    config.retain(|_, value| !value.is_null());
    let is_v1 =
        !config.contains_key("base_image_name") && V1_KEYS.iter().any(|key| config.contains_key(*key));
    let mut take = |key: &str| config.shift_remove(key).unwrap_or(Value::Null);
    let place = |key: &str| format!("install_config.{key}");
    let commands = |key: &str, value| fields.commands(&place(key), value);
    let text = |key: &str, value| match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok((!text.trim().is_empty()).then_some(text)),
        Value::Number(number) => Ok(Some(number.to_string())),
        other => Err(fields.wrong(&place(key), &other, "a text")),
    };
    let packages = match take("packages") {
        list @ Value::Array(_) => Some(commands("packages", list)?.join(" ")),
        other => text("packages", other)?,
    };
    let mut env = environment(fields, &place("env_vars"), take("env_vars"))?;
    env.extend(environment(fields, &place("env"), take("env"))?);
    Ok(Recipe {
        python: text("python", take("python"))?,
        packages,
        reqs_path: commands("reqs_path", take("reqs_path"))?,
        env_yml_path: commands("env_yml_path", take("env_yml_path"))?,
        pip_packages: commands("pip_packages", take("pip_packages"))?,
        pre_install: commands("pre_install", take("pre_install"))?,
        install: commands("install", take("install"))?,
        build: commands("build", take("build"))?,
        test_cmd: commands("test_cmd", take("test_cmd"))?,
        log_parser: text("log_parser", take("log_parser"))?,
        base_image_name: text("base_image_name", take("base_image_name"))?,
        env,
        tests_as_arguments: is_v1,
        other: config.into_iter().collect(),
    })
}

/// Environment variables: an object, or `NAME=value` texts.
fn environment(
    fields: &Fields,
    place: &str,
    value: Value,
) -> Result<BTreeMap<String, String>, Box<RowError>> {
    let pair = |(name, value)| match value {
        Value::String(text) => Ok(Some((name, text))),
        Value::Null => Ok(None),
        Value::Number(_) | Value::Bool(_) => Ok(Some((name, value.to_string()))),
        other => Err(fields.wrong(&format!("{place}.{name}"), &other, "a text")),
    };
    match value {
        Value::Null => Ok(BTreeMap::new()),
        Value::Object(object) => object.into_iter().map(pair).filter_map(Result::transpose).collect(),
        list => fields
            .commands(place, list)?
            .into_iter()
            .map(|text| match text.split_once('=') {
                Some((name, value)) => Ok((name.trim().to_owned(), value.to_owned())),
                None => Err(fields.error(
                    place.to_owned(),
                    format!("{text:?} sets no variable"),
                    "expected an object, or texts NAME=value",
                )),
            })
            .collect(),
    }
}
