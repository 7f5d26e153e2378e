#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Everyday commands on a fake machine with two GPUs. usage: commands.py KFDIRECT. Prints TAP."""
import errno
import os
import shutil
import subprocess
import sys
import tempfile

KFDIRECT = sys.argv[1]
NODES = "/sys/class/kfd/kfd/topology/nodes"
cases = []


def case(function):
    cases.append(function)
    return function


def start(*command):
    return subprocess.run([KFDIRECT, "fake", "--machine", "mi210:2", "--", *command],
                          capture_output=True, text=True, timeout=120)


def run(*command):
    result = start(*command)
    if result.returncode != 0:
        raise AssertionError(f"exit code {result.returncode}: {result.stderr}")
    return result.stdout


def quiet(*command):
    """The same; nothing but that the fake stands in may be on stderr."""
    result = start(*command)
    lines = [line for line in result.stderr.splitlines() if " stands in for " not in line]
    if result.returncode != 0 or lines:
        raise AssertionError(f"exit code {result.returncode}: {lines[:5]}")
    return result.stdout


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


@case
def ls_shows_nodes_and_folders():
    text = run("ls", "-l", "/dev/kfd", "/dev/dri/renderD129")
    lines = [line.split() for line in text.splitlines()]
    expect(len(lines) == 2 and all(line[0].startswith("crw") for line in lines), text)
    expect(["226,", "129"] in [line[4:6] for line in lines], text)
    text = run("ls", "/dev")
    expect({"kfd", "dri", "null"} <= set(text.split()), text)
    expect(run("ls", NODES).split() == ["0", "1", "2", "3"], "nodes")


@case
def ls_lists_around_the_fakes_folders():
    text = quiet("ls", "-la", "/dev/dri/..", "/dev/dri/../..", "/sys/class/drm", "/sys/class/kfd")
    expect(" kfd\n" in text and " null\n" in text and " sys\n" in text, text)
    text = quiet("sh", "-c", "exec 8</dev/dri/renderD129 && ls -l /proc/$$/fd/8 && "
                 "readlink -f /proc/$$/fd/8")
    expect(text.split()[-3:] == ["->", "/dev/dri/renderD129", "/dev/dri/renderD129"], text)


@case
def ls_follows_a_link_with_a_slash_behind_it():
    for folder in ("/sys/class/drm/card0/device", "/sys/class/kfd/kfd", "/sys/class/drm/card0"):
        lines = quiet("ls", "-la", folder + "/").splitlines()
        expect(lines[1].startswith("d") and lines[1].endswith(" ."), lines[1])


@case
def lspci_shows_the_cards_and_their_regions():
    if shutil.which("lspci") is None:
        return
    text = run("lspci", "-d", "1002:", "-vv")
    for words in ("Region 0: Memory at ", "[size=64G]", "Kernel driver in use: amdgpu"):
        expect(text.count(words) == 2, text)
    result = start("lspci", "-d", "1002:", "-n", "-x")
    expect("config" not in result.stderr and result.stdout.count("00: 02 10 0f 74") == 2, result)


@case
def who_has_a_device_open_is_seen_from_outside():
    text = run("bash", "-c", "exec 8<>/dev/kfd 9<>/dev/dri/renderD129; sh -c \"cd /proc/$$/fd && "
               "stat -L -c '%F %t %T' /proc/$$/fd/8 /proc/$$/fd/9 && readlink /proc/$$/fd/9\"")
    expect(text.splitlines() == ["character special file eb 0", "character special file e2 81",
                                 "/dev/dri/renderD129"], text)
    for command in (("fuser", "/dev/kfd"), ("lsof", "-t", "/dev/kfd")):
        if shutil.which(command[0]) is not None:
            text = run("bash", "-c", f"exec 8<>/dev/kfd; echo $$; {' '.join(command)} 2>/dev/null")
            expect(len(set(text.split())) == 1, text)


@case
def udevadm_finds_the_devices():
    if shutil.which("udevadm") is None:
        return
    for name, path in (("kfd", "/devices/virtual/kfd/kfd"), ("dri/card1", "/drm/card1")):
        text = run("udevadm", "info", "--query=all", f"--name=/dev/{name}")
        expect(f"N: {name}\n" in text and f"{path}\n" in text, text)


@case
def file_systems_are_those_of_the_neighbours():
    for fake, host in (("/dev/kfd", "/dev/null"), ("/dev/dri", "/dev"), (NODES, "/sys"),
                       ("/sys/class/drm/card0", "/sys")):
        for command in (("df", "--output=source,fstype,target"), ("stat", "-f", "-c", "%T %i %l"),
                        ("stat", "-c", "%d %m")):
            expect(quiet(*command, fake) == quiet(*command, host), (command, fake, host))


