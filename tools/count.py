#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts one `meson test` run, subtests included, and names what failed.

usage: count.py MESON_LOGS_DIRECTORY LABEL     prints "PASSED FAILED SKIPPED" as its last line

A program that dies, times out or breaks its test plan has failed even if none of its subtests
says so; Meson's JSON log knows that, its JUnit log knows the subtests.
"""
import json
import pathlib
import sys
import xml.etree.ElementTree as xml


def main():
    logs, label = pathlib.Path(sys.argv[1]), sys.argv[2]
    suites = {s.get("name"): s for s in xml.parse(logs / "testlog.junit.xml").getroot()}
    passed = failed = skipped = 0
    for line in (logs / "testlog.json").read_text().splitlines():
        test = json.loads(line)
        name, result = test["name"], test["result"]
        good = result in ("OK", "EXPECTEDFAIL", "SKIP")
        suite = next((s for n, s in suites.items() if n.endswith("." + name)), None)
        cases = list(suite.iter("testcase")) if suite is not None else []
        bad = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
        for case in bad:
            print(f"FAILED {label}: {name}: {case.get('name')}")
        if not good and not bad:
            print(f"FAILED {label}: {name}: {result}")
        if cases:
            skips = sum(c.find("skipped") is not None for c in cases)
            passed += len(cases) - len(bad) - skips
            skipped += skips
            failed += len(bad) if bad or good else 1
        elif result == "SKIP":
            skipped += 1
        elif good:
            passed += 1
        else:
            failed += 1
    print(passed, failed, skipped)


main()
