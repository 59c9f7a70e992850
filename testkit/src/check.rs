//! Compares a study's report with the effects that were planted.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Arguments of `memtrial-testkit check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The plan that `bundle` or `plant` wrote
    #[arg(long, value_name = "FILE")]
    pub expected: PathBuf,
    /// The study's report/report.json
    #[arg(long, value_name = "FILE")]
    pub report: PathBuf,
}

/// Says whether the report shows exactly the planted effects.
///
/// # Errors
/// Where it does not, with each target that differs.
pub fn run(args: &Args) -> Result<String> {
    let read = |path: &PathBuf| -> Result<Value> {
        serde_json::from_slice(&fs_err::read(path)?).with_context(|| path.display().to_string())
    };
    compare(&read(&args.expected)?, &read(&args.report)?)
}

fn compare(expected: &Value, report: &Value) -> Result<String> {
    let planned = expected.as_array().context("the plan is no list")?;
    let seen = resolved(report)?;
    let (mut faults, mut effects) = (Vec::new(), BTreeMap::new());
    for target in planned {
        let id = target["instance_id"].as_str().context("a target without instance_id")?;
        *effects.entry(target["effect"].as_str().unwrap_or("none")).or_insert(0) += 1;
        for condition in ["off", "bm25"] {
            let (planted, shown) = (target[condition].as_bool(), seen.get(&(id, condition)).copied());
            if planted != shown {
                faults.push(format!("{id} under {condition}: planted {planted:?}, shown {shown:?}"));
            }
        }
    }
    if !faults.is_empty() {
        bail!("the report does not show the planted effects:\n{}", faults.join("\n"));
    }
    let count = |effect: &str| effects.get(effect).copied().unwrap_or(0);
    let (gains, harms, none) = (count("gain"), count("harm"), count("none"));
    Ok(format!("as planted: {gains} gains, {harms} harms, {none} targets unmoved"))
}

/// Whether each target was resolved under each condition (one solver, one replicate).
fn resolved(report: &Value) -> Result<BTreeMap<(&str, &str), bool>> {
    let cells = |target: &Value| target["arms"].as_array().cloned().unwrap_or_default();
    let arms = report["arms"].as_array().context("the report has no arms")?;
    let mut seen = BTreeMap::new();
    for target in report["targets"].as_array().context("the report has no targets")? {
        let id = target["instance_id"].as_str().context("a target without instance_id")?;
        for (arm, cell) in arms.iter().zip(cells(target)) {
            let condition = arm["condition"].as_str().context("an arm without condition")?;
            seen.insert((id, condition), cell["resolved"].as_u64() == Some(1));
        }
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tells_what_differs() {
        let plan = json!([{"instance_id": "a__b-1", "effect": "gain", "off": false, "bm25": true}]);
        let report = |off: u64, bm25: u64| {
            json!({"arms": [{"condition": "bm25"}, {"condition": "off"}],
                "targets": [{"instance_id": "a__b-1", "arms": [{"resolved": bm25}, {"resolved": off}]}]})
        };
        assert_eq!(compare(&plan, &report(0, 1)).unwrap(), "as planted: 1 gains, 0 harms, 0 targets unmoved");
        let error = compare(&plan, &report(1, 1)).unwrap_err().to_string();
        assert!(error.contains("a__b-1 under off: planted Some(false), shown Some(true)"), "{error}");
        assert!(compare(&plan, &json!({"arms": [], "targets": []})).is_err());
    }
}
