//! The family's parsers.

use super::super::scan::{Format, Scan, whole};
use super::super::structured::javascript_json::{MOCHA_STREAM, REPORT};
use super::super::structured::junit::JUNIT;
use super::super::structured::tap::TAP;
use super::super::table::{Origin, Parser, Split};
use super::rule::{Alias, by_line, keeping_failures, last};
use super::upstream::{eslint, jest as jest_rules, karma as karma_rules, marks, mocha as mocha_rules};
use super::upstream::{p5js, quarto, runs, tap as tap_rules, vitest as vitest_rules};
use super::{any, ava, deno, jasmine, jest, karma, mocha, node, playwright, tap, vitest};

const JEST: &[Format] = &[REPORT, JUNIT];
const VITEST: &[Format] = &[REPORT, TAP, JUNIT];
const MOCHA: &[Format] = &[REPORT, MOCHA_STREAM, TAP, JUNIT];

type Open = fn() -> Box<dyn Scan>;

/// A parser of SWE-rebench V2 that splits at line feeds.
const fn row(
    name: &'static str,
    framework: &'static str,
    reads: &'static [Format],
    upstream: Open,
    strict: Open,
) -> Parser {
    Parser {
        name,
        origin: Origin::SweRebench2,
        language: "JavaScript and TypeScript",
        framework,
        reads,
        split: Split::Lf,
        upstream: Some(upstream),
        strict,
    }
}

const fn unicode(parser: Parser) -> Parser {
    Parser { split: Split::Unicode, ..parser }
}

/// The same rules as another project has them.
const fn of_4(parser: Parser) -> Parser {
    Parser { origin: Origin::SweBench4, ..parser }
}

/// The same rules as another project has them.
const fn of_5(parser: Parser) -> Parser {
    Parser { origin: Origin::SweBench5, ..parser }
}

const fn own(name: &'static str, framework: &'static str, reads: &'static [Format], strict: Open) -> Parser {
    Parser { origin: Origin::Memtrial, upstream: None, ..row(name, framework, reads, strict, strict) }
}

const JS: Parser = unicode(row(
    "parse_log_js",
    "mocha",
    MOCHA,
    || keeping_failures(by_line(mocha_rules::titled)),
    || any::strict(|| Alias::new(by_line(mocha_rules::titled)), None),
));
const JS_2: Parser = unicode(row(
    "parse_log_js_2",
    "mocha",
    MOCHA,
    || keeping_failures(by_line(mocha_rules::numbered)),
    || any::strict(|| Alias::new(by_line(mocha_rules::numbered)), None),
));
const JS_3: Parser = unicode(row(
    "parse_log_js_3",
    "node:test, TAP",
    MOCHA,
    || keeping_failures(tap_rules::tree()),
    || tap::strict(Alias::new(tap_rules::tree())),
));
const JS_4: Parser = unicode(row(
    "parse_log_js_4",
    "jest, vitest, playwright, mocha",
    MOCHA,
    || keeping_failures(by_line(marks::marks)),
    || any::strict(|| Alias::new(by_line(marks::marks)), Some(any::marked)),
));
const NPX: Parser = unicode(row(
    "parse_log_npx",
    "mocha, AVA",
    MOCHA,
    || last(by_line(mocha_rules::npx)),
    || any::strict(|| Alias::new(by_line(mocha_rules::npx)), None),
));
const JEST_VERBOSE: Parser = row(
    "parse_log_jest",
    "jest --verbose",
    JEST,
    || last(by_line(jest_rules::verbose)),
    || jest::strict(Alias::new(by_line(jest_rules::verbose))),
);
const JEST_JSON_LINES: Parser = row(
    "parse_log_jest_json",
    "jest, flattened JSON",
    JEST,
    || last(by_line(jest_rules::json_lines)),
    jest::json_lines,
);
const VITEST_VERBOSE: Parser = row(
    "parse_log_vitest",
    "vitest",
    VITEST,
    || last(by_line(vitest_rules::verbose)),
    || vitest::strict(Alias::new(by_line(vitest_rules::verbose))),
);
const TAP_FLAT: Parser = row(
    "parse_log_tap",
    "TAP",
    &[],
    || last(by_line(tap_rules::flat)),
    || tap::strict(Alias::new(by_line(tap_rules::flat))),
);
const KARMA: Parser = row(
    "parse_log_karma",
    "karma",
    &[],
    || last(karma_rules::tree()),
    || karma::strict(Alias::new(karma_rules::tree())),
);
const REACT_PDF: Parser = row(
    "parse_log_react_pdf",
    "jest",
    JEST,
    || last(by_line(jest_rules::files)),
    || jest::strict(Alias::new(by_line(jest_rules::files))),
);
const CALYPSO: Parser = row(
    "parse_log_calypso",
    "jest --verbose",
    JEST,
    || last(jest_rules::calypso("ValueError")),
    || jest::strict(Alias::new(jest_rules::calypso("ValueError"))),
);
const CHART_JS: Parser = row(
    "parse_log_chart_js",
    "karma",
    &[],
    || last(karma_rules::chrome()),
    || karma::strict(Alias::new(karma_rules::chrome())),
);
const MARKED: Parser = row(
    "parse_log_marked",
    "Jasmine",
    &[],
    || last(by_line(mocha_rules::failures)),
    || jasmine::strict(Alias::new(by_line(mocha_rules::failures))),
);
const P5JS: Parser = row(
    "parse_log_p5js",
    "mocha",
    MOCHA,
    || whole(p5js::failures),
    || any::strict(|| Alias::told(|name, _| name.replace(" > ", ":")), None),
);

