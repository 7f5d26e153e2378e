#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Shows that a machine with nothing on it can do it: installs a minimal Debian 12 into a temporary
# directory, clones this repository's last commit into it and runs tools/demo.sh there. Needs root.
#
#   tools/bare.sh [COMMAND...]      another command instead, for example tools/test.sh
#
# Packages come from where this machine's own apt takes them.
set -eu
cd "$(dirname "$0")/.."
. tools/packages.sh
source=$PWD
[ $# -gt 0 ] || set -- tools/demo.sh
[ "$(id -u)" = 0 ] || {
    echo "bare.sh needs root" >&2
    exit 1
}
# shellcheck disable=SC2086
packages_need $packages_bare git

mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk '$2 == "bookworm" && $3 == "main" { print $1; exit }')
[ -n "$mirror" ] || {
    echo "apt on this machine knows no Debian 12 (bookworm) source" >&2
    exit 1
}

root=$(mktemp -d "${TMPDIR:-/tmp}/kfdirect-bare.XXXXXX")
mounts=""
clean() {
    for m in $mounts; do umount -R "$m" || true; done
    # Never delete through something that is still mounted.
    grep -q " $root/" /proc/mounts || rm -rf "$root"
}
trap clean EXIT

debootstrap --variant=minbase bookworm "$root" "$mirror" >"$root.log" 2>&1 || {
    tail -n 20 "$root.log" >&2
    exit 1
}
rm -f "$root.log"
# apt inside works as it does here: same sources, settings, keys and name resolution.
cp -a /etc/apt/sources.list* "$root/etc/apt/" 2>/dev/null || true
cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
cp -a /usr/share/keyrings/debian-archive-keyring.gpg "$root/usr/share/keyrings/" 2>/dev/null || true
find "$root/etc/apt/sources.list.d" -type f ! -name 'debian*' -delete
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
for m in proc sys dev; do
    if mount --rbind "/$m" "$root/$m" 2>/dev/null; then
        mount --make-rslave "$root/$m"
        mounts="$root/$m $mounts"
    fi
done

git clone -q --no-local "$source" "$root/src"
echo "in a minimal Debian 12, with $(chroot "$root" dpkg-query -f '.\n' -W | wc -l) packages: $*"
chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LC_ALL=C.UTF-8 \
    sh -c 'cd /src && exec "$@"' sh "$@"
