#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Builds and tests everything on a Debian 12 machine, installing what is missing when run as root.
#
#   tools/test.sh            all grounds that fit in a quarter of an hour
#   tools/test.sh --quick    one sanitized build without slow tests, and the cheap checks
#   tools/test.sh --long     everything, slow tests under sanitizers and the bare-machine check too
#   tools/test.sh --vm ...   only the kernel driver in a virtual machine; further arguments are its
#
# Builds and logs go to build-test/ (KFDIRECT_TEST_DIR). The last line is the count over everything
# that ran: "N passed, N failed, N skipped". Exit code 1 if anything failed.
set -u
usage() {
    sed -n '4,13s/^# \{0,1\}//p' "$0"
}
case ${1-} in
-h | --help)
    usage
    exit
    ;;
"" | --quick | --long | --vm) ;;
*)
    echo "test.sh: unknown argument $1 (--help)" >&2
    exit 2
    ;;
esac
cd "$(dirname "$0")/.." || exit 1
. tools/packages.sh

root=$PWD
work=${KFDIRECT_TEST_DIR:-$root/build-test}
log=$work/log
mode=default
case ${1-} in
--quick | --long | --vm)
    mode=${1#--}
    shift
    ;;
esac
mkdir -p "$log" || exit 1
log=$(cd "$log" && pwd)
work=$(cd "$work" && pwd)

passed=0 failed=0 skipped=0
runner=

say() {
    printf '[%3ds] %s\n' "$SECONDS" "$*"
}

# tally NAME PASSED FAILED SKIPPED: adds a step's counts.
tally() {
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    say "$1: $2 passed, $3 failed, $4 skipped"
}

skip() {
    tally "$1" 0 0 1
    echo "       skipped: $2"
}

# step NAME COMMAND...: one check that passes or fails as a whole; its output goes to a log.
step() {
    local name=$1 out
    shift
    out=$log/$(echo "$name" | tr ' /' '--').log
    if "$@" >"$out" 2>&1; then
        tally "$name" 1 0 0
    else
        tail -n 40 "$out"
        tally "$name" 0 1 0
        echo "       whole output: $out"
        return 1
    fi
}

# counted NAME COMMAND...: a check that counts for itself; its last line is "N passed, N failed,
# N skipped". Without that line it has failed.
counted() {
    local name=$1 out last
    shift
    out=$log/$(echo "$name" | tr ' /' '--').log
    "$@" 2>&1 | tee "$out"
    local status=${PIPESTATUS[0]}
    last=$(tail -n 1 "$out")
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
        local bad=${BASH_REMATCH[2]}
        [ "$status" != 0 ] && [ "$bad" = 0 ] && bad=1
        tally "$name" "${BASH_REMATCH[1]}" "$bad" "${BASH_REMATCH[3]}"
    else
        tally "$name" 0 1 0
        echo "       no closing line; whole output: $out"
    fi
}

# build DIRECTORY CC SETUP-OPTIONS...: configures (once) and compiles. A folder that cannot be built
# any more, as after the tree has moved, is made anew.
build() {
    local dir=$work/$1 cc=$2
    shift 2
    if [ -d "$dir/meson-info" ] && meson configure "$dir" "$@" && ninja -C "$dir"; then
        return 0
    fi
    rm -rf "$dir"
    CC=$cc meson setup "$dir" "$@" && ninja -C "$dir"
}

# run DIRECTORY LABEL MESON-TEST-OPTIONS...: runs tests and adds their counts.
run() {
    local dir=$work/$1 label=$2 counts
    shift 2
    rm -f "$dir"/meson-logs/testlog*
    $runner meson test -C "$dir" --no-rebuild --print-errorlogs "$@" >"$log/test-$label.log" 2>&1
    if [ ! -s "$dir/meson-logs/testlog.json" ]; then
        if grep -q '^No .*tests' "$log/test-$label.log"; then
            skip "$label" "no such tests"
        else
            tail -n 20 "$log/test-$label.log"
            tally "$label" 0 1 0
        fi
        return
    fi
    counts=$(python3 tools/count.py "$dir/meson-logs" "$label")
    case $counts in
    *[0-9]*) ;;
    *) counts="0 1 0" ;;
    esac
    if [[ $counts == *FAILED* ]]; then
        sed -n '/^Summary of Failures/,$p' "$log/test-$label.log"
        grep '^FAILED' <<<"$counts"
        echo "       whole output: $log/test-$label.log"
    fi
    # shellcheck disable=SC2046
    tally "$label" $(tail -n 1 <<<"$counts")
}

