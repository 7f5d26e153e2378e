# SPDX-License-Identifier: MIT
"""rocminfo.py KFDIRECT MACHINE GFX COUNT NAME: Debian's rocminfo lists the machine's agents."""
import os
import re
import shutil
import subprocess
import sys

kfdirect, machine, gfx, count, name = sys.argv[1:6]
if shutil.which("rocminfo") is None:
    print("rocminfo is not installed (Debian package rocminfo)")
    sys.exit(77)
# rocminfo asks lsmod whether the driver is loaded.
env = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
if shutil.which("lsmod", path=env["PATH"]) is None:
    print("lsmod is not installed (Debian package kmod)")
    sys.exit(77)
run = subprocess.run([kfdirect, "fake", "--machine", machine, "--", "rocminfo"], env=env,
                     text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
wrong = []
if run.returncode != 0:
    wrong.append(f"rocminfo ends with {run.returncode}")
if "stands in for the real device" not in run.stderr:
    wrong.append("no line on stderr says that the device is a fake")
said = subprocess.run(
    [kfdirect, "fake", "--machine", machine, "--", "sh", "-c",
     "cat /sys/class/kfd/kfd/topology/nodes/*/properties"],
    text=True, stdout=subprocess.PIPE, check=True).stdout
ids = [int(i) for i in re.findall(r"^unique_id (\d+)$", said, flags=re.M)]
for i in filter(None, ids):
    if not re.search(rf"Uuid:\s+GPU-{i:016x}\s*$", run.stdout, flags=re.M):
        wrong.append(f"no agent has the id {i:016x}")
if len(set(filter(None, ids))) != int(count):
    wrong.append(f"the topology has the ids {ids}")
agents = re.split(r"^\*+\s*\nAgent \d+", run.stdout, flags=re.M)[1:]
gpus = [a for a in agents if re.search(r"Device Type:\s+GPU", a)]
if len(gpus) != int(count):
    wrong.append(f"{len(gpus)} GPU agents, expected {count}")
for a in gpus:
    if not re.search(rf"^  Name:\s+{gfx}\s*$", a, flags=re.M):
        wrong.append(f"an agent that is not {gfx}")
    if name not in a:
        wrong.append(f"an agent without the name {name}")
if not [a for a in agents if re.search(r"Device Type:\s+CPU", a)]:
    wrong.append("no CPU agent")
if not run.stdout.rstrip().endswith("*** Done ***"):
    wrong.append("rocminfo did not come to its end")
for w in wrong:
    print(w)
if wrong:
    print(run.stdout, run.stderr, sep="\n")
sys.exit(1 if wrong else 0)
