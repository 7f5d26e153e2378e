#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests of the kfdirect command as its users start it. usage: command.py KFDIRECT. Prints TAP."""
import json
import os
import subprocess
import sys
import tempfile

KFDIRECT = os.path.abspath(sys.argv[1])
COMMANDS = ("info", "demo", "fake", "replay", "trace")
cases = []


def case(function):
    cases.append(function)
    return function


def run(*args, env=None):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("KFDIRECT_")}
    return subprocess.run([KFDIRECT, *args], capture_output=True, text=True, timeout=240,
                          env=clean | (env or {}))


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def expect_exit(result, code):
    expect(result.returncode == code,
           f"exit code {result.returncode}, not {code}\n{result.stdout[-1500:]}{result.stderr[-1500:]}")


@case
def help_is_printed_for_the_word_as_for_the_option():
    for command in COMMANDS:
        expect(run("help", command).stdout == run(command, "--help").stdout, command)
    expect_exit(run("help", "me"), 2)
    word, option = run("help"), run("--help")
    expect_exit(word, 0)
    expect(word.stdout == option.stdout and "usage" in word.stdout.lower(), word.stdout)


@case
def a_full_disk_is_no_success():
    for args in (("--version",), ("help",), ("info", "--machine", "mi210:1", "--json"),
                 ("info", "--machine", "mi210:1"), ("fake", "--help")):
        with open("/dev/full", "w") as full:
            result = subprocess.run([KFDIRECT, *args], stdout=full, stderr=subprocess.PIPE, text=True,
                                    timeout=240)
        expect(result.returncode == 1 and "standard output: No space left" in result.stderr,
               f"{args}: {result.returncode} {result.stderr}")


def said(result):
    """What is on stderr, but for what a sanitized build says: that it has no preload library."""
    lines = result.stderr.splitlines()
    return [line for line in lines if "fake-preload.so is not here" not in line]


@case
def an_empty_name_inside_a_fake_means_the_host():
    result = run("fake", "--", "env", "KFDIRECT_FAKE=", "ls", "-d", "/dev")
    expect_exit(result, 0)
    expect(result.stdout == "/dev\n" and not said(result), result.stderr)
    expect("KFDIRECT_FAKE" not in run("fake", "--", "env", "KFDIRECT_FAKE=", "ls", "/dev/dri").stderr,
           "the fake speaks of an empty name")


@case
def version_is_printed():
    result = run("--version")
    expect_exit(result, 0)
    expect(result.stdout.startswith("kfdirect "), result.stdout)


@case
def wrong_arguments_are_named_in_a_line_before_the_way_to_the_usage():
    with tempfile.TemporaryDirectory() as folder:
        for args, word in (((), "no command"), (("frobnicate",), "'frobnicate'"),
                           (("--frobnicate",), "'--frobnicate'"),
                           (("info", "--frobnicate"), "--frobnicate"), (("info", "more"), "'more'"),
                           (("info", "--machine"), "--machine"), (("demo", "more"), "'more'"),
                           (("demo", "--kernel"), "--kernel"), (("fake",), "no program"),
                           (("fake", "--"), "no program"), (("fake", "--log"), "--log"),
                           (("fake", "--log", "--", "true"), "--log"),
                           (("fake", "--strict=yes", "true"), "--strict"),
                           (("trace",), "no program"), (("trace", "--output"), "--output"),
                           (("trace", "--output", "--", "true"), "--output"),
                           (("replay",), "no log"), (("replay", "a", "b"), "'b'"),
                           (("replay", "--process", "x", "a"), "'x'")):
            result = subprocess.run([KFDIRECT, *args], capture_output=True, text=True, cwd=folder,
                                    timeout=60)
            expect_exit(result, 2)
            lines = result.stderr.splitlines()
            command = ["kfdirect", *args[:1]] if args and args[0] in COMMANDS else ["kfdirect"]
            expect(len(lines) == 2 and not result.stdout, f"{args}: {result.stderr}")
            expect(lines[0].startswith("kfdirect") and word in lines[0], f"{args}: {lines}")
            expect(lines[1] == f"for the usage: {' '.join(command)} --help", f"{args}: {lines}")
        expect(not os.listdir(folder), "nothing is written")


