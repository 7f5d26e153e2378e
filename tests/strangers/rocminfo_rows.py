# SPDX-License-Identifier: MIT
"""What Debian's rocminfo says of a machine, compared line by line with what it said on the driver.

rocminfo_rows.py normal < OUTPUT                      rows of an output, to be recorded
rocminfo_rows.py guest RECORDED ROWS                  the output among the rows of a guest's run
rocminfo_rows.py fake RECORDED KFDIRECT MACHINE KERNEL  rocminfo on that fake machine

What belongs to the computer and not to the card is left out: names, clocks, sizes and caches of CPU
agents. Prints one TAP line; a row begins with "rocminfo" and a tab.
"""
import difflib
import os
import re
import shutil
import subprocess
import sys

MARK = "rocminfo\t"
OF_THE_HOST = re.compile(r"^(\s*(?:Name|Marketing Name|Max Clock Freq\. \(MHz\)|Compute Unit|Size|"
                         r"Cacheline Size):).*")
CACHE = re.compile(r"^\s+L\d:")


def normal(text):
    """The lines of an output that do not depend on the computer around the cards."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    parts = re.split(r"(?m)^(?=\*+\s*\nAgent \d+)", text)
    lines = []
    for part in parts:
        cpu = re.search(r"Device Type:\s+CPU", part)
        for line in part.splitlines():
            line = line.rstrip()
            if cpu and CACHE.match(line):
                continue
            lines.append(OF_THE_HOST.sub(r"\1 (of the host)", line) if cpu else line)
    return lines


def rows_of(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return [line[len(MARK):].rstrip("\n") for line in f if line.startswith(MARK)]


def on_the_fake(kfdirect, machine, kernel):
    # rocminfo asks lsmod whether the driver is loaded.
    env = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
    for tool in ("rocminfo", "lsmod"):
        if shutil.which(tool, path=env["PATH"]) is None:
            print(f"1..0 # SKIP {tool} is not installed")
            sys.exit(0)
    run = subprocess.run([kfdirect, "fake", "--machine", machine, "--kernel", kernel, "--", "rocminfo"],
                         env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    if run.returncode != 0:
        print(*(f"# {line}" for line in run.stderr.splitlines()), sep="\n")
        print(f"not ok 1 - rocminfo ends with {run.returncode}\n1..1")
        sys.exit(1)
    return normal(run.stdout)


def compare(want, got):
    matcher = difflib.SequenceMatcher(None, want, got, autojunk=False)
    equal = sum(block.size for block in matcher.get_matching_blocks())
    compared = max(len(want), len(got))
    for line in difflib.unified_diff(want, got, "recorded", "here", lineterm="", n=1):
        print(f"# {line}")
    good = want and want == got
    print(f"{'ok' if good else 'not ok'} 1 - rocminfo says what it said on the driver")
    print(f"1..1\n# {len(got)} rows, {compared} compared, {equal} equal")
    return 0 if good else 1


def main(how, recorded=None, *more):
    if how == "normal":
        print(*(MARK + line for line in normal(sys.stdin.read())), sep="\n")
        return 0
    if how == "guest":
        return compare(rows_of(recorded), normal("\n".join(rows_of(more[0]))))
    return compare(rows_of(recorded), on_the_fake(*more))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
