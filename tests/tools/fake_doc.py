#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every request of lib/kfd/uapi.h has its row in docs/fake.md. Usage: fake_doc.py SOURCE-ROOT"""
import re
import sys

root = sys.argv[1]
uapi = open(root + "/lib/kfd/uapi.h").read()
rows = [line for line in open(root + "/docs/fake.md") if line.startswith("|")]
named = set(re.findall(r"\b[A-Z][A-Z_0-9]+\b", "\n".join(rows)))
requests = re.findall(r"^\s*X\(([A-Z_0-9]+), 0x", uapi, re.M)
missing = [name for name in requests if name not in named]
print("1..1")
print("%s 1 - %d requests have a row in docs/fake.md" % ("not ok" if missing or not requests else "ok",
                                                        len(requests)))
for name in missing:
    print("# missing: " + name)
sys.exit(1 if missing or not requests else 0)
