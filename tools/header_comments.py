#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Finds public functions without a comment of their own. usage: header_comments.py HEADER...

The comment is the one right before the declaration. One for several functions stands before the
first of them, with no blank line between. For a function that returns int it says what comes back:
an -Exxx, or a word about the result. Threads are the business of the comment at the head of the
file. Prints a line for each function that lacks it; exit code 1 if there are any.
"""
import re
import sys

RESULT = re.compile(r"-E[A-Z]|\bReturns\b|\breturns\b|\berrors?\b|\bErrors?\b")
bad = 0
for path in sys.argv[1:]:
    comment, inside = None, False
    for number, line in enumerate(open(path), 1):
        text = line.strip()
        if not text:
            comment = None if not inside else comment
        elif text.startswith("/*"):
            comment, inside = text, "*/" not in text
        elif inside:
            comment, inside = comment + " " + text, "*/" not in text
        elif text.startswith("KFDIRECT_API"):
            name = re.search(r"(\w+)\(", text).group(1)
            returns_int = re.match(r"KFDIRECT_API int \w", text)
            if comment is None:
                print(f"{path}:{number}: {name} has no comment")
            elif returns_int and not RESULT.search(comment):
                print(f"{path}:{number}: the comment of {name} does not say what it returns")
            else:
                continue
            bad += 1
sys.exit(bad != 0)
