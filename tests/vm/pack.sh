#!/bin/bash
# SPDX-License-Identifier: MIT
# pack.sh TAR PROGRAM [ARGS...]: a tar for the guest that runs one program of this machine.
# The program's shared libraries and its loader come along. More files for the guest, as HOST=GUEST,
# are taken from the variable EXTRA (separated by blanks).
set -euo pipefail
. "$(dirname "$0")/common.sh"
need tar tar ldd libc-bin
out=$(realpath "$1") prog=$2
shift 2
[ -x "$prog" ] || die "no program $prog"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/t" "$tree/lib/x86_64-linux-gnu"

libs() {
    ldd "$1" 2> /dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\/.*ld-linux/ { print $1 }'
}
take() {
    local f
    for f in $(libs "$1"); do
        case $f in
        */ld-linux*) install -D "$f" "$tree$f" ;;
        *) cp -Lu "$f" "$tree/lib/x86_64-linux-gnu/" ;;
        esac
    done
}
cp -L "$prog" "$tree/t/"
take "$prog"
for e in ${EXTRA:-}; do
    install -D "${e%%=*}" "$tree/${e#*=}"
    take "${e%%=*}"
done
{
    echo "#!/bin/sh"
    printf 'exec ./%q' "$(basename "$prog")"
    [ $# = 0 ] || printf ' %q' "$@"
    echo
} > "$tree/t/run.sh"
# run.sh comes first: by its name the guest knows a disk that is ready
cd "$tree"
tar --owner=0 --group=0 -cf "$out" t/run.sh --exclude=t/run.sh ./*
