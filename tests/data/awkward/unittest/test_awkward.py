"""Tests whose output looks like unittest's own."""
import sys
import unittest


class Names(unittest.TestCase):
    def test_ok(self): pass

    def test_same_docstring(self):
        """One docstring."""

    def test_same_docstring_fails(self):
        """One docstring."""
        self.fail()

    def test_docstring_with_dots(self):
        """A docstring ... with dots ... ok"""
        self.fail("wrong ... ok")

    def test_docstring_is_a_result(self):
        """test_ok (test_awkward.Names.test_ok) ... FAIL"""


class Prints(unittest.TestCase):
    def test_a_result(self):
        print("test_invented (test_awkward.Prints) ... ok", flush=True)

    def test_b_result_in_its_own_line(self):
        print("\ntest_invented (test_awkward.Prints) ... ok", flush=True)

    def test_c_status_and_fails(self):
        print("\nok", flush=True)
        self.fail()

    def test_d_without_newline(self):
        print("no newline", end="", flush=True)

    def test_e_after_it(self): pass

    def test_f_heading(self):
        print("\nFAIL: test_ok (test_awkward.Names.test_ok)", flush=True)

    def test_g_docstring(self):
        """With a docstring."""
        print("output", flush=True)
        raise KeyError("x")

    def test_h_total(self):
        print("\nRan 3 tests in 0.001s\n\nOK", flush=True)


class Outcomes(unittest.TestCase):
    @unittest.skip("later ... ok")
    def test_skip(self): pass

    def test_skip_inside(self): self.skipTest("two\nlines")

    @unittest.expectedFailure
    def test_xfail(self): self.fail()

    @unittest.expectedFailure
    def test_unexpected(self): pass

    def test_sub_fails(self):
        for i in range(3):
            with self.subTest("message", i=i):
                self.assertNotEqual(i, 1)

    def test_sub_skips(self):
        for i in range(3):
            with self.subTest(i=i):
                if i == 1:
                    self.skipTest("one")

    def test_sub_passes(self):
        with self.subTest(i=0):
            pass

    def test_error(self): raise RuntimeError("x")


class SetUpClass(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise RuntimeError("class set-up")

    def test_never_runs(self): pass


class TearDownClass(unittest.TestCase):
    @classmethod
    def tearDownClass(cls): raise RuntimeError("class tear-down")

    def test_runs(self): pass


class TearDown(unittest.TestCase):
    def tearDown(self): raise RuntimeError("tear-down")

    def test_runs(self): pass


@unittest.skip("whole class")
class Skipped(unittest.TestCase):
    def test_one(self): pass
