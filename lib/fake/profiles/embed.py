# SPDX-License-Identifier: MIT
"""embed.py OUT FILE...: writes a C table of the files' contents."""
import os
import sys

with open(sys.argv[1], "w") as out:
    out.write('#include "fake/profile.h"\n')
    rows = []
    for n, path in enumerate(sys.argv[2:]):
        with open(path, "rb") as f:
            data = f.read()
        out.write(f"static const unsigned char text{n}[] = {{{','.join(map(str, data))}}};\n")
        rows.append(f'    {{"{os.path.basename(path)}", (const char *)text{n}, sizeof(text{n})}},\n')
    out.write("const struct fake_builtin fake_builtins[] = {\n" + "".join(rows) + "};\n")
    out.write("const size_t fake_builtin_count = sizeof(fake_builtins) / sizeof(fake_builtins[0]);\n")
