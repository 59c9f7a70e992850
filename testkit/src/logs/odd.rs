//! What logs hold beside what one expects. Only characters that Unicode 14 has: the reference's Python knows no later.

/// Python's white space, and what looks like it.
pub(super) const SPACES: &[&str] = &[
    "\t", "\u{b}", "\u{c}", "\u{1c}", "\u{1d}", "\u{1e}", "\u{1f}", " ", "\u{85}", "\u{a0}", "\u{1680}", "\u{2000}",
    "\u{2001}", "\u{2002}", "\u{2003}", "\u{2004}", "\u{2005}", "\u{2006}", "\u{2007}", "\u{2008}", "\u{2009}",
    "\u{200a}", "\u{2028}", "\u{2029}", "\u{202f}", "\u{205f}", "\u{3000}", "\u{200b}", "\u{feff}", "\u{180e}", " ",
    "  ", "   ", "    ", "\r", "\r\n",
];

/// Between lines; most often a line feed.
pub(super) const BREAKS: &[&str] = &[
    "\n", "\n", "\n", "\n", "\n", "\n", "\n", "\n", "\n", "\n", "\n", "\n", "\n\n", "\r\n", "\r", "\r\r\n", "\u{b}",
    "\u{c}", "\u{1c}", "\u{1e}", "\u{85}", "\u{2028}", " \n", "\n ",
];

/// Letters, digits and signs that regular expressions of two languages may take for different things.
pub(super) const SIGNS: &[&str] = &[
    "\u{301}", "e\u{301}", "²", "½", "Ⅷ", "٣", "१", "𝟗", "፩", "ı", "İ", "ſ", "\u{212a}", "ß", "ẞ", "ﬁ", "😀", "𝒳", "漢",
    "ª", "ʰ", "\u{200d}", "\u{203f}", "_", "é", "Σ", "ς", "µ", "μ", "ⓐ", "٠", "\u{20dd}", "\0", "\x01", "\x07", "\x08",
    "\x7f", "\u{9b}", "\u{fffd}", "\u{e000}", "A", "z", "0", "9", "-", ".", ",", ":", ";", "!", "?", "\"", "'", "`",
    "/", "\\", "|", "||", "&", "&&", "<", ">", "=", "+", "*", "#", "@", "$", "%", "^", "~", "(", ")", "[", "]", "{",
    "}", "()", "[]", "{}", "))", "]]", "((", "[[",
];

/// Terminal control sequences, whole and torn.
pub(super) const COLOURS: &[&str] = &[
    "\x1b[32m", "\x1b[0m", "\x1b[31m", "\x1b[1;31m", "\x1b[90m", "\x1b[m", "\x1b[K", "\x1b[2J", "\x1b[38;5;9m",
    "\x1b]0;t\x07", "\x1b]8;;u\x1b\\", "\x1bM", "\x1b(B", "\x1b", "\x1b[", "[32m", "[0m", "[31m", "[1;32m", "[90m",
    "[10m", "[m", "\x1b[3", "\x1b[٣m",
];

/// Words and signs by which runners tell results.
pub(super) const WORDS: &[&str] = &[
    "PASSED", "FAILED", "SKIPPED", "ERROR", "XFAIL", "XPASS", "PASS", "FAIL", "SKIP", "PENDING", "OK", "ok", "not ok",
    "FAILURE", "Failure", "SUCCESS", "passed", "failed", "skipped", "pending", "Passed", "Failed", "Skipped",
    "IGNORED", "CANCELED", "TODO", "ignored", "Success", "Fail", "Skip", "E", "F", ".", "S", "O", "P", "x", "✓", "✔",
    "✕", "✗", "✘", "✖", "×", "○", "◌", "◦", "⚪", "↓", "↩", "⨯", "√", "●", "∅", "☢", "⚠", "Timeout", "BUILD SUCCESS",
    "BUILD FAILURE", "[OK]", "[FAIL]", "(skipped)", "[skipped]", "[Skipped]", "# SKIP", "# TODO", "- ", "loading",
];

