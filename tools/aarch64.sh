#!/bin/bash
# SPDX-License-Identifier: MIT
# Compiles every library source for aarch64 with Debian's cross compiler, warnings as errors. It
# links and runs nothing: libdrm's headers are the same on every machine, its library is not here.
set -u
cd "$(dirname "$0")/.." || exit 1
cc=aarch64-linux-gnu-gcc
failed=0
for source in lib/kfd/*.c lib/vmm/*.c lib/hip_api/*.c lib/fake/*.c lib/fake/preload/*.c lib/trace/*.c; do
    flags=
    case $source in lib/fake/preload/* | lib/trace/*) flags=-fno-builtin ;; esac # as meson.build has it
    # shellcheck disable=SC2046,SC2086
    $cc $flags -std=gnu11 -O2 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DKFDIRECT_DEBUG=1 -Wall -Wextra \
        -Wshadow -Wno-unused-parameter -Werror '-DLIBDRM_NAMES=""' -Iinclude -Ilib -isystem lib/system \
        $(pkg-config --cflags libdrm | sed 's/-I/-isystem /g') -c "$source" -o /dev/null ||
        failed=1
done
exit $failed
