#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Checks an installed copy the way its users meet it: pkg-config, headers alone, the command, and a
# project of its own (tests/consumer). usage: check.sh PREFIX SCRATCH-DIRECTORY
set -u
prefix=$1 scratch=$2/installed
cd "$(dirname "$0")/../.." || exit 1
. tools/checks.sh
rm -rf "$scratch"
mkdir -p "$scratch"

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib PATH=$prefix/bin:$PATH
unset KFDIRECT_FAKE KFDIRECT_ENGINE

version=$(sed -n 's/^#define KFDIRECT_VERSION_STRING "\(.*\)"/\1/p' include/kfdirect/version.h)
for name in kfdirect kfdirect-fake; do
    verdict "pkg-config $name says $version" \
        "$(pkg-config --modversion "$name" 2>&1 | grep -vxF "$version")"
done

# Each public header alone, strictly, in both languages and by both compilers.
headers=$(cd "$prefix/include" && find . -name '*.h' | sed 's|^\./||' | sort)
for compiler in "gcc -std=c11 -xc" "g++ -std=c++17 -xc++" "clang -std=c11 -xc" \
    "clang++ -std=c++17 -xc++"; do
    tool "${compiler%% *}" "headers with $compiler" || continue
    # shellcheck disable=SC2086
    verdict "headers with $compiler" "$(for h in $headers; do
        printf '#include <%s>\nextern int nothing;\n' "$h" | $compiler -Wall -Wextra -Wpedantic -Werror -fsyntax-only \
            $(pkg-config --cflags kfdirect) - 2>&1
    done)"
done

for library in "$prefix"/lib/libkfdirect*.so; do
    verdict "$(basename "$library") carries no build path" \
        "$(readelf -d "$library" | grep -E 'RPATH|RUNPATH|TEXTREL')"
done

# What the driver ties to the process must outlive a dlclose.
for library in kfdirect kfdirect-fake; do
    verdict "lib$library stays loaded" \
        "$(readelf -d "$prefix/lib/lib$library.so" | grep -q 'FLAGS_1.*NODELETE' || echo 'not marked NODELETE')"
done

# Half the point of a small library; the budget is for x86-64.
small() {
    strip -o "$scratch/stripped" "$prefix/lib/libkfdirect.so" && stat -c '%s bytes' "$scratch/stripped" &&
        [ "$(stat -c %s "$scratch/stripped")" -lt 200000 ]
}
[ "$(uname -m)" != x86_64 ] || check "libkfdirect.so takes less than 200 kB stripped" small

# example DOCUMENT MODULE: what a reader gets who does as it says there
example() {
    local flags
    flags=$(pkg-config --cflags --libs "$2") || return 1
    python3 tools/readme_example.py "$1" >"$scratch/example.c" || return 1
    # shellcheck disable=SC2086
    gcc -std=c11 -D_DEFAULT_SOURCE -Wall -Wextra -Werror -o "$scratch/example" "$scratch/example.c" $flags &&
        KFDIRECT_FAKE=mi300x:2 "$scratch/example"
}
check "the example of README.md, against the installed copy" example README.md kfdirect
check "the example of docs/fake.md, against the installed copy" example docs/fake.md kfdirect-fake
check "the example of docs/testing.md, against the installed copy" example docs/testing.md kfdirect-fake

# Who builds with the library needs nothing of what the library was built with.
verdict "pkg-config asks for nothing else" \
    "$(PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig pkg-config --cflags --libs kfdirect kfdirect-fake 2>&1 | grep -i package)"

consumer() {
    meson setup "$scratch/consumer" tests/consumer && meson test -C "$scratch/consumer" -v
}
check "a user's project: its allocator on the fake, with failures injected" consumer

command_runs() {
    kfdirect --version | grep -F "$version" && KFDIRECT_FAKE=mi300x:2 kfdirect info --json |
        python3 -m json.tool >/dev/null
}
check "the installed command runs" command_runs

closing_line
