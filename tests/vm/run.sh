#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh [options] -- TEST...: runs tests on the unmodified amdgpu and amdkfd drivers of a Debian
# kernel in an emulated guest with hollow cards.
#   TEST             a program with its arguments as one word ("build/tests/cts/cts --all"), or a
#                    file.tar whose first entry is t/run.sh
#   --kernel 6.12|6.1   --cards 0..4   --gfx 10|9|8  --update cpu|sdma   default 6.12, 1, 9, cpu
#   --vram MIB       of each card, default 128; --bar MIB: what of it the CPU sees, default all
#   --limit SECONDS  for each test, default 120
#   --out FOLDER     keep NAME.out, NAME.rows and NAME.log here, default $cache/out
#   --prepare        only build and save the machine
# Each test starts from the same snapshot of the guest, taken after the driver has bound; everything
# is built on first use into ${XDG_CACHE_HOME:-~/.cache}/kfdirect-vm (KFDIRECT_VM_CACHE).
# Prints TAP and a closing line. Exits 0 when all passed, 1 when one failed, 2 when the guest could
# not be made. A test that exits with 77 is skipped.
set -euo pipefail
. "$(dirname "$0")/common.sh"

kernel=6.12 cards=1 gfx=9 update=cpu vram=128 bar=0 limit=120 out=$cache/out prepare=
while [ $# -gt 0 ]; do
    case $1 in
    --kernel) kernel=$2 ;;
    --cards) cards=$2 ;;
    --gfx) gfx=$2 ;;
    --update) update=$2 ;;
    --vram) vram=$2 ;;
    --bar) bar=$2 ;;
    --limit) limit=$2 ;;
    --out) out=$2 ;;
    --prepare) prepare=1 && set -- "$1" "$@" ;;
    --) shift && break ;;
    *) die "unknown option $1 (options end with --)" ;;
    esac
    shift 2
done
need qemu-system-x86_64 qemu-system-x86 python3 python3 flock util-linux
mkdir -p "$cache" "$out"
exec 9> "$cache/lock"
flock 9 # one guest at a time, and one builder

dir=$("$here/build.sh" "$kernel") || exit 2
words=$("$here/cards.sh" "$gfx" "$cards" "$vram" "$bar" "$update") || die "no such card: gfx $gfx, update $update"
mem=$((1536 + (cards * (vram + 6) + 127) / 128 * 128))
snap=$dir/gfx$gfx-${cards}x$vram-bar$bar-$update.snap
if [ ! -s "$snap" ] || [ "$snap" -ot "$dir/initrd" ]; then
    need_space "$dir" 600
    # shellcheck disable=SC2086 # the words are words
    "$here/vm.py" save "$dir" "$snap" "$mem" $words || exit 2
fi
[ -z "$prepare" ] || exit 0

passed=0 failed=0 skipped=0 n=0
tar=$(mktemp --suffix=.tar)
trap 'rm -f "$tar"' EXIT
for t; do
    n=$((n + 1))
    # shellcheck disable=SC2206 # a command line is split into words
    w=($t)
    name=$(basename "${w[0]}" .tar)
    case ${w[0]} in
    *.tar) cp "${w[0]}" "$tar" ;;
    *) "$here/pack.sh" "$tar" "${w[@]}" || exit 2 ;;
    esac
    to=$out/$kernel-gfx$gfx-$cards-$update-$n-$name
    rc=0
    "$here/vm.py" run "$dir" "$snap" "$mem" "$tar" "$to" "$limit" || rc=$?
    sed 's/^/    /' "$to.out"
    case $rc in
    0) passed=$((passed + 1)) && echo "ok $n - $t" ;;
    77) skipped=$((skipped + 1)) && echo "ok $n - $t # SKIP" ;;
    *) failed=$((failed + 1)) && echo "not ok $n - $t" ;;
    esac
done
echo "1..$n"
echo "# vm: Linux $kernel, gfx$gfx, $cards card(s), tables by $update: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
