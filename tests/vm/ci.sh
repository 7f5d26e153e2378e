#!/bin/bash
# SPDX-License-Identifier: MIT
# ci.sh [--kernel 6.12|6.1] [--cards N] [--gfx 8|9|10] [--build FOLDER] [--record] [--long]
# The whole ground in the guest: the conformance suite on every recorded machine, compared row by
# row, what Debian's libdrm_amdgpu, libhsakmt and rocminfo say there, compared as well, and the
# library's own programs. With a kernel, cards or gfx only what fits is run. --record writes the
# rows of this run over the recorded ones instead of comparing. --long adds the whole suite on four
# cards of both kernels and on gfx10 of 6.1, and gfx10 with tables by SDMA.
# The last line is "N passed, N failed, N skipped". KFDIRECT_VM=skip leaves the ground out.
set -euo pipefail
. "$(dirname "$0")/common.sh"
top=$(cd "$here/../.." && pwd)
. "$top/tools/packages.sh"

kernel='' cards='' gfx='' record='' build='' long=
while [ $# -gt 0 ]; do
    case $1 in
    --kernel) kernel=$2 && shift ;;
    --cards) cards=$2 && shift ;;
    --gfx) gfx=$2 && shift ;;
    --build) build=$2 && shift ;;
    --record) record=1 ;;
    --long) long=1 ;;
    *) die "unknown option $1" ;;
    esac
    shift
done
passed=0 failed=0 skipped=0 compared=0 equal=0
finish() {
    echo "# rows compared $compared, equal $equal"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ] && [ $((passed + skipped)) -gt 0 ]
    exit
}
if [ "${KFDIRECT_VM:-}" = skip ]; then
    echo "# the guest is left out: KFDIRECT_VM=skip"
    skipped=1
    finish
fi
# shellcheck disable=SC2086
packages_need $packages_build $packages_vm || die "see above"

# The programs of Debian's libraries are built where these are there.
have_strangers=1
# shellcheck disable=SC2086
if ! packages_need $packages_strangers; then
    echo "# the strangers' programs are left out"
    skipped=1 have_strangers=
fi

out=$cache/out
mkdir -p "$out"
# The cache outlives a checkout and serves several, so what is built from this one stays with it.
if [ -z "$build" ]; then
    build=$top/build-vm
    if ! ninja -C "$build" > "$cache/build.log" 2>&1; then
        rm -rf "$build"
        { meson setup "$build" "$top" && ninja -C "$build"; } > "$cache/build.log" 2>&1 || {
            tail -n 20 "$cache/build.log"
            die "the build failed, see $cache/build.log"
        }
    fi
fi

# chosen KERNEL GFX CARDS
chosen() {
    [ -z "$kernel" ] || [ "$kernel" = "$1" ] || return 1
    [ -z "$gfx" ] || [ "$gfx" = "$2" ] || return 1
    [ -z "$cards" ] || [ "$cards" = "$3" ] || return 1
}

# ground KERNEL GFX CARDS UPDATE TEST...: runs tests there and adds up what they say, and what the
# command AFTER says of their rows
ground() {
    local name="$1 gfx$2 x$3 $4" log=$out/ci.log
    local args=(--kernel "$1" --gfx "$2" --cards "$3" --update "$4")
    shift 4
    while [[ $1 == --* ]]; do
        args+=("$1" "$2")
        shift 2
    done
    "$here/run.sh" "${args[@]}" --out "$out" -- "$@" > "$log" 2>&1 || true
    # shellcheck disable=SC2086
    [ -z "${AFTER:-}" ] || $AFTER 2>&1 | sed 's/^/    /' >> "$log" || true
    grep -E '^    (not ok|# )|^tests/vm|^not ok|kernel report' "$log" | grep -v ' # SKIP' | sed "s/^ */# $name: /" || true
    local ok bad skip
    ok=$(grep -cE '^    ok [0-9]' "$log" || true)
    skip=$(grep -cE '^    ok [0-9].* # SKIP' "$log" || true)
    bad=$(grep -cE '^    not ok' "$log" || true)
    # a test that fails without a case that does, and one that could not be run
    if ! grep -q '^# vm: .* 0 failed' "$log" && [ "$bad" = 0 ]; then
        bad=1
        tail -n 20 "$log"
    fi
    passed=$((passed + ok - skip)) failed=$((failed + bad)) skipped=$((skipped + skip))
    local all=0 same=0 c e
    while read -r c e; do
        all=$((all + c)) same=$((same + e))
    done < <(sed -nE 's/.* ([0-9]+) compared, ([0-9]+) equal.*/\1 \2/p' "$log")
    compared=$((compared + all)) equal=$((equal + same))
    [ "$all" = 0 ] && all=''
    echo "# $name: $((ok - skip)) passed, $bad failed, $skip skipped${all:+, rows $all compared, $same equal} [$SECONDS s]"
}

