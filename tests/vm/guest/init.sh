#!/bin/busybox sh
# SPDX-License-Identifier: MIT
# The guest's first program. It loads the cards and the driver, says READY for the snapshot, waits
# for a disk that is a tar file, unpacks it over / and runs /t/run.sh.
#   ttyS0  the guest's log; lines of this script begin with @@
#   ttyS1  what the test prints
#   ttyS2  what the test records (/dev/ttyS2, left to the test)
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /etc
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs dev /dev 2>/dev/null
/bin/busybox mount -t debugfs debugfs /sys/kernel/debug
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin HOME=/tmp
mkdir -p /dev/shm && mount -t tmpfs tmpfs /dev/shm
echo 'root:x:0:0:root:/tmp:/bin/sh' > /etc/passwd
echo 'root:x:0:' > /etc/group
ip link set lo up

say() { read -r up _ < /proc/uptime; echo "@@ $up $*"; }
# the words name=a,b,c of the kernel's command line
words() { for w in $(cat /proc/cmdline); do case $w in "$1"=*) echo "${w#*=}" | tr ',' ' ';; esac; done; }

echo 8 > /proc/sys/kernel/printk
say "kernel $(uname -r)"
for m in $(words mods) amdgpu; do
    modprobe "$m" || say "modprobe $m failed"
done
[ -c /dev/kfd ] || say "FAILED: no /dev/kfd"
got=$(grep -cv '^0$' /sys/class/kfd/kfd/topology/nodes/*/gpu_id | grep -c ':1$')
want=$(words hollow.count)
[ "$got" = "${want:-0}" ] || { say "FAILED: $got GPU nodes, expected ${want:-0}"; poweroff -f; }
modprobe virtio_pci # a module of its own on 6.1; without it a restored guest never sees its disk
sleep 3 # late self-tests of the driver belong before the snapshot
say READY
until modprobe virtio_blk; [ "$(dd if=/dev/vda bs=5 count=1 2>/dev/null)" = "t/run" ]; do
    rmmod virtio_blk
    sleep 0.1
done
say GO
cd / && tar xf /dev/vda
for t in /dev/ttyS1 /dev/ttyS2; do stty -F $t raw -echo; done
cd /t && sh ./run.sh > /dev/ttyS1 2>&1 < /dev/null
say "DONE rc $?"
sync
poweroff -f
