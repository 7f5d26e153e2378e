#!/bin/busybox sh
# SPDX-License-Identifier: MIT
# Runs in the guest: every program next to it whose name is given, on the driver; a name that is no
# program is a command of kfdirect. One TAP line each, after the end of its output where it failed.
n=0 bad=0
for p; do
    n=$((n + 1))
    rc=0
    run=./$p
    [ -x "$run" ] || run="./kfdirect $p"
    KFDIRECT_REAL=1 CMOCKA_MESSAGE_OUTPUT=TAP timeout 60 $run > out.txt 2>&1 < /dev/null || rc=$?
    case $rc in
    0) echo "ok $n - $p$(sed -n 's/^1\.\.0 # SKIP/ # SKIP/p' out.txt)" ;;
    77) echo "ok $n - $p # SKIP $(tail -n 1 out.txt)" ;;
    *)
        bad=1
        tail -n 30 out.txt | sed 's/^/# /'
        echo "not ok $n - $p # exit code $rc"
        ;;
    esac
done
echo "1..$n"
exit $bad
