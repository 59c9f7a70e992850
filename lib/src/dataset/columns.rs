//! Which column of which data set becomes which field, and who may see it.

use serde::Serialize;

/// Who may see a column (VibeMemBench's classes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// Prompts, memory queries and the sandbox.
    Solver,
    /// No one at run time.
    Hidden,
    /// The grading step alone, after the agent has stopped.
    Evaluator,
}

/// A column that memtrial knows. Every column that is not listed is hidden and kept in `hidden.other`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Its usual name.
    pub name: &'static str,
    /// What other data sets call it, in order of preference.
    pub also: &'static [&'static str],
    /// Who may see it.
    pub visibility: Visibility,
    /// Where its content goes.
    pub field: &'static str,
}

const fn column(
    name: &'static str,
    also: &'static [&'static str],
    visibility: Visibility,
    field: &'static str,
) -> Column {
    Column { name, also, visibility, field }
}

use Visibility::{Evaluator, Hidden, Solver};

/// Every column that memtrial knows, of all data sets.
///
/// | Data set | What is its own |
/// |---|---|
/// | SWE-bench, Multilingual, SWE-Gym | lists may be JSON texts; `image`, `log_parser` (since v5) |
/// | SWE-rebench v1 | `docker_image`, `install_config` with v1 keys, `meta`, `license_name` |
/// | SWE-rebench V2, VibeMemBench | `image_name`, `install_config` with V2 keys, `interface`, `pr_description`, `meta` |
/// | SWE-bench Pro | `repo_language`, `fail_to_pass`, `pass_to_pass` as Python lists, `dockerhub_tag`, `interface` |
/// | SWE-bench Live | `test_cmds`, `rebuild_cmds`, `print_cmds`, `log_parser`, `docker_image`, `all_hints_text` |
pub const COLUMNS: &[Column] = &[
    column("instance_id", &[], Solver, "instance_id"),
    column("repo", &[], Solver, "repo"),
    column("base_commit", &[], Solver, "base_commit"),
    column("problem_statement", &[], Solver, "problem_statement"),
    column("language", &["repo_language"], Solver, "language"),
    column("image_name", &["docker_image", "image"], Solver, "image_name"),
    column("dockerhub_tag", &[], Solver, "image_name"),
    column("version", &[], Solver, "version"),
    column("install_config", &[], Solver, "recipe"),
    column("test_cmds", &["test_cmd"], Solver, "recipe.test_cmd"),
    column("print_cmds", &[], Solver, "recipe.test_cmd"),
    column("rebuild_cmds", &[], Solver, "recipe.build"),
    column("log_parser", &[], Solver, "recipe.log_parser"),
    column("hints_text", &["all_hints_text"], Hidden, "hints_text"),
    column("pr_description", &[], Hidden, "pr_description"),
    column("interface", &[], Hidden, "interface"),
    column("created_at", &[], Hidden, "created_at"),
    column("merged_at", &[], Hidden, "merged_at"),
    column("patch", &[], Evaluator, "patch"),
    column("test_patch", &[], Evaluator, "test_patch"),
    column("FAIL_TO_PASS", &["fail_to_pass"], Evaluator, "fail_to_pass"),
    column("PASS_TO_PASS", &["pass_to_pass"], Evaluator, "pass_to_pass"),
];

/// Every name of a column, the usual one first.
pub(super) fn names(name: &'static str) -> impl Iterator<Item = &'static str> {
    let also = COLUMNS.iter().find(|column| column.name == name).map_or(&[][..], |column| column.also);
    std::iter::once(name).chain(also.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_column_is_listed_twice() {
        let mut all: Vec<_> = COLUMNS.iter().flat_map(|c| names(c.name)).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    /// VibeMemBench's card states these classes.
    #[test]
    fn classes_are_those_of_the_card() {
        for (visibility, expected) in [
            (Hidden, &["pr_description", "created_at", "interface", "hints_text"][..]),
            (Evaluator, &["patch", "test_patch", "FAIL_TO_PASS", "PASS_TO_PASS"]),
            (
                Solver,
                &[
                    "instance_id",
                    "repo",
                    "base_commit",
                    "problem_statement",
                    "image_name",
                    "language",
                    "install_config",
                ],
            ),
        ] {
            for name in expected {
                let column = COLUMNS.iter().find(|c| c.name == *name).unwrap();
                assert_eq!(column.visibility, visibility, "{name}");
            }
        }
        assert!(
            COLUMNS.iter().all(|c| c.name != "meta" && c.name != "license"),
            "meta and license stay hidden"
        );
    }
}