@case
def copies_are_whole():
    with tempfile.TemporaryDirectory() as folder:
        quiet("cp", "-a", NODES, folder)
        # As of any sysfs, tar says that files are shorter than they seemed, and fills them up.
        run("sh", "-c", f"tar -C /sys/class/kfd/kfd -c topology 2>/dev/null | tar -C {folder} -x")
        files = [len(text.splitlines()) for text in
                 (quiet("find", NODES, "-xdev", "-type", "f"),
                  quiet("find", f"{folder}/nodes", "-type", "f"),
                  quiet("find", f"{folder}/topology/nodes", "-type", "f"))]
        expect(files[0] > 100 and files == [files[0]] * 3, files)
        with open(f"{folder}/topology/nodes/2/name", "rb") as name:
            expect(name.read().rstrip(b"\0") == b"aldebaran\n", "the text of a file")
    expect(quiet("du", "-s", "-x", "/sys/class/kfd/kfd/topology").split()[0] == "0", "blocks")


@case
def cat_and_cp_read_files():
    expect(run("cat", f"{NODES}/0/gpu_id") == "0\n", "of a CPU")
    text = run("sh", "-c", f"cp {NODES}/2/properties /dev/stdout")
    expect("simd_count" in text, text)
    text = run("sh", "-c", f"read id < {NODES}/2/gpu_id && echo $id")
    expect(int(text) != 0, text)


@case
def find_walks():
    text = run("find", "/sys/class/kfd/kfd/", "-name", "gpu_id")
    expect(len(text.splitlines()) == 4, text)
    text = run("find", "/dev/", "-xdev", "-name", "k[f]d*")
    expect(text == "/dev/kfd\n", text)
    expect("kfdirect-fake" not in run("sh", "-c", "test -c /dev/kfd; ls -R /dev"), "the machine")
    text = run("find", "/dev", "-maxdepth", "2", "-type", "c", "-name", "[kr]*d*", "-newermt",
               "1960-01-01")
    expect({"/dev/kfd", "/dev/dri/renderD128"} <= set(text.split()), text)


@case
def grep_searches_a_tree():
    text = run("grep", "-rl", "vendor_id 4098", f"{NODES}/")
    expect(sorted(text.split()) == [f"{NODES}/2/properties", f"{NODES}/3/properties"], text)


@case
def bash_expands_patterns_and_changes_folders():
    text = run("bash", "-c", f"echo {NODES}/*/gpu_id /dev/k?d")
    expect(text.split() == [f"{NODES}/{i}/gpu_id" for i in range(4)] + ["/dev/kfd"], text)
    text = run("bash", "-c", "cd /sys/class/drm && pwd -P && echo card? && cd .. && [ -d drm ]")
    expect(text == "/sys/class/drm\ncard0 card1\n", text)
    text = run("bash", "-c", "cd -P /sys/class/drm/card0/device && cat vendor")
    expect(text == "0x1002\n", text)


@case
def python_scans_and_walks():
    text = run(sys.executable, "-c", """
import glob, os, stat
nodes = "/sys/class/kfd/kfd/topology/nodes"
print(len(list(os.scandir(nodes))), len(glob.glob(nodes + "/*/gpu_id")))
print(stat.S_ISCHR(os.stat("/dev/kfd").st_mode), "kfd" in os.listdir("/dev"))
print(sum("gpu_id" in files for _, _, files in os.walk("/sys/class/kfd/kfd/topology")))
fd = os.open("/dev", os.O_RDONLY | os.O_DIRECTORY)
print("kfd" in os.listdir(fd), os.stat("dri/card1", dir_fd=fd).st_rdev == os.makedev(226, 1))
os.chdir("/dev/dri")
print(os.getcwd(), os.path.exists("renderD128"))
""")
    expect(text.split() == ["4", "4", "True", "True", "4", "True", "True", "/dev/dri", "True"], text)


@case
def python_starts_programs_in_a_folder_with_an_empty_environment():
    text = run(sys.executable, "-c", """
import subprocess
print(subprocess.run(["/bin/ls", "renderD128", "../kfd"], cwd="/dev/dri", env={},
                     capture_output=True, text=True).stdout)
""")
    expect(text.split() == ["../kfd", "renderD128"], text)


@case
def processes_of_one_command_share_a_machine_and_two_commands_do_not():
    trees = [run("sh", "-c", "echo $KFDIRECT_FAKE_TREE") for _ in range(2)]
    expect(all(tree.strip() for tree in trees) and trees[0] != trees[1], trees)
    expect(run("env", "-i", "/bin/sh", "-c", "echo $KFDIRECT_FAKE").strip() == "mi210:2", "env -i")


