#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Checks that need no run of the library. usage: tools/lint.sh [BUILD-DIRECTORY]
# With a build directory made by clang, clang-tidy uses its compile commands; without one it is left
# out. The last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.." || exit 1
. tools/checks.sh
database=${1-}

# The tree as committed, with changes; without git, everything but build directories.
files() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files -co --exclude-standard -- "$@"
    else
        local args=() pattern
        for pattern in "$@"; do
            args+=(-o -path "./$pattern")
        done
        find . -path './build*' -prune -o -type f \( "${args[@]:1}" \) -print | sed 's|^\./||'
    fi | while read -r f; do [ -f "$f" ] && echo "$f"; done
}

# forbid NAME PERL-PATTERN PATHSPEC...: no line of these files may match.
forbid() {
    local name=$1 pattern=$2 list
    shift 2
    list=$(files "$@")
    if [ -z "$list" ]; then
        omit "$name" "no such files"
        return
    fi
    # shellcheck disable=SC2086
    verdict "$name" "$(grep -nHP -- "$pattern" $list)"
}

sources=$(files '*.c' '*.h')

if tool clang-format format; then
    # shellcheck disable=SC2086
    verdict format "$(clang-format --dry-run -Werror $sources 2>&1 | grep -E 'error|warning')"
fi

# Layers: hip_api -> vmm -> kfd -> sys, and the fake on the far side of the seam.
own='#\s*include\s*[<"]'
forbid "lib/kfd includes nothing above it" "$own(kfdirect/(vmm|fake)|vmm/|hip|fake/)" 'lib/kfd/*.[ch]'
forbid "lib/vmm includes kfd only" "$own(kfdirect/fake|hip|fake/)" 'lib/vmm/*.[ch]'
forbid "lib/vmm knows no ioctl" "$own(kfd/uapi|sys/ioctl|linux/|drm|amdgpu|xf86drm)" 'lib/vmm/*.[ch]'
forbid "lib/hip_api includes no fake and no ioctl" \
    "$own(kfdirect/fake|fake/|kfd/uapi|sys/ioctl|linux/|drm|amdgpu|xf86drm)" 'lib/hip_api/*.[ch]'
forbid "lib/fake includes nothing above the seam" "$own(kfdirect/vmm|vmm/|hip)" 'lib/fake/*.[ch]'
forbid "public headers include no internal one" "$own(kfd|vmm|hip_api|fake)/" \
    'include/kfdirect/*.h' 'include/hip/*.h'
# shellcheck disable=SC2046
verdict "public functions have comments" "$(tools/header_comments.py $(files 'include/kfdirect/*.h'))"
libraries="lib/kfd/*.[ch] lib/vmm/*.[ch] lib/hip_api/*.[ch] lib/fake/*.[ch]"
# shellcheck disable=SC2086
forbid "libraries never print, abort or exit" \
    '^(?!\s*\*|\s*//|.*/\*).*(?<![\w.>])(printf|puts|putchar|perror|abort|_?exit|quick_exit|assert)\s*\(' \
    $libraries
# shellcheck disable=SC2086
forbid "libraries have no constructors" '__attribute__\s*\(\(.*(con|de)structor' 'lib/kfd/*.[ch]' \
    'lib/vmm/*.[ch]' 'lib/hip_api/*.[ch]'
forbid "system calls go through the seam" \
    '^(?!\s*\*|.*/\*).*(?<![\w.>*])(ioctl|drmIoctl|open|openat|close|mmap|munmap|mprotect|madvise)\s*\((?!\*)' \
    'lib/vmm/*.c' 'lib/hip_api/*.c' $(files 'lib/kfd/*.c' | grep -v sys_linux)
forbid "no marks of unfinished work" '\b(TODO|FIXME|XXX|HACK)\b' 'lib/*' 'include/*' 'tests/*.[ch]' \
    'tools/*.[ch]' 'docs/*' README.md
forbid "no path or host of one machine" '(?<![\w.])/(home|root|work)/\w|debian\.org|ubuntu\.com' \
    '*.[ch]' '*.build' '*.txt' 'docs/*' '*.md' 'tests/*' '.ci/*'

# shellcheck disable=SC2086
verdict "no source above 700 lines" "$(wc -l $sources | awk '$2 != "total" && $1 > 700')"
verdict "SPDX line first" "$(for f in $(files '*.[ch]' '*.sh' '*.py'); do
    head -n 2 "$f" | grep -q 'SPDX-License-Identifier: MIT' || echo "$f"
done)"
verdict "shell scripts parse" "$(for f in $(files '*.sh' '.ci/run'); do bash -n "$f" 2>&1; done)"

verdict "documents link to files that exist" "$(for f in $(files '*.md'); do
    grep -oP '\]\(\K[^)#:]+(?=\))' "$f" | while read -r to; do
        [ -e "$(dirname "$f")/$to" ] || echo "$f: $to"
    done
done)"

pages=$(files 'docs/*.1' 'docs/*.3' 'docs/*.7')
if [ -n "$pages" ] && tool mandoc "man pages"; then
    # shellcheck disable=SC2086
    verdict "man pages" "$(mandoc -T lint -W warning $pages 2>&1)"
fi

if tool cppcheck cppcheck; then
    verdict cppcheck "$(cppcheck --quiet --std=c11 --inline-suppr -j "$(nproc)" -Iinclude -Ilib \
        -Ilib/system -D_GNU_SOURCE -DKFDIRECT_DEBUG=1 --enable=warning,portability,performance \
        --suppress=missingInclude --suppress=legacyUninitvar \
        --template='{file}:{line}: {severity}: {message} [{id}]' lib tools 2>&1)"
fi
if [ -n "$database" ] && [ -f "$database/compile_commands.json" ]; then
    checked=$(files 'lib/*.c' 'tools/*.c')
    if tool clang-tidy clang-tidy; then
        # shellcheck disable=SC2086
        verdict clang-tidy "$(echo $checked | xargs -n 4 -P "$(nproc)" \
            clang-tidy --quiet -p "$database" 2>/dev/null | grep -E 'error:|warning:')"
    fi
else
    omit "clang-tidy" "no build directory given"
fi

closing_line