vm_ground() {
    if [ -x tests/vm/ci.sh ]; then
        counted "vm" tests/vm/ci.sh "$@"
    else
        skip "vm" "tests/vm/ci.sh is not part of this tree"
    fi
}

finish() {
    say "done"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
    exit
}

# The Debian packages of AMD's own stack are witnesses: without them their tests skip.
optional() {
    local name=$1 why
    shift
    if ! why=$(packages_need "$@" 2>&1); then
        skip "packages for $name" "$why"
    fi
}

say "packages"
# shellcheck disable=SC2086
step "packages" packages_need $packages_build $packages_test || finish
if [ "$mode" = vm ]; then
    vm_ground "$@"
    finish
fi
# shellcheck disable=SC2086
{
    optional lint $packages_lint
    optional "AMD's own stack" $packages_strangers
    optional "Debian's HIP header" $packages_hip
    [ "$mode" = quick ] || optional clang $packages_clang
}

# Tests that prove a fault by dying from it need the signal for themselves.
export ASAN_OPTIONS=${ASAN_OPTIONS-detect_leaks=1:handle_segv=0:handle_sigbus=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS-halt_on_error=1:print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS-halt_on_error=1:second_deadlock_stack=1}
sanitized="-Db_sanitize=address,undefined -Db_lundef=false"
# Tests that look at the shipped library, preload it into programs of others, ask for addresses that
# a sanitizer's shadow takes, or leak because they break a rule on purpose, want a plain build.
plain_only="--no-suite strangers --no-suite abi --no-suite plain"

say "gcc with address and undefined-behaviour sanitizers"
# shellcheck disable=SC2086
if step "build asan" build asan gcc $sanitized; then
    if [ "$mode" = long ]; then
        run asan asan $plain_only -t 5
    else
        run asan asan $plain_only --no-suite slow -t 3
    fi
fi

if [ "$mode" != quick ]; then
    say "gcc, as installed"
    prefix=$work/prefix
    if step "build plain" build plain gcc -Dbuildtype=release -Doptimization=2 --prefix="$prefix" --libdir=lib; then
        run plain plain -t 2
        rm -rf "$prefix"
        step "install" meson install -C "$work/plain" --no-rebuild
        counted "installed copy" tests/install/check.sh "$prefix" "$work"
    fi
    say "clang"
    if command -v clang >/dev/null; then
        if step "build clang" build clang clang; then
            run clang clang --suite unit --no-suite slow
        fi
    else
        skip "clang" "clang is not installed"
    fi
    say "gcc with the thread sanitizer"
    if step "build tsan" build tsan gcc -Db_sanitize=thread -Db_lundef=false; then
        suites="--suite threads"
        [ "$mode" = long ] && suites="$suites --suite unit --suite cts --suite clients"
        # Address-space randomization can collide with the sanitizer's fixed shadow.
        setarch "$(uname -m)" -R true 2>/dev/null && runner="setarch $(uname -m) -R"
        # shellcheck disable=SC2086
        run tsan tsan $suites $plain_only -t 5
        runner=
    fi
fi

say "lint"
lint_db=
[ "$mode" = quick ] || lint_db=$work/clang
counted "lint" tools/lint.sh $lint_db

if [ "$mode" != quick ]; then
    say "aarch64"
    # shellcheck disable=SC2086
    if why=$(packages_need $packages_aarch64 2>&1); then
        step "compile for aarch64" tools/aarch64.sh
    else
        skip "compile for aarch64" "$why"
    fi
fi

case $mode in
quick) ;;
long) vm_ground --build "$work/plain" --long ;;
*) vm_ground --build "$work/plain" ;;
esac
if [ "$mode" = long ]; then
    counted "bare machine" tools/bare.sh sh -c 'tools/demo.sh && tools/test.sh --quick'
fi
finish
