#!/bin/busybox sh
# SPDX-License-Identifier: MIT
# Runs in the guest: every program next to it whose name is given, on the driver; a name that is no
# program is a command of kfdirect, NAME=VALUE goes into the environment. One TAP line for each case
# of a program that has cases, one for each other program, after the end of its output where it
# failed.
n=0 bad=0
for p; do
    case $p in
    *=*) export "$p" && continue ;;
    esac
    rc=0
    run=./$p
    [ -x "$run" ] || run="./kfdirect $p"
    KFDIRECT_REAL=1 CMOCKA_MESSAGE_OUTPUT=TAP timeout 60 $run > out.txt 2>&1 < /dev/null || rc=$?
    cases=$(grep -cE '^(not )?ok [0-9]' out.txt)
    awk -v p="$p" -v n=$n '/^(not )?ok [0-9]/ { sub(/ok [0-9]+ (- )?/, "ok " ++n " - " p ": "); print }' out.txt
    n=$((n + cases))
    case $rc in
    0) [ "$cases" != 0 ] || echo "ok $((n += 1)) - $p" ;;
    77) [ "$cases" != 0 ] || echo "ok $((n += 1)) - $p # SKIP $(tail -n 1 out.txt)" ;;
    *)
        bad=1
        tail -n 30 out.txt | sed 's/^/# /'
        grep -q '^not ok' out.txt || echo "not ok $((n += 1)) - $p # exit code $rc"
        ;;
    esac
done
echo "1..$n"
exit $bad