@case
def help_goes_to_stdout():
    for args in (("--help",), ("info", "--help"), ("demo", "--help"), ("fake", "--help"),
                 ("replay", "--help"), ("trace", "--help")):
        result = run(*args)
        expect_exit(result, 0)
        expect("usage:" in result.stdout, f"{args}: {result.stdout}")


@case
def unknown_machine_is_named():
    result = run("info", "--machine", "voodoo2:1")
    expect_exit(result, 2)
    expect("voodoo2" in result.stderr, result.stderr)


def info(machine, kernel=None):
    kernel_args = ("--kernel", kernel) if kernel else ()
    result = run("info", "--json", "--machine", machine, *kernel_args)
    expect_exit(result, 0)
    return json.loads(result.stdout)


@case
def info_lists_gpus_links_and_rights():
    found = info("mi300x:8")
    expect(len(found["gpus"]) == 8, found["gpus"])
    expect(all(gpu["can_map"] == list(range(8)) for gpu in found["gpus"]), "peers")
    expect(all(gpu["free_bytes"] > 0 for gpu in found["gpus"]), "free memory")
    expect(len({gpu["gpu_id"] for gpu in found["gpus"]}) == 8, "gpu_id")
    expect(any(link["type"] == "XGMI" for link in found["links"]), found["links"])
    expect(found["vmm"]["engine"] == "drm" and found["vmm"]["read-only mappings"], found["vmm"])


@case
def info_says_why_an_old_kernel_can_do_less():
    found = info("mi210:2", "6.1")
    expect(found["vmm"]["engine"] == "gem", found["vmm"])
    expect(found["vmm"]["reason"], "no reason given")
    expect(not found["vmm"]["read-only mappings"], found["vmm"])
    expect(not found["vmm"]["mapping another GPU's memory"], found["vmm"])
    result = run("info", "--machine", "mi210:2", "--kernel", "6.1")
    expect("no   read-only mappings (needs KFD 1.15)" in result.stdout, result.stdout)
    for machine, able, why in (("mi210:2", True, None), ("mi210:1", False, "there is one GPU"),
                               ("navi31:2", False, "no GPU reaches another"),
                               ("none", False, "there is no usable GPU")):
        found = info(machine)
        expect(found["vmm"]["mapping another GPU's memory"] == able, found["vmm"])
        text = run("info", "--machine", machine).stdout
        expect(able or f"no   mapping another GPU's memory ({why})" in text, text)


@case
def info_works_without_a_gpu():
    result = run("info", "--json", "--machine", "none")
    found = json.loads(result.stdout)
    expect("error" in found or found["gpus"] == [], found)


@case
def info_prints_text_for_people():
    result = run("info", "--machine", "mi300x:2")
    expect_exit(result, 0)
    for word in ("fake machine mi300x:2", "GPU 0", "GPU 1", "engine drm", "granularity"):
        expect(word in result.stdout, word)


@case
def environment_names_the_machine_too():
    result = run("info", "--json", env={"KFDIRECT_FAKE": "mi210:4"})
    expect_exit(result, 0)
    expect(len(json.loads(result.stdout)["gpus"]) == 4, result.stdout)


def demo(*args):
    result = run("demo", "--json", *args)
    expect_exit(result, 0)
    found = json.loads(result.stdout)
    expect(found["good"] and found["failed"] == 0, "not good")
    return found


@case
def info_takes_engine_and_granularity_from_the_environment():
    env = {"KFDIRECT_FAKE": "mi210:4", "KFDIRECT_ENGINE": "kfd", "KFDIRECT_MIN_GRANULARITY": "64K"}
    found = json.loads(run("info", "--json", env=env).stdout)["vmm"]
    expect(found["engine"] == "kfd" and found["min_granularity"] == 65536, str(found))
    for name, value in (("KFDIRECT_ENGINE", "cuda"), ("KFDIRECT_MIN_GRANULARITY", "3M")):
        result = run("info", env=env | {name: value})
        expect_exit(result, 1)
        expect(f'{name} is "{value}"' in result.stdout, result.stdout)