/// Durations and counts.
pub(super) const NUMBERS: &[&str] = &[
    "5ms", " 5ms", "(5 ms)", " (5 ms)", "(5ms)", " (1.5 s)", " 1.5s", " [3 ms]", " (0.00s)", " 0.02s", " in 0.02s",
    " (3 milliseconds)", "(1 second, 2 milliseconds)", "5\u{17f}", "5µs", "5μs", " (٣ms)", "1.2.3s", ".5s", "5.s",
    " 12 MS", " 3S", "1/2", "[ 50%]", "(3 tests)", " 7", "0", "00", "-1", "+1", "~1", "1e400", "007",
];

/// Between the parts of a line.
pub(super) const JOINTS: &[&str] = &[
    " - ", " :: ", "::", " > ", " in ", " ... ", "...", "..", " . ", ": ", " : ", " = ", " | ", " || ", "\t||\t", "#",
    " #", "*** ", " *** FAILED ***", " !!! IGNORED !!!", " ran 3 tests in 1 msec ", " && ", "; ", ", ", " -Dtest=",
    " {", "}", "<a>", "</a>",
];

/// What breaks or bends XML.
pub(super) const XML: &[&str] = &[
    "&amp;", "&lt;", "&quot;", "&#10;", "&#9;", "&#x41;", "&#0;", "&#1;", "&#xD800;", "&#x110000;", "&nope;", "&", "<",
    ">", "<![CDATA[ <x> ]]>", "]]>", "<!-- c -->", "<!-- a -- b -->", "<!--", "<?pi x?>", "<?xml version=\"1.0\"?>",
    "<?xml version=\"1.1\"?>", "<?xml version='1.0' encoding='latin-1'?>", "<?xml version=\"1.0\" encoding=\"utf-16\"?>",
    "<?xml", "<!DOCTYPE a>", "<!DOCTYPE a [<!ENTITY e \"v\">]>", "&e;", "name=\"twice\"", " name='q'", " name=\"a\tb\"",
    " xmlns=\"u\"", " xmlns:p=\"u\"", "<p:testcase name=\"n\"/>", "<testcase", "<testcase name=\"n\"/>", "</testcase>",
    "<testcase name=\"\" classname=\"\"/>", "<testsuite>", "</testsuite>", "<testsuites>", "</testsuites>", "<failure/>",
    "<error/>", "<skipped/>", "<failure message=\"a &gt; b\">t</failure>", "<system-out><error</system-out>", "/>",
    "\"", "'", "=", "<doctest>", "</doctest>", "<Expression success=\"false\"/>", "<Expression success=\"TRUE\"/>",
    "<SubCase name=\"s\"/>", "</SubCase>", "</TestCase>", "\x0b", "\x1b[0m", "\u{fffe}", "\u{85}", "\u{2028}", "é",
    "<é/>", "<a.b-c/>", "<1/>", " standalone=\"yes\"",
];

/// What breaks or bends JSON.
pub(super) const JSON: &[&str] = &[
    "NaN", "Infinity", "-Infinity", "null", "true", "false", "1", "1.0", "1.5", "-0", "-0.0", "1e2", "1E400", "-1e400",
    "01", "1.", ".5", "+1", "0x1", "[1]", "{}", "[]", "[[[[]]]]", "{\"a\":1}", "\"\\ud800\"", "\"\\ud83d\\ude00\"",
    "\"\\udc00x\"", "\"\\u0000\"", "\"\\n\"", "\"\\/\"", "\"\\x\"", "\"\t\"", "\"\u{7f}\"", "\"", ",", ":", ",,", "\\",
    "\"id\":2,", "\"name\":\"b\",", "\"hidden\":true,", "\"skipped\":true,", "\"result\":\"error\",", "\"testID\":true,",
    "\"testID\":\"1\",", "9007199254740993", "9007199254740992.0", "18446744073709551616", "1e16", "\u{a0}", "\u{feff}",
    "//c", "'a'", "{", "}", "[", "]",
];