/// `PASS` and `FAIL` lines as SWE-bench cuts them.
const FILES: Parser = row(
    "parse_log_react_pdf",
    "jest",
    JEST,
    || last(by_line(jest_rules::files_cut)),
    || jest::strict(Alias::new(by_line(jest_rules::files_cut))),
);
const CALYPSO_OF_SWE_BENCH: Parser = row(
    "parse_log_calypso",
    "jest --verbose",
    JEST,
    || last(jest_rules::calypso("AttributeError")),
    || jest::strict(Alias::new(jest_rules::calypso("AttributeError"))),
);

/// A parser of SWE-bench 5 for whole logs.
const fn whole_5(name: &'static str, framework: &'static str, upstream: Open, strict: Open) -> Parser {
    of_5(row(name, framework, MOCHA, upstream, strict))
}

/// Suites and title, joined as some references join them.
fn joined() -> Alias {
    Alias::told(|name, _| name.replace(" > ", " - "))
}

pub(super) const PARSERS: &[Parser] = &[
    JEST_VERBOSE,
    JEST_JSON_LINES,
    JS,
    JS_2,
    JS_3,
    JS_4,
    NPX,
    VITEST_VERBOSE,
    TAP_FLAT,
    KARMA,
    REACT_PDF,
    CALYPSO,
    CHART_JS,
    MARKED,
    P5JS,
    of_4(JEST_VERBOSE),
    of_4(JEST_JSON_LINES),
    of_4(VITEST_VERBOSE),
    of_4(TAP_FLAT),
    of_4(KARMA),
    of_4(CHART_JS),
    of_4(MARKED),
    of_4(P5JS),
    of_4(FILES),
    of_4(CALYPSO_OF_SWE_BENCH),
    of_4(row(
        "parse_log_immutable_js",
        "jest",
        JEST,
        || last(by_line(jest_rules::verbose_or_json_lines)),
        || jest::verbose_or_json_lines(Alias::new(by_line(jest_rules::verbose))),
    )),
    of_5(row(
        "parse_log_jest",
        "jest --verbose",
        JEST,
        || last(by_line(jest_rules::verbose_trimmed)),
        || jest::strict(Alias::new(by_line(jest_rules::verbose_trimmed))),
    )),
    of_5(JEST_JSON_LINES),
    of_5(VITEST_VERBOSE),
    of_5(TAP_FLAT),
    of_5(KARMA),
    of_5(CHART_JS),
    of_5(MARKED),
    of_5(P5JS),
    of_5(FILES),
    of_5(CALYPSO_OF_SWE_BENCH),
    of_5(row(
        "parse_log_immutable_js",
        "jest",
        JEST,
        || last(by_line(jest_rules::verbose_trimmed_or_json_lines)),
        || jest::verbose_or_json_lines(Alias::new(by_line(jest_rules::verbose_trimmed))),
    )),
    of_5(Parser { name: "parse_log_carbon", ..FILES }),
    of_5(row(
        "parse_log_grommet",
        "jest",
        JEST,
        || whole(karma_rules::grommet),
        || jest::strict(Alias::new(by_line(jest_rules::files))),
    )),
    of_5(row(
        "parse_log_highlightjs",
        "mocha",
        MOCHA,
        || last(runs::highlight()),
        || mocha::strict(Alias::new(runs::highlight())),
    )),
    of_5(row(
        "parse_log_quarto_cli",
        "Deno",
        &[],
        || last(quarto::deno()),
        || deno::strict(Alias::new(quarto::deno())),
    )),
    of_5(row(
        "parse_log_bpmn_js",
        "karma",
        &[],
        || whole(karma_rules::bpmn),
        || karma::strict(Alias::new(by_line(karma_rules::bpmn_line))),
    )),
    of_5(row(
        "parse_log_openlayers",
        "karma, mocha",
        MOCHA,
        || whole(karma_rules::openlayers),
        || any::strict(|| Alias::new(by_line(karma_rules::openlayers_line)), None),
    )),
    whole_5(
        "parse_log_eslint",
        "mocha",
        || whole(eslint::failures),
        || any::strict(|| Alias::told(|name, _| format!("{}:", name.replace(" > ", " "))), None),
    ),
    whole_5("parse_log_lighthouse", "mocha, jest", || whole(runs::lighthouse), || any::strict(joined, None)),
    whole_5("parse_log_next", "karma, Cypress", || whole(runs::next), || any::strict(joined, None)),
    whole_5(
        "parse_log_prismjs",
        "mocha",
        || whole(runs::prism),
        || any::strict(|| Alias::told(|name, _| name.replace(" > ", " ")), None),
    ),
    own("ava", "AVA", &[TAP], || ava::strict(Alias::new(by_line(marks::marks)))),
    own("jasmine", "Jasmine", &[], || jasmine::strict(Alias::new(by_line(mocha_rules::failures)))),
    own("node-test", "node:test", &[TAP], || node::strict(Alias::new(by_line(marks::marks)))),
    own("playwright", "Playwright", &[], || playwright::strict(Alias::new(by_line(marks::marks)))),
    own("tape", "tape", &[], || tap::tape(Alias::new(by_line(tap_rules::flat)))),
];
