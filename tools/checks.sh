# SPDX-License-Identifier: MIT
# Counting for scripts made of many small checks. Sourced by lint.sh and tests/install/check.sh.

passed=0 failed=0 skipped=0

# verdict NAME FINDINGS: fails when there are findings.
verdict() {
    if [ -z "$2" ]; then
        passed=$((passed + 1))
        echo "ok   $1"
    else
        failed=$((failed + 1))
        echo "FAIL $1"
        head -n 30 <<<"$2" | sed 's/^/     /'
    fi
}

# check NAME COMMAND...: passes when the command succeeds; shows its output when not.
check() {
    local name=$1 out status
    shift
    out=$("$@" 2>&1)
    status=$?
    [ $status = 0 ] || out=${out:-"exit code $status"}
    [ $status != 0 ] || out=
    verdict "$name" "$out"
}

omit() {
    skipped=$((skipped + 1))
    echo "skip $1: $2"
}

# tool PROGRAM NAME: skips the check NAME when the program is missing.
tool() {
    command -v "$1" >/dev/null && return 0
    omit "$2" "$1 is not installed"
    return 1
}

# The closing line, and the exit code that belongs to it.
closing_line() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
}