@case
def demo_passes_on_eight_gpus_with_nothing_unchecked():
    found = demo("--machine", "mi300x:8")
    expect(found["not_checked"] == 0, "something was not checked")
    expect(found["passed"] >= 20, found["passed"])
    steps = {step["step"]: step for step in found["steps"] if "step" in step}
    reserve = next(step for name, step in steps.items() if name.startswith("reserve"))
    expect(reserve["ioctl_count"] == 0, reserve)
    grow = next(step for name, step in steps.items() if name.startswith("grow"))
    expect(grow["ioctl_count"] > 0 and sum(grow["ioctls"].values()) == grow["ioctl_count"], grow)
    ranges = [step["range"] for step in found["steps"] if "range" in step]
    expect(len(ranges) == 2, "two pictures")
    for picture in ranges:
        expect(sum(row["size"] for row in picture) == 64 << 30, "the picture covers the range")
        expect(any(row["owner"] is None for row in picture), "a hole")


@case
def demo_passes_on_smaller_machines():
    for machine in ("mi300x:1", "mi210:2", "navi31:2"):
        demo("--machine", machine)


@case
def demo_passes_with_the_engines_of_older_kernels():
    for kernel in ("6.1",):
        demo("--machine", "mi210:2", "--kernel", kernel)


@case
def demo_fails_without_a_gpu():
    result = run("demo", "--machine", "none")
    expect_exit(result, 1)
    expect("NOT GOOD" in result.stdout, result.stdout)


@case
def demo_prints_text_for_people():
    result = run("demo", "--machine", "mi300x:2")
    expect_exit(result, 0)
    for word in ("ioctls:", "rights of", "hole", "good:", "0 failed"):
        expect(word in result.stdout, word)


@case
def fake_runs_a_program_and_passes_its_exit_code():
    result = run("fake", "--machine", "mi210:2", "--", KFDIRECT, "info", "--json")
    expect_exit(result, 0)
    expect(len(json.loads(result.stdout)["gpus"]) == 2, result.stdout)
    expect_exit(run("fake", "--", "sh", "-c", "exit 7"), 7)
    expect_exit(run("fake", "--", "/nonexistent/program"), 127)
    expect_exit(run("fake", "--"), 2)


@case
def fake_names_the_bad_argument_and_what_was_expected():
    for args, words in (
            (("--machine", "voodoo2:1"), ("voodoo2", "mi300x")),
            (("--machine", "mi210:0"), ("mi210:0", "count")),
            (("--kernel", "5.1"), ("5.1", "6.12")),
            (("--log", "/nonexistent/folder/log"), ("--log", "/nonexistent/folder/log")),
            (("--frobnicate",), ("--frobnicate", "usage:"))):
        result = run("fake", *args, "--", "true")
        expect_exit(result, 2)
        expect(all(word in result.stderr for word in words), f"{args}: {result.stderr}")
    result = run("info", "--kernel", "6.1")
    expect_exit(result, 2)
    expect("--machine" in result.stderr, result.stderr)


@case
def fake_passes_signals_input_and_output():
    result = run("fake", "--", "sh", "-c", "kill -TERM $$")
    expect(result.returncode == -15, result.returncode)
    result = subprocess.run([KFDIRECT, "fake", "--", "cat"], input="text", capture_output=True,
                            text=True, timeout=60)
    expect(result.stdout == "text" and not said(result), result)


