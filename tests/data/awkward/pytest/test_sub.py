"""Subtests and reruns."""
import unittest

import pytest

runs = []


def test_some_subtests_fail(subtests):
    for i in range(3):
        with subtests.test("number is even", i=i):
            assert i % 2 == 0


def test_all_subtests_pass(subtests):
    for i in range(2):
        with subtests.test(i=i):
            pass


class Case(unittest.TestCase):
    def test_sub(self):
        for i in range(3):
            with self.subTest("with message", i=i):
                self.assertNotEqual(i, 1)

    def test_sub_passes(self):
        with self.subTest(i=1):
            pass


@pytest.mark.flaky(reruns=2)
def test_second_try():
    runs.append(1)
    assert len(runs) > 1


@pytest.mark.flaky(reruns=1)
def test_never():
    assert 0


def test_crash_is_no_result(): pass
