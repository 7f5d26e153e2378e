# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034
# Shared by the scripts of tests/vm: sourced, not run.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${KFDIRECT_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kfdirect-vm}

die() {
    echo "tests/vm: $*" >&2
    exit 2
}

# need COMMAND PACKAGE ...: all commands, or one message with all packages that are missing
need() {
    local missing=()
    while [ $# -gt 0 ]; do
        command -v "$1" > /dev/null || missing+=("$2")
        shift 2
    done
    [ ${#missing[@]} = 0 ] || die "missing tools; run: apt-get install ${missing[*]}"
}

# need_space FOLDER MIB
need_space() {
    local free
    free=$(df -Pm "$1" | awk 'NR == 2 { print $4 }')
    [ "$free" -ge "$2" ] || die "$1 has $free MiB free, $2 MiB are needed (KFDIRECT_VM_CACHE names another folder)"
}