@case
def fake_refuses_what_it_cannot_serve():
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "static")
        with open("/bin/sh", "rb") as shell, open(program, "wb") as out:
            head = bytearray(shell.read(64))
            head[56:58] = b"\0\0"  # no program headers: no interpreter either
            out.write(head)
        script = os.path.join(folder, "script")
        with open(script, "w") as out:
            out.write(f"#! {program} -x\n")
        plain = os.path.join(folder, "plain")
        with open(plain, "w") as out:
            out.write("true\n")
        os.chmod(program, 0o755)
        os.chmod(script, 0o755)
        for name in (program, script):
            result = run("fake", "--", name)
            expect_exit(result, 126)
            expect("statically linked" in result.stderr, result.stderr)
        for name, code in ((plain, 126), (folder, 126), (program + "/x", 126),
                           (folder + "/none", 127), ("no-such-program", 127)):
            result = run("fake", "--", name)
            expect_exit(result, code)
            expect(name in result.stderr, result.stderr)


@case
def fake_takes_machine_and_kernel_from_the_environment():
    env = {"KFDIRECT_FAKE": "mi210:3", "KFDIRECT_FAKE_KERNEL": "6.1"}
    found = json.loads(run("fake", "--", KFDIRECT, "info", "--json", env=env).stdout)
    expect(len(found["gpus"]) == 3 and found["vmm"]["engine"] == "gem", found["vmm"])
    # Options go before it, and one fake inside another is a machine of its own.
    result = run("fake", "--machine", "mi210:2", "--", KFDIRECT, "fake", "--machine", "mi300x:5",
                 "--kernel", "6.12", "--strict", "--", KFDIRECT, "info", "--json", env=env)
    expect_exit(result, 0)
    found = json.loads(result.stdout)
    expect(len(found["gpus"]) == 5 and found["vmm"]["engine"] == "drm", found["vmm"])


@case
def two_fakes_at_once_do_not_meet():
    command = [KFDIRECT, "fake", "--machine", "mi210:2", "--", KFDIRECT, "info", "--json"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    found = [json.loads(process.communicate(timeout=60)[0]) for process in both]
    expect(all(process.returncode == 0 for process in both), "exit codes")
    expect(found[0] == found[1], "they see the same")


def logged(folder, *program):
    name = os.path.join(folder, "log")
    expect_exit(run("fake", "--machine", "mi210:2", "--log", name, "--", *program), 0)
    return name


@case
def a_log_is_written_for_a_linked_program_and_replays_alike():
    with tempfile.TemporaryDirectory() as folder:
        name = logged(folder, KFDIRECT, "info")
        with open(name) as text:
            lines = text.read().splitlines()
        expect(lines[0].split("\t")[1:] == ["mi210:2", "6.12"], lines[0])
        expect(any("# GET_VERSION" in line for line in lines), "no request in it")
        result = run("replay", name)
        expect_exit(result, 0)
        expect(": 0 answered differently" in result.stdout, result.stdout)
        # What another kernel calls itself is no difference, what it refuses is: then and now.
        expect_exit(run("replay", "--kernel", "6.8", name), 0)
        logged(folder, KFDIRECT, "demo")
        result = run("replay", "--kernel", "6.1", name)
        expect_exit(result, 1)
        expect(": EXPORT_DMABUF " in result.stdout, result.stdout)
        expect("\n    now = -25" in result.stdout, result.stdout)
        expect("GET_VERSION" not in result.stdout, result.stdout)
        # A log begins anew, but all processes of one run are in it.
        logged(folder, "sh", "-c", f"'{KFDIRECT}' info && '{KFDIRECT}' info")
        with open(name) as text:
            lines = text.read().splitlines()[1:]
        processes = {line.split()[0] for line in lines}
        expect(len(processes) == 2, f"{len(processes)} processes")
        for process in processes:
            result = run("replay", "--process", process, name)
            expect_exit(result, 0)
            expect("of other processes" in result.stdout, result.stdout)
        nobody = ("--process", "999999999", name)
        for args, word in ((("--process", "none", name), "--process"), ((name, name), "usage:"),
                           (nobody, "no operation of process 999999999, but of " + " ".join(
                               sorted(processes, key=[line.split()[0] for line in lines].index))),
                           ((__file__,), "no log"), ((folder + "/none",), folder + "/none")):
            result = run("replay", *args)
            expect_exit(result, 2)
            expect(word in result.stderr, result.stderr)


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