# cts KERNEL GFX CARDS UPDATE
cts() {
    local rows=$top/tests/cts/recorded/$1-gfx$2-$3.rows
    chosen "$1" "$2" "$3" || return 0
    if [ -n "$record" ]; then
        ground "$@" --limit 400 "$build/tests/cts/cts --record /dev/ttyS2"
        { echo "# Linux $1, gfx$2, $3 card(s)" && cat "$out/$1-gfx$2-$3-$4-1-cts.rows"; } > "$rows"
    else
        EXTRA=$rows=t/rows ground "$@" --limit 400 "$build/tests/cts/cts --record /dev/ttyS2 --expect rows"
    fi
}

# strangers KERNEL GFX CARDS: programs of Debian's libraries, which know nothing of us
strangers() {
    local rows=$top/tests/strangers/recorded/$1-gfx$2-$3.rows got=$out/$1-gfx$2-$3-cpu-1-strangers.sh.rows
    local lines=$top/tests/strangers/rocminfo_rows.py machine=vega10-hollow after='' extra=() p
    chosen "$1" "$2" "$3" || return 0
    case $2 in
    8) machine=vegam-hollow ;;
    10) machine=navi10-hollow ;;
    esac
    for p in libdrm hsakmt; do extra+=("$build/tests/strangers/stranger_$p=t/stranger_$p"); done
    extra+=("$(command -v rocminfo)=t/rocminfo" /usr/share/libdrm/amdgpu.ids=usr/share/libdrm/amdgpu.ids)
    [ -n "$record" ] || extra+=("$rows=t/expect") after="python3 $lines guest $rows $got"
    EXTRA="${extra[*]}" AFTER=$after ground "$1" "$2" "$3" cpu \
        "$here/guest/strangers.sh $machine:$3 $1 stranger_libdrm stranger_hsakmt rocminfo"
    [ -n "$record" ] || return 0
    {
        echo "# Linux $1, gfx$2, $3 card(s)"
        grep -v ^rocminfo "$got"
        sed -n 's/^rocminfo\t//p' "$got" | python3 "$lines" normal
    } > "$rows"
}

# programs KERNEL GFX CARDS VRAM NAME...: programs of the build next to each other in one guest;
# NAME=VALUE for their environment
programs() {
    local where=("$1" "$2" "$3") vram=$4 extra=() names=() p
    chosen "$1" "$2" "$3" || return 0
    shift 4
    for p; do
        names+=("$(basename "$p")")
        [[ $p == *=* ]] || extra+=("$build/$p=t/$(basename "$p")")
    done
    # shellcheck disable=SC2034 # pack.sh reads it
    EXTRA="${extra[*]}" ground "${where[@]}" cpu --vram "$vram" "$here/guest/programs.sh ${names[*]}"
}

# The main job of the library: on two cards, and where its engine is another, on the older kernel.
ground_demo() {
    chosen "$1" 9 2 || return 0
    EXTRA="$build/tools/kfdirect=t/kfdirect" ground "$1" 9 2 cpu "$here/guest/programs.sh info demo"
}

for k in 6.12 6.1; do
    for machine in '9 1' '9 2' '8 1' '9 0' '10 1'; do
        [ "$k $machine" != '6.1 10 1' ] || [ -n "$long$record" ] || continue
        # shellcheck disable=SC2086
        cts $k $machine cpu
    done
    [ -n "$record" ] || ground_demo $k
done
if [ -n "$have_strangers" ]; then
    for machine in '6.12 9 1' '6.12 9 2' '6.12 8 1' '6.12 10 1' '6.1 9 2'; do
        # shellcheck disable=SC2086
        strangers $machine
    done
fi
# A card of which the CPU sees half: page tables written by the SDMA engine.
small_bar() {
    chosen "$1" 9 1 || return 0
    ground "$1" 9 1 sdma --bar 64 --limit 400 "$build/tests/cts/cts"
}
# And one whose memory it sees whole, where those tables can be read.
by_engine() {
    chosen "$1" "$2" 1 || return 0
    ground "$1" "$2" 1 sdma "$build/tests/cts/cts table. late. silent."
}
# Four cards: what a number of them changes, and with --long everything.
four() {
    local cases='topology query vm. map. peer. share. trap. table.'
    cases+=' lib_kfd.devices lib_kfd.several lib_vmm.peers lib_vmm.one_step'
    cases+=' hip.start hip.peers client.cuda_stripes demo'
    chosen "$1" 9 4 || return 0
    [ -z "$long" ] || cases=
    ground "$1" 9 4 cpu --vram 64 --limit 400 "$build/tests/cts/cts $cases"
}
if [ -z "$record" ]; then
    small_bar 6.12
    small_bar 6.1
    by_engine 6.12 9
    four 6.12
    if [ -n "$long" ]; then
        by_engine 6.12 10
        four 6.1
    fi
fi
# The clients, with sizes that fit a card of 1 GiB.
clients=()
for p in "$build"/tests/clients/client_*; do
    [ ! -f "$p" ] || [ ! -x "$p" ] || clients+=("${p#"$build"/}")
done
[ -n "$record" ] || programs 6.12 9 1 1024 KFDIRECT_SCALE=32 "${clients[@]}"
# What the fake is held to is true of the driver.
[ -n "$record" ] || programs 6.12 9 2 128 tests/strangers/strangers_{nodes,filesystems}
finish
