#!/bin/bash
# SPDX-License-Identifier: MIT
# build.sh 6.12|6.1: prints a folder of the cache that holds vmlinuz and initrd.
# The kernel, its headers and its modules come from Debian's packages, which are unpacked into the
# cache and never installed. What is there already is kept; the initrd is made anew when a source
# of the guest has changed.
set -euo pipefail
. "$(dirname "$0")/common.sh"

case ${1:-} in
6.12) meta=linux-image-6.12-amd64 ;;
6.1) meta=linux-image-amd64 ;;
*) die "build.sh: 6.12 or 6.1, not '${1:-}'" ;;
esac
need apt-get apt dpkg-deb dpkg busybox busybox-static modprobe kmod cpio cpio xz xz-utils \
    gcc gcc make make python3 python3 sha256sum coreutils

dir=$cache/linux-$1
mkdir -p "$dir"
sources=("$here"/guest/* "$here/build.sh")
stamp=$(cat "${sources[@]}" "$here/vm.py" "$here/cards.sh" | sha256sum | cut -c1-16)
if [ "$(cat "$dir/stamp" 2> /dev/null)" = "$stamp" ] && [ -s "$dir/initrd" ]; then
    echo "$dir"
    exit
fi
need_space "$dir" 1500
rm -f "$dir"/stamp "$dir"/*.snap

# download PACKAGE...: into a folder of the cache, unpacked under DIR/$2
fetch() {
    local to=$1
    shift
    mkdir -p "$dir/debs"
    (cd "$dir/debs" && for p; do
        ls "${p}"_*.deb > /dev/null 2>&1 || apt-get download -q "$p" > download.log 2>&1 ||
            die "apt-get download $p failed, see $dir/debs/download.log (is the package list there? apt-get update)"
    done)
    for p; do dpkg-deb -x "$dir"/debs/"$p"_*.deb "$to"; done
}

if [ ! -e "$dir/unpacked" ]; then
    image=$(apt-cache depends "$meta" 2> /dev/null |
        awk '$1 == "Depends:" && $2 ~ /^linux-image-[0-9]/ { print $2; exit }')
    [ -n "$image" ] || die "$meta is not in the package lists; add Debian bookworm-security and run apt-get update"
    kver=${image#linux-image-}
    version=${kver%-*}
    kbuild=linux-kbuild-$version
    apt-cache show "$kbuild" > /dev/null 2>&1 || kbuild=linux-kbuild-${version%.*}
    rm -rf "$dir/root" "$dir/headers"
    fetch "$dir/root" "$image"
    fetch "$dir/headers" "linux-headers-$kver" "linux-headers-$version-common" "$kbuild"
    # The header packages name each other by absolute paths; make those point into the cache.
    h=$dir/headers
    sed -i "s#/usr/src/#$h/usr/src/#g" "$h/usr/src/linux-headers-$kver/Makefile"
    find "$h/usr/src" -maxdepth 2 -type l | while read -r l; do
        t=$(readlink "$l")
        case $t in /usr/*) ln -sfn "$h$t" "$l" ;; esac
    done
    depmod -b "$dir/root" "$kver"
    rm -rf "$dir/debs"
    echo "$kver" > "$dir/unpacked"
fi
kver=$(cat "$dir/unpacked")

rm -rf "$dir/module"
mkdir "$dir/module"
cp "$here"/guest/*.[ch] "$here/guest/Makefile" "$dir/module/"
# Debian's kernel packages ask for pahole when BTF of modules is on.
make -s -C "$dir/headers/usr/src/linux-headers-$kver" M="$dir/module" CONFIG_DEBUG_INFO_BTF_MODULES= \
    modules > "$dir/module.log" 2>&1 || die "the guest module does not build, see $dir/module.log"

tree=$dir/tree
rm -rf "$tree"
mkdir -p "$tree"/{bin,dev,proc,sys,tmp,lib/firmware,"lib/modules/$kver/extra"}
cp "$(command -v busybox)" "$tree/bin/busybox"
install -m 755 "$here/guest/init.sh" "$tree/init"
cp "$dir/module/hollow.ko" "$tree/lib/modules/$kver/extra/"
for chip in vegam vega10 navi10; do python3 "$here/guest/mkfw.py" "$tree/lib/firmware" $chip; done
python3 "$here/guest/mkdiscovery.py" "$tree/lib/firmware"
for m in amdgpu vgem udmabuf virtio_pci virtio_blk; do
    modprobe -d "$dir/root" -S "$kver" --show-depends "$m" 2> /dev/null || true
done | awk '$1 == "insmod" { print $2 }' | sort -u | while read -r ko; do
    to=$tree/${ko#"$dir/root/"}
    mkdir -p "$(dirname "$to")"
    case $ko in
    *.xz) xz -dc "$ko" > "${to%.xz}" ;;
    *) cp "$ko" "$to" ;;
    esac
done
cp "$dir/root/lib/modules/$kver"/modules.{builtin,builtin.modinfo,order} "$tree/lib/modules/$kver/"
depmod -b "$tree" "$kver"
cp "$dir/root/boot/vmlinuz-$kver" "$dir/vmlinuz"
(cd "$tree" && find . | cpio --quiet -o -H newc) > "$dir/initrd"
echo "$stamp" > "$dir/stamp"
echo "$dir"
