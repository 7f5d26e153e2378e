#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests of tools/count.py, which decides what tools/test.sh reports. usage: counting.py COUNT.PY"""
import json
import pathlib
import subprocess
import sys
import tempfile

PASS, FAIL, SKIP = "", "<failure/>", "<skipped/>"
# Meson's result, its subtests (None: a program without subtests), and the expected counts.
CASES = {
    "all_subtests_pass": ("OK", [PASS, PASS], "2 0 0"),
    "failing_subtest_counts_once": ("FAIL", [PASS, FAIL, PASS], "2 1 0"),
    "skipped_subtests_are_not_passed": ("OK", [PASS, SKIP], "1 0 1"),
    "everything_skipped": ("SKIP", [SKIP], "0 0 1"),
    "crash_after_passing_subtests_is_a_failure": ("ERROR", [PASS, PASS], "2 1 0"),
    "timeout_is_a_failure": ("TIMEOUT", [PASS], "1 1 0"),
    "program_without_subtests": ("OK", None, "1 0 0"),
    "skipped_program": ("SKIP", None, "0 0 1"),
    "failed_program": ("FAIL", None, "0 1 0"),
    "unexpected_pass_is_a_failure": ("UNEXPECTEDPASS", None, "0 1 0"),
}

print(f"1..{len(CASES)}")
bad = 0
for number, (name, (result, subtests, counts)) in enumerate(CASES.items(), 1):
    with tempfile.TemporaryDirectory() as logs:
        test = "project:unit / a"
        pathlib.Path(logs, "testlog.json").write_text(json.dumps({"name": test, "result": result}))
        cases = "".join(f'<testcase name="{i}">{x}</testcase>' for i, x in enumerate(subtests or []))
        suite = f'<testsuite name="project.{test}">{cases}</testsuite>' if subtests else ""
        pathlib.Path(logs, "testlog.junit.xml").write_text(f"<testsuites>{suite}</testsuites>")
        got = subprocess.run([sys.argv[1], logs, "label"], capture_output=True, text=True)
        good = got.stdout.splitlines()[-1:] == [counts]
        bad += not good
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
        if not good:
            print(f"# expected {counts}, got {got.stdout!r} {got.stderr!r}")
sys.exit(bad != 0)
