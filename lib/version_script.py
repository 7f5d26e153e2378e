#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a linker version script: version_script.py NODE LIST, where LIST has one symbol a line."""
import sys

node, path = sys.argv[1:]
with open(path, encoding='ascii') as listing:
    names = [line.strip() for line in listing if line.strip() and not line.startswith('#')]
print(f'{node} {{\nglobal:')
print(''.join(f'    {name};\n' for name in names), end='')
print('local:\n    *;\n};')
