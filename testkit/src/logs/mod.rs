//! Test logs, made up: seeds in the formats of the runners, and what may go wrong with them.
//!
//! [`seeds`] are short logs of this project's own in the formats that the parsers read. [`Generator`] makes any number of
//! others of them: cut, glued, interleaved, coloured, with odd white space, line breaks, digits and letters, and with
//! broken XML and JSON. The same seed gives the same logs everywhere.

mod mutate;
mod odd;
mod random;

pub use mutate::Generator;
pub use random::Random;

/// A short log, and what it is for.
#[derive(Debug, Clone)]
pub struct Seed {
    /// The folder of the parsers (`python`).
    pub family: &'static str,
    /// The parsers whose rules it shows.
    pub parsers: Vec<&'static str>,
    /// The log.
    pub log: String,
}

macro_rules! files {
    ($($family:literal),*) => {
        &[$(($family, include_str!(concat!("../../../tests/data/logs/seeds/", $family, ".txt")))),*]
    };
}

const FILES: &[(&str, &str)] = files!(
    "c",
    "csharp",
    "dart",
    "elixir",
    "go",
    "haskell",
    "javascript",
    "julia",
    "jvm",
    "lua",
    "ocaml",
    "php",
    "python",
    "r",
    "ruby",
    "rust",
    "swift"
);

/// Every seed. In the files a log follows a line of `%%%%` and the names of its parsers; `␛` stands for ESC.
pub fn seeds() -> Vec<Seed> {
    FILES
        .iter()
        .flat_map(|(family, text)| {
            let logs = text.split("%%%% ").skip(1);
            logs.filter_map(move |section| {
                let (names, log) = section.split_once('\n')?;
                let log = log.strip_suffix('\n').unwrap_or(log).replace('␛', "\x1b");
                Some(Seed { family, parsers: names.split(' ').collect(), log })
            })
        })
        .collect()
}
