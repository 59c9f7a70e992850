//! A raw row → [`Task`], taken apart by visibility.

use serde_json::Value;

use super::error::{Problem, RowError, Severity};
use super::fields::Fields;
use super::recipe;
use crate::task::{EvaluatorView, HiddenView, InstanceId, SolverView, Task};

/// SWE-bench Pro names only the tag of its images.
const PRO_IMAGES: &str = "jefzda/sweap-images";

/// Understands a row. Warnings are what was mended on the way.
pub(super) fn task(mut fields: Fields) -> Result<(Task, Vec<Problem>), Box<RowError>> {
    let id = fields.required("instance_id")?;
    let instance_id = InstanceId::parse(&id).map_err(|error| {
        fields.error(
            "instance_id".to_owned(),
            error.to_string(),
            "without the pull request's number the task has no place in the causal order: give the row such an id",
        )
    })?;
    let mut warnings = Vec::new();
    let mut warn = |fields: &Fields, kind, field: &str, message: String, hint: &str| {
        warnings.push(Problem {
            severity: Severity::Warning,
            kind,
            at: *fields.error(field.to_owned(), message, hint),
        });
    };
    let by_id = format!("{}/{}", instance_id.owner(), instance_id.name());
    let repo = match fields.text("repo")? {
        Some(repo) => {
            if !repo.eq_ignore_ascii_case(&by_id) {
                let message = format!("says {repo:?}, the instance id says {by_id:?}");
                warn(&fields, "repo-mismatch", "repo", message, "histories are matched by the instance id");
            }
            repo
        }
        None => {
            warn(
                &fields,
                "repo-missing",
                "repo",
                format!("is missing; {by_id:?} is taken from the id"),
                "state it",
            );
            by_id
        }
    };
    let image_name = match (fields.name("image_name")?, fields.name("dockerhub_tag")?) {
        (None, Some(tag)) => Some(format!("{PRO_IMAGES}:{tag}")),
        (image, _) => image,
    };
    let solver = SolverView {
        repo,
        base_commit: fields.required("base_commit")?,
        problem_statement: fields.required("problem_statement")?,
        language: fields.name("language")?.map(|language| language.to_lowercase()),
        image_name,
        version: fields.name("version")?,
        recipe: recipe::take(&mut fields)?,
        instance_id,
    };
    let evaluator = EvaluatorView {
        patch: fields.text("patch")?.unwrap_or_default(),
        test_patch: fields.text("test_patch")?.unwrap_or_default(),
        fail_to_pass: fields.list("FAIL_TO_PASS")?,
        pass_to_pass: fields.list("PASS_TO_PASS")?,
    };
    let meta = fields.columns.get("meta").cloned().unwrap_or(Value::Null);
    let in_meta = match meta {
        Value::Null => None,
        meta => fields.as_object("meta", meta)?.get("merged_at").and_then(Value::as_str).map(str::to_owned),
    };
    let hidden = HiddenView {
        hints_text: fields.text("hints_text")?,
        pr_description: fields.text("pr_description")?,
        interface: fields.text("interface")?,
        created_at: fields.take("created_at").map(|(_, value)| value),
        merged_at: fields.name("merged_at")?.or(in_meta),
        other: fields.columns.into_iter().collect(),
    };
    Ok((Task { solver, hidden, evaluator }, warnings))
}
