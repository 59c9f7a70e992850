//! What needs the answer, for memory: whether a block gives it away ([`scan`]), the ceiling of a system that is asked by
//! someone who knows it ([`Oracle`]), and how well a system finds what is relevant ([`evaluate`]).
//!
//! All of it reads the evaluator's view of a target. It stands above memory and grading; nothing here runs before or
//! beside an agent, and nothing that it finds may reach one.

mod base;
mod diff;
mod leak;
mod oracle;
mod quality;

pub use base::AtBase;
pub use leak::{LEAK, LeakFinding, LeakKind, LeakScan, LeakVerdict, PATCH_OVERLAP, SUSPICIOUS, Source, scan};
pub use oracle::{ORACLE, Oracle, OracleSettings};
pub use quality::{
    AbstentionQuality, Answer, AtK, Evaluation, EvaluationError, KS, Level, LevelQuality, QualityReport,
    RankingQuality, Rate, Reference, Touch, evaluate,
};
