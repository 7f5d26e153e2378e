# SPDX-License-Identifier: MIT
"""lstopo.py KFDIRECT MACHINE VENDOR:DEVICE COUNT: hwloc finds the cards next to the host's devices."""
import shutil
import subprocess
import sys
import xml.etree.ElementTree

kfdirect, machine, card, count = sys.argv[1:5]
count = int(count)
command = ["lstopo-no-graphics", "--whole-io", "--of", "xml"]
if shutil.which(command[0]) is None:
    print("hwloc is not installed (Debian package hwloc)")
    sys.exit(77)


def look(*before):
    """The machine as lstopo has it: ids of the PCI functions, names of the devices on the cards."""
    run = subprocess.run([*before, *command], text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, timeout=60, check=True)
    functions, names = [], []
    for item in xml.etree.ElementTree.fromstring(run.stdout).iter("object"):
        if item.get("type") != "PCIDev":
            continue
        functions.append(item.get("pci_type"))
        if card in item.get("pci_type"):
            names.append(sorted(o.get("name") for o in item.iter("object") if o.get("type") == "OSDev"))
    return sorted(functions), sorted(names)


host, _ = look()
functions, names = look(kfdirect, "fake", "--machine", machine, "--")
wrong = []
if [f for f in functions if card not in f] != [f for f in host if card not in f]:
    wrong.append(f"the host's functions are {host}, with the fake {functions}")
expected = sorted([f"card{i}", f"renderD{128 + i}"] for i in range(count))
if names != expected:
    wrong.append(f"the cards have {names}, expected {expected}")
for line in wrong:
    print(line)
sys.exit(1 if wrong else 0)
