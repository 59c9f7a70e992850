//! Where tasks and histories come from, and the causal rule.
//!
//! * [`read_tasks`], [`for_each_row`], [`check`]: rows of SWE-bench, SWE-rebench v1 and V2, VibeMemBench, SWE-Gym,
//!   SWE-bench Multilingual, Pro and Live, from JSON, JSONL (plain, gzip, zstd) and parquet. [`COLUMNS`] says which
//!   column becomes which field, and who may see it.
//! * [`HistoryStore`]: a folder of trajectories of earlier tasks.
//! * [`History`]: what one target may learn from. Its only constructor applies the causal rule.

mod check;
mod columns;
mod date;
mod decode;
mod error;
mod fields;
mod history;
mod others;
mod parquet;
mod recipe;
mod rows;
mod source;
mod store;
mod tasks;

pub use check::{CheckReport, FileCount, check};
pub use columns::{COLUMNS, Column, Visibility};
pub use error::{DatasetError, Problem, RowError, Severity};
pub(crate) use history::refusal;
pub use history::{Chronology, Disagreement, Entry, History, MergeDates, Refusal};
pub use others::OtherRepositories;
pub use store::HistoryStore;
pub use tasks::{ReadRow, TaskFile, for_each_row, read_tasks, read_tasks_leniently};
