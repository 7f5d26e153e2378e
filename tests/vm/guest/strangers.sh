#!/bin/busybox sh
# SPDX-License-Identifier: MIT
# strangers.sh MACHINE KERNEL PROGRAM...: runs in the guest, the programs next to it on the driver. They
# compare with the profile of that machine and, where there is a file `expect`, with its rows. What
# rocminfo prints is recorded and compared outside.
export KFDIRECT_REAL=1 KFDIRECT_FAKE=$1 KFDIRECT_FAKE_KERNEL=$2 CMOCKA_MESSAGE_OUTPUT=TAP
export STRANGERS_RECORD=/dev/ttyS2
[ ! -e expect ] || export STRANGERS_EXPECT=expect
shift 2
bad=0
for p; do
    if [ "$p" = rocminfo ]; then
        timeout 60 ./rocminfo > out.txt
        rc=$?
        awk '{ print "rocminfo\t" $0 }' out.txt > /dev/ttyS2
        [ $rc = 0 ] && [ "$(tail -n 1 out.txt | tr -d ' ')" = '***Done***' ] && echo "ok 1 - rocminfo comes to its end" && continue
        echo "not ok 1 - rocminfo comes to its end # exit code $rc"
        bad=1
    else
        timeout 60 "./$p" || bad=1
    fi
done
exit $bad
