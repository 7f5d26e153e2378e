# SPDX-License-Identifier: MIT
# Debian packages by purpose, and how to get them. Sourced by demo.sh and test.sh.

packages_build="gcc libc6-dev meson ninja-build pkg-config libdrm-dev"
packages_test="libcmocka-dev g++"
packages_clang="clang libclang-rt-14-dev"
packages_lint="git clang-format clang-tidy cppcheck mandoc"
packages_strangers="libhsakmt-dev libhsa-runtime64-1 rocminfo hwloc valgrind"
packages_vm="qemu-system-x86 busybox-static kmod cpio xz-utils make python3 util-linux"
packages_hip="libamdhip64-dev"
packages_aarch64="gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
packages_bare="debootstrap"

# Prints those of the packages "$@" that are not installed.
packages_missing() {
    local name
    for name in "$@"; do
        case $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) in
        installed) ;;
        *) echo "$name" ;;
        esac
    done
}

# Installs what is missing of "$@"; says what it could not get and fails.
packages_need() {
    local missing
    missing=$(packages_missing "$@" | tr '\n' ' ')
    [ -z "$missing" ] && return 0
    if [ "$(id -u)" != 0 ]; then
        echo "missing Debian packages: $missing(install them, or run as root)" >&2
        return 1
    fi
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    apt-get install -y -q --no-install-recommends $missing >/dev/null 2>&1 && return 0
    apt-get update -q >/dev/null 2>&1
    # shellcheck disable=SC2086
    apt-get install -y -q --no-install-recommends $missing >/dev/null 2>&1 && return 0
    echo "apt-get could not install: $missing" >&2
    return 1
}
