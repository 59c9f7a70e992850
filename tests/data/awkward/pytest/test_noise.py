"""Tests whose output looks like pytest's own."""
import sys

import pytest


def test_ends_without_newline():
    print("no newline", end="")


def test_prints_another_result():
    print()
    print("test_noise.py::test_invented PASSED")


def test_prints_its_own_status_and_fails():
    print()
    print("PASSED")
    assert 0


def test_prints_a_session():
    print("=" * 29 + " test session starts " + "=" * 30)
    print("collected 1 item")
    print("test_inner.py::test_inner PASSED   [100%]")
    print("=" * 27 + " short test summary info " + "=" * 28)
    print("PASSED test_inner.py::test_in_summary")
    print("=" * 30 + " 1 passed in 0.01s " + "=" * 31)
    sys.stderr.write("ERROR: not an error\n")


def test_message_of_several_lines():
    raise ValueError("first line\nPASSED test_noise.py::test_in_message\nFAILED test_noise.py::test_ok - spoof")


def test_ok(): pass


def test_teardown(bad_teardown): pass


@pytest.mark.parametrize("value", ["a b", "x - y", "] PASSED (", "[", "a] b", "::", " lead", "100%]"])
def test_values(value): assert value != "x - y"


@pytest.mark.skip(reason="not (now) - later")
def test_skipped(): pass


@pytest.mark.xfail(reason="known - bug")
def test_xfails(): assert 0


@pytest.mark.xfail(reason="fixed [maybe]")
def test_xpasses(): pass


@pytest.mark.xfail(strict=True, reason="must fail")
def test_xpasses_strictly(): pass