@case
def programs_next_to_each_other_say_once_where_they_are():
    cat = f"cat {NODES}/2/gpu_id"
    result = start("sh", "-c", "bash -c 'exec 8</dev/kfd; echo up; sleep 1' | "
                   "{ read up; " + f"{cat} | {cat} - {NODES}/3/gpu_id; {cat}; }}")
    expect(result.returncode == 0 and len(result.stdout.split()) == 4, result)
    expect(result.stderr.count(" stands in for ") == 1, result.stderr)


@case
def strict_mode_says_what_was_undefined():
    program = """
import fcntl, os, sys
if len(sys.argv) == 1:
    fd = os.open("/dev/dri/renderD128", os.O_RDWR)
    os.set_inheritable(fd, True)
    os.execv(sys.executable, [sys.executable, "-c", os.environ["PROGRAM"], str(fd)])
try:
    fcntl.ioctl(int(sys.argv[1]), 0xc0406400, bytes(64))
except OSError as error:
    print(error.errno)
"""
    result = subprocess.run([KFDIRECT, "fake", "--strict", "--", sys.executable, "-c", program],
                            env=os.environ | {"PROGRAM": program}, capture_output=True, text=True,
                            timeout=120)
    expect(result.stdout.split() == [str(errno.ENOTRECOVERABLE)], result)
    expect("kfdirect: undefined use: " in result.stderr, result.stderr)


@case
def a_fake_that_cannot_be_made_is_no_way_to_the_host():
    result = subprocess.run([KFDIRECT, "fake", "--", "sh", "-c",
                             "KFDIRECT_FAKE=voodoo2:1 exec cat /dev/kfd"],
                            capture_output=True, text=True, timeout=120)
    expect("voodoo2" in result.stderr and "/dev/kfd: No such device" in result.stderr, result.stderr)


@case
def trace_writes_requests_in_words():
    with tempfile.TemporaryDirectory() as folder:
        name = folder + "/trace"
        run(KFDIRECT, "trace", "--output", name, "--", sys.executable, "-c", """
import fcntl, os
fd = os.open("/dev/kfd", os.O_RDWR)
fcntl.ioctl(fd, 0x80084b01, bytes(8))
try:
    fcntl.ioctl(fd, 0xc0084bff, bytes(8))
except OSError:
    os.close(fd)
""")
        with open(name) as text:
            lines = text.read().splitlines()
    for line, words in zip(lines, (("open /dev/kfd", " = "),
                                   ("GET_VERSION -> major_version=1 minor_version=", " = 0 <"),
                                   (" = -1 ENOTTY <",), ("close fd=", " = 0 <")), strict=True):
        expect(all(word in line for word in words), line)


@case
def trace_puts_the_fake_of_the_environment_under_the_program():
    program = [sys.executable, "-c", "import os; os.close(os.open('/dev/kfd', os.O_RDWR))"]
    with tempfile.TemporaryDirectory() as folder:
        log = folder + "/log"
        env = os.environ | {"KFDIRECT_FAKE": "mi210:2,kernel=6.1", "KFDIRECT_FAKE_LOG": log}
        result = subprocess.run([KFDIRECT, "trace", "--", *program], capture_output=True, text=True,
                                timeout=120, env=env)
        expect(result.returncode == 0 and "open /dev/kfd" in result.stderr, result.stderr)
        expect(os.path.getsize(log) > 0, "no log")
    # within kfdirect fake it is there already
    result = subprocess.run([KFDIRECT, "fake", "--", KFDIRECT, "trace", "--", *program],
                            capture_output=True, text=True, timeout=120)
    expect(result.returncode == 0 and "open /dev/kfd" in result.stderr, result.stderr)


@case
def trace_outside_of_a_fake_is_refused():
    result = subprocess.run([KFDIRECT, "trace", "--", KFDIRECT, "fake", "--", "true"],
                            capture_output=True, text=True, timeout=120)
    expect(result.returncode == 2 and "the fake goes outside" in result.stderr, result.stderr)


print(f"1..{len(cases)}")
bad = 0
for number, function in enumerate(cases, 1):
    try:
        function()
        print(f"ok {number} - {function.__name__}", flush=True)
    except Exception as error:  # each case stands alone
        bad += 1
        print(f"not ok {number} - {function.__name__}")
        print("\n".join("# " + text for text in str(error).splitlines()), flush=True)
sys.exit(bad != 0)
