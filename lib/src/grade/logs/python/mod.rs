//! Python.

use super::table::{Family, Origin, Parser, Split};
use super::{bridge, pytest};

pub(super) const FAMILY: Family = Family {
    name: "python",
    parsers: &[
        Parser {
            name: "parse_log_pytest",
            origin: Origin::SweRebench2,
            language: "Python",
            framework: "pytest -rA",
            reads: &[],
            split: Split::Lf,
            upstream: Some(|| bridge::last(pytest::upstream)),
            strict: || bridge::strict(pytest::strict),
        },
        Parser {
            name: "parse_log_pytest_nebo",
            origin: Origin::SweRebench2,
            language: "Python",
            framework: "pytest -v",
            reads: &[],
            split: Split::Lf,
            upstream: Some(|| bridge::last(pytest::nebo)),
            strict: || bridge::strict(pytest::nebo_strict),
        },
        Parser {
            name: "parse_log_pytest_options",
            origin: Origin::SweRebench2,
            language: "Python",
            framework: "pytest -rA",
            reads: &[],
            split: Split::Lf,
            upstream: Some(|| bridge::last(pytest::options)),
            strict: || bridge::strict(pytest::options_strict),
        },
        Parser {
            name: "parse_log_pytest_v2",
            origin: Origin::SweRebench2,
            language: "Python",
            framework: "pytest, coloured",
            reads: &[],
            split: Split::Lf,
            upstream: Some(|| bridge::last(pytest::v2)),
            strict: || bridge::strict(pytest::v2_strict),
        },
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
