#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Builds the library and runs `kfdirect demo` on this machine's GPUs, or on a fake one with eight
# GPUs where there is none. Arguments go to the demo (--json, --machine NAME). On Debian 12 and as
# root it installs the compiler, Meson and libdrm if they are missing. Builds in build-demo/
# (KFDIRECT_DEMO_DIR).
set -eu
cd "$(dirname "$0")/.."
. tools/packages.sh
build=${KFDIRECT_DEMO_DIR:-$PWD/build-demo}

# shellcheck disable=SC2086
packages_need $packages_build
mkdir -p "$build"
{
    [ -d "$build/meson-info" ] || meson setup "$build" -Dtests=disabled -Dbench=false
    ninja -C "$build"
} >"$build/log.txt" 2>&1 || {
    tail -n 30 "$build/log.txt" >&2
    exit 1
}
exec "$build/tools/kfdirect" demo "$@"
