#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the C example of a Markdown file: its first block fenced as ```c."""
import re
import sys

found = re.search(r"^```c\n(.*?)^```$", open(sys.argv[1]).read(), re.M | re.S)
if not found:
    sys.exit(f"{sys.argv[1]}: no block fenced as ```c")
sys.stdout.write(found.group(1))
