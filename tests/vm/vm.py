#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The guest machine under plain emulation.

vm.py save DIR SNAP MEM WORDS...           boot DIR's kernel up to READY, save the machine to SNAP
vm.py run DIR SNAP MEM TAR OUT [LIMIT]     restore SNAP with TAR as its disk; OUT.out is what the test
                                           printed, OUT.rows what it recorded, OUT.log the guest's log

run exits 0 when the test ended with 0, 77 when it was skipped, 1 when it failed, 2 when the guest did not get that far, and
3 when the guest's log holds a kernel report that no test expected. A test expects one by writing
"kfdirect-expect: REGEX" to /dev/kmsg before it.
"""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

BOOT_LIMIT = 240
# One CPU and one thread: with more QEMU 7.2 now and then lets a CPU see half-patched kernel text. No 16-byte
# compare-and-swap: it breaks the flags register behind one, which stopped every tenth restored kernel.
QEMU = ["qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=single", "-cpu", "max,cx16=off", "-smp", "1",
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
REPORT = re.compile(r"\bWARNING:|\bBUG:|\bOops\b|kernel BUG|Kernel panic|general protection|refcount_t:|"
                    r"INFO: task .* blocked|\bmemory leak|leaked|not clean during takedown|"
                    r"possible recursive locking|list_(add|del) corruption|KASAN|UBSAN|unregister_netdevice")
EXPECT = re.compile(r"kfdirect-expect: (.*)")


class Machine:
    """A running QEMU, its console lines and its monitor."""

    def __init__(self, folder, mem, disk, files, limit, extra=(), words=""):
        self.tmp = tempfile.TemporaryDirectory()
        path = self.tmp.name + "/qmp"
        cmd = QEMU + ["-m", str(mem), "-serial", "stdio"]
        for f in files:
            cmd += ["-serial", f"file:{f}"]
        cmd += ["-qmp", f"unix:{path},server=on,wait=off",
                "-drive", f"file={disk},format=raw,if=virtio,readonly=on",
                "-kernel", f"{folder}/vmlinuz", "-initrd", f"{folder}/initrd", "-append", words, *extra]
        self.proc = subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                     errors="replace", bufsize=1)
        self.timed_out = False
        self.timer = threading.Timer(limit, self.expire)
        self.timer.daemon = True
        self.timer.start()
        self.connect(path)

    def expire(self):
        self.timed_out = True
        self.proc.kill()

    def connect(self, path):
        while self.proc.poll() is None:
            try:
                s = socket.socket(socket.AF_UNIX)
                s.connect(path)
                break
            except OSError:
                time.sleep(0.02)
        else:
            raise SystemExit("tests/vm: qemu-system-x86_64 did not start")
        self.monitor = s.makefile("rw")
        self.monitor.readline()
        self.ask("qmp_capabilities")

    def ask(self, command, **arguments):
        self.monitor.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.monitor.flush()
        while True:
            answer = json.loads(self.monitor.readline() or '{"error": "gone"}')
            if "error" in answer:
                raise SystemExit(f"tests/vm: {command}: {answer['error']}")
            if "return" in answer:
                return answer["return"]

    def migrated(self):
        while True:
            status = self.ask("query-migrate").get("status")
            if status == "failed" or self.proc.poll() is not None:
                raise SystemExit("tests/vm: saving or restoring the machine failed")
            if status == "completed":
                return
            time.sleep(0.02)


def boot(folder, log, mem, disk, words):
    """A machine that has come up; None when it died."""
    m = Machine(folder, mem, disk, ["/dev/null", "/dev/null"], BOOT_LIMIT,
                words="console=ttyS0 quiet panic=-1 oops=panic printk.devkmsg=on " + " ".join(words))
    for line in m.proc.stdout:
        log.write(line)
        if line.startswith("@@") and line.rstrip().endswith("READY"):
            return m
    log.flush()
    print(f"tests/vm: the guest did not come up{' in time' if m.timed_out else ''}, see {log.name}",
          file=sys.stderr)
    if m.timed_out:
        sys.exit(2)
    return None


def save(folder, snap, mem, *words):
    disk = tempfile.NamedTemporaryFile(suffix=".img")
    disk.truncate(1 << 20)
    m = None
    for _ in range(3):
        # A kernel that dies before it has come up says nothing about a test.
        with open(snap + ".log", "w") as log:
            m = boot(folder, log, mem, disk.name, words)
        if m:
            break
    if not m:
        return 2
    m.ask("stop")
    m.ask("migrate-set-parameters", **{"max-bandwidth": 1 << 34})
    m.ask("migrate", uri=f"exec:cat > {snap}.part")
    m.migrated()
    m.ask("quit")
    m.proc.wait()
    os.rename(snap + ".part", snap)
    return 0


def reports(lines):
    """Kernel reports that no earlier line of the log expected."""
    expected, found = [], []
    for line in lines:
        e = EXPECT.search(line)
        if e:
            expected.append(re.compile(e.group(1).strip()))
        elif REPORT.search(line) and not any(x.search(line) for x in expected):
            found.append(line.strip())
    return found


def restore(folder, snap, mem, disk, out, limit):
    """One run of the restored machine: its console lines and how QEMU ended."""
    m = Machine(folder, mem, disk, [out + ".out", out + ".rows"], float(limit),
                extra=["-incoming", f"exec:cat {snap}"])
    m.migrated()
    m.ask("cont")
    lines = []
    with open(out + ".log", "w") as log:
        for line in m.proc.stdout:
            log.write(line)
            lines.append(line)
    m.proc.wait()
    return lines, f"killed after {limit} s" if m.timed_out else f"the guest died (QEMU: {m.proc.returncode})"


def run(folder, snap, mem, tar, out, limit="120"):
    disk = tempfile.NamedTemporaryFile(suffix=".img")
    with open(tar, "rb") as f:
        disk.write(f.read())
    disk.flush()
    disk.truncate(max(1 << 20, (os.path.getsize(disk.name) + 511) // 512 * 512))
    for attempt in range(3):
        lines, why = restore(folder, snap, mem, disk.name, out, limit)
        # A kernel that dies before the test has begun says nothing about it; what a test itself does
        # comes after GO and is never repeated.
        if any(re.match(r"@@ \S+ GO", x) for x in lines):
            break
        print(f"tests/vm: restored machine did not start the test ({why}), attempt {attempt + 1}", file=sys.stderr)
    done = [re.search(r"@@ \S+ DONE rc (\d+)", x) for x in lines]
    done = [int(x.group(1)) for x in done if x]
    if not done:
        print(f"tests/vm: {why}, see {out}.log; its end:", *[x.rstrip() for x in lines[-8:]], sep="\n    ",
              file=sys.stderr)
        return 2
    bad = reports(lines)
    for line in bad:
        print(f"tests/vm: kernel report: {line}", file=sys.stderr)
    if bad:
        print(f"tests/vm: see {out}.log", file=sys.stderr)
        return 3
    return done[0] if done[0] in (0, 77) else 1


if __name__ == "__main__":
    sys.exit({"save": save, "run": run}[sys.argv[1]](*sys.argv[2:]))
