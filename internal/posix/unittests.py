"""unittests.py RESULTS MODULE...: runs test modules and writes what became of each test, as JSON: its name and
"ok", "skipped: REASON", "failed: LAST LINE" and so on. Started the same way bare and in a run."""

import json
import os
import sys
import unittest

outcomes = {}


class Result(unittest.TextTestResult):
    def note(self, test, outcome):
        # A test that fails in several ways, as with sub-tests, keeps them all.
        outcomes.setdefault(test.id(), []).append(outcome)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "ok")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped: " + reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, f"failed: {err[0].__name__}: {err[1]}")

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, f"failed: {err[0].__name__}: {err[1]}")

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.note(test, "failed as expected")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note(test, "succeeded unexpectedly")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(subtest, f"failed: {err[0].__name__}: {err[1]}")


results = sys.argv[1]
os.makedirs(os.environ["TMPDIR"], exist_ok=True)
suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[2:])
unittest.TextTestRunner(verbosity=2, resultclass=Result).run(suite)
with open(results, "w", encoding="utf-8", errors="backslashreplace") as f:
    json.dump(outcomes, f, indent=1, sort_keys=True)
