#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What docs/fake.md and kfdirect-fake(7) say of machines and kernels, compared with what
kfdirect info finds on them. Usage: machines_doc.py SOURCE-ROOT KFDIRECT. Prints TAP."""
import json
import os
import re
import subprocess
import sys
import tempfile

root, kfdirect = sys.argv[1:3]
profiles = root + "/lib/fake/profiles/"
kernels = ["6.1", "6.8", "6.12", "current"]
clean = {k: v for k, v in os.environ.items() if not k.startswith("KFDIRECT_")}
number = 0
failed = 0


def check(what, said, found):
    global number, failed
    number += 1
    print("%s %d - %s" % ("ok" if said == found else "not ok", number, what))
    if said != found:
        failed += 1
        print("# said %r, found %r" % (said, found))


def info(machine, kernel):
    result = subprocess.run([kfdirect, "info", "--json", "--machine", machine, "--kernel", kernel],
                            capture_output=True, text=True, env=clean, timeout=60)
    return json.loads(result.stdout) if result.returncode == 0 else None


def table(text, heading):
    """The rows under a heading, as lists of cells."""
    lines = text[text.index(heading):].split("\n")[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def value(machine, key):
    """A key of a machine's first GPU, looked up through `like`."""
    text = open(profiles + machine + ".machine").read()
    found = re.search(r"^%s = (.*)$" % key, text, re.M)
    like = re.search(r"^like = (.*)$", text, re.M)
    return found[1] if found else value(like[1], key) if like else None


def peers(machine, kernel):
    """How many of nine cards' first GPUs the first can map, itself included."""
    count = 9 if machine != "cpx64" else 8
    gpus = info("%s:%d" % (machine, count), kernel)["gpus"]
    return len(gpus[0]["can_map"]), len(gpus)


def rights(machine, kernel):
    here, all_gpus = peers(machine, kernel)
    across, _ = peers(machine, kernel + "+p2p")
    if here == all_gpus:
        return "all"
    if here > 1:
        return "hive of %d" % here
    return "+p2p" if across == all_gpus else "none"


def drivers(machine):
    have = [k for k in kernels if info(machine, k)]
    return "all" if have == kernels else have[0] + " on" if have == kernels[-len(have):] else have


doc = open(root + "/docs/fake.md").read()
man = open(root + "/docs/kfdirect-fake.7").read()
rows = table(doc, "| machine | GPU |")
machines = sorted(f[:-8] for f in os.listdir(profiles) if f.endswith(".machine"))
check("every machine has a row", sorted(row[0].strip("`") for row in rows), machines)
for row in rows:
    name = row[0].strip("`")
    check(name + ": kernels", row[6], drivers(name))
    in_man = re.search(r"^\.It Sy %s Ta (.*)$" % re.escape(name), man, re.M)
    cells = in_man[1].split(" Ta ") if in_man else []
    if name == "none":
        check("none: has no GPU", 0, len(info("none", "6.12")["gpus"]))
        continue
    gpu = info(name, "6.12")["gpus"][0]
    size = "%.2f GiB" % (gpu["vram_bytes"] / 2**30)
    sees = "all" if gpu["large_bar"] else value(name, "visible_vram")
    maps = rights(name, "6.12")
    xnack = value(name, "xnack") or "no"
    said = re.sub(r".*: (\d) cards", r"hive of \1", row[4]).replace("others by `+p2p`", "+p2p")
    check(name + ": chip", row[1].split(",")[0], gpu["name"])
    check(name + ": memory", " ".join(row[2].split()[:2]), size)
    check(name + ": what the CPU sees", row[3], sees)
    check(name + ": whose memory it maps", said, maps)
    check(name + ": XNACK", row[5], xnack)
    check(name + ": in kfdirect-fake(7)", cells, [gpu["name"], size, sees, maps, xnack])
rows = table(doc, "| kernel | KFD, DRM |")
check("every kernel has a row", [row[0].strip("`") for row in rows], kernels)
for row in rows:
    name = row[0].strip("`")
    found = info("mi210", name)
    check(name + ": versions", row[1], "%s, %s" % (found["kfd"], found["gpus"][0]["drm"]))
    said = re.search(r"^\.It Sy %s\n.*?KFD ([0-9.]+\d)" % re.escape(name), man, re.M)
    check(name + ": in kfdirect-fake(7)", said and said[1], found["kfd"])

# The files that the format's description shows.
readme = open(profiles + "README.md").read()
with tempfile.TemporaryDirectory() as folder:
    for file, block in re.findall(r"`(mine\.\w+)`:\n\n((?:    .*\n)+)", readme):
        with open(folder + "/" + file, "w") as out:
            out.write(re.sub(r"^    ", "", block, flags=re.M))
    found = info(folder + "/mine.machine:2", folder + "/mine.kernel")
    check("the example of a machine and of a kernel", found and len(found["gpus"]), 2)
print("1..%d" % number)
sys.exit(failed != 0)
