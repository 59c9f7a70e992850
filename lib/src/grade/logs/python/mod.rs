//! Python.

mod bin_test;
mod django;
mod nebo;
mod pytest;
mod pytest_lines;
mod reports;
mod summary;
mod sympy;
#[cfg(test)]
mod tests;
mod tox;
mod unittest;

use super::scan::{each, whole};
use super::table::{Family, Origin, Parser, Split};
use super::text::words;
use Origin::{Memtrial, SweBench4, SweBench5, SweRebench2};

const PYTEST: Parser = Parser {
    name: "parse_log_pytest",
    origin: SweRebench2,
    language: "Python",
    framework: "pytest -rA",
    reads: &[],
    split: Split::Lf,
    upstream: Some(|| each(|line, found| summary::summary(line, SweRebench2, str::to_owned, found))),
    strict: || pytest::strict(first_word),
};

const OPTIONS: Parser = Parser {
    name: "parse_log_pytest_options",
    upstream: Some(|| {
        each(|line, found| summary::summary(line, SweRebench2, summary::shorten_option, found))
    }),
    strict: || pytest::strict(|id| first_word(id).map(|word| summary::shorten_option(&word))),
    ..PYTEST
};

const V2: Parser = Parser {
    name: "parse_log_pytest_v2",
    framework: "pytest, coloured",
    upstream: Some(|| Box::new(summary::V2(SweRebench2))),
    strict: || pytest::strict(|id| first_word(&summary::clean(id))),
    ..PYTEST
};

const NEBO: Parser = Parser {
    name: "parse_log_pytest_nebo",
    framework: "pytest -v",
    split: Split::Unicode,
    upstream: Some(|| each(nebo::upstream)),
    strict: || pytest::strict(|id| Some(nebo::name(&summary::clean(id)).to_owned())),
    ..PYTEST
};

const MATPLOTLIB: Parser = Parser {
    name: "parse_log_matplotlib",
    upstream: Some(|| each(|line, found| matplotlib(line, SweRebench2, found))),
    strict: || pytest::strict(|id| first_word(&summary::number_buttons(id))),
    ..PYTEST
};

const SEABORN: Parser = Parser {
    name: "parse_log_seaborn",
    framework: "pytest -v",
    upstream: Some(|| Box::new(summary::Seaborn(SweRebench2))),
    ..PYTEST
};

const DJANGO: Parser = Parser {
    name: "parse_log_django",
    framework: "Django's test runner -v 2",
    upstream: Some(|| Box::new(django::Django::default())),
    strict: unittest::strict,
    ..PYTEST
};

const SYMPY: Parser = Parser {
    name: "parse_log_sympy",
    framework: "sympy's bin/test -v",
    upstream: Some(|| each(|line, found| sympy::upstream(line, SweRebench2, found))),
    strict: bin_test::strict,
    ..PYTEST
};

const COMBINED: Parser = Parser {
    name: "parse_combined_test_reports",
    framework: "JUnit XML",
    reads: &[reports::REPORTS],
    upstream: Some(|| whole(reports::combined)),
    strict: || each(|_, _| {}),
    ..PYTEST
};

/// The same rule under another origin.
const fn of(origin: Origin, parser: Parser) -> Parser {
    Parser { origin, ..parser }
}

pub(super) const FAMILY: Family = Family {
    parsers: &[
        PYTEST,
        OPTIONS,
        V2,
        NEBO,
        MATPLOTLIB,
        SEABORN,
        DJANGO,
        SYMPY,
        COMBINED,
        Parser { name: "parse_test_report", upstream: Some(|| whole(reports::report)), ..COMBINED },
        of(SweBench4, DJANGO),
        of(SweBench5, DJANGO),
        of(SweBench4, SEABORN),
        Parser { origin: SweBench5, upstream: Some(|| Box::new(summary::Seaborn(SweBench5))), ..SEABORN },
        Parser { origin: SweBench4, upstream: Some(|| each(sympy_uncut)), ..SYMPY },
        Parser { origin: SweBench5, upstream: Some(|| each(sympy_uncut)), ..SYMPY },
        Parser {
            origin: SweBench4,
            upstream: Some(|| each(|line, found| summary::summary(line, SweBench4, str::to_owned, found))),
            ..PYTEST
        },
        Parser {
            origin: SweBench5,
            upstream: Some(|| each(|line, found| summary::summary(line, SweBench5, str::to_owned, found))),
            ..PYTEST
        },
        Parser {
            origin: SweBench4,
            upstream: Some(|| {
                each(|line, found| summary::summary(line, SweBench4, summary::shorten_option, found))
            }),
            ..OPTIONS
        },
        Parser {
            origin: SweBench5,
            upstream: Some(|| {
                each(|line, found| summary::summary(line, SweBench5, summary::shorten_option, found))
            }),
            ..OPTIONS
        },
        Parser { origin: SweBench4, upstream: Some(|| Box::new(summary::V2(SweBench4))), ..V2 },
        Parser {
            origin: SweBench5,
            upstream: Some(|| Box::new(summary::V2(SweBench5))),
            strict: || pytest::strict(|id| Some(all_words(&summary::clean(id)))),
            ..V2
        },
        Parser {
            origin: SweBench4,
            upstream: Some(|| each(|line, found| matplotlib(line, SweBench4, found))),
            ..MATPLOTLIB
        },
        Parser {
            origin: SweBench5,
            upstream: Some(|| each(|line, found| matplotlib(line, SweBench5, found))),
            ..MATPLOTLIB
        },
        Parser {
            name: "tox",
            framework: "tox: pytest, unittest",
            upstream: None,
            strict: tox::strict,
            ..of(Memtrial, PYTEST)
        },
        Parser { name: "unittest", framework: "unittest, nose2", upstream: None, ..of(Memtrial, DJANGO) },
    ],
    aliases: &[
        ("parse_log_astroid", "parse_log_pytest"),
        ("parse_log_astropy", "parse_log_pytest_v2"),
        ("parse_log_dvc", "parse_log_pytest"),
        ("parse_log_flask", "parse_log_pytest"),
        ("parse_log_marshmallow", "parse_log_pytest"),
        ("parse_log_pvlib", "parse_log_pytest"),
        ("parse_log_pydantic", "parse_log_pytest"),
        ("parse_log_pydicom", "parse_log_pytest_options"),
        ("parse_log_pylint", "parse_log_pytest_options"),
        ("parse_log_pyvista", "parse_log_pytest"),
        ("parse_log_requests", "parse_log_pytest_options"),
        ("parse_log_scikit", "parse_log_pytest_v2"),
        ("parse_log_sphinx", "parse_log_pytest_v2"),
        ("parse_log_sqlfluff", "parse_log_pytest"),
        ("parse_log_xarray", "parse_log_pytest"),
    ],
};

fn first_word(id: &str) -> Option<String> {
    words(id).next().map(str::to_owned)
}

fn all_words(id: &str) -> String {
    words(id).collect::<Vec<_>>().join(" ")
}

fn matplotlib(line: &str, origin: Origin, found: &mut super::found::Found) {
    summary::summary(&summary::number_buttons(line), origin, str::to_owned, found);
}

fn sympy_uncut(line: &str, found: &mut super::found::Found) {
    sympy::upstream(line, SweBench4, found);
}
