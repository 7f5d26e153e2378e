/* SPDX-License-Identifier: MIT */
/*
 * The small language of cases.tsv. A script is a list of statements parted by "; ", each a call and
 * its arguments. Names: r0.. reservations, h0.. handles, a0.. one-step memory, p0.. memory of the
 * C library, f0.. descriptors. Numbers: decimal, 0x, 2^n, with K M G T, "total" (device memory),
 * "max" (all ones), added and taken off. A statement succeeds unless it begins with "=CODE "; the
 * one that begins with "!" is the case, and its code is the script's result.
 *
 *   reserve r SIZE [align= hint= flags=]     free ADDR SIZE
 *   create h SIZE [type= loc= id= ht= flags= comp= rdma= usage= pad= win= null noprop]
 *   map ADDR SIZE h [off= flags=]            unmap ADDR SIZE
 *   access ADDR SIZE RIGHTS                  rights: rw ro no null none, or type:id=flags,...
 *   get ADDR [loc= id= want= null]           retain h ADDR       release h
 *   props h [ht= loc= id= null]              gran [type= loc= id= ht= opt= usage= pad= null noprop]
 *   export f h [type= flags= null]           import h FD [type= null]      close f
 *   malloc a SIZE   hostmalloc a SIZE        mfree ADDR          host p SIZE    unhost p
 *   set ADDR BYTE SIZE [async]               toread ADDR SIZE    towrite ADDR SIZE
 *   copy ADDR ADDR SIZE [async]              byte ADDR VALUE     ipc ADDR
 *   store ADDR [BYTE]   load ADDR [BYTE]     by GPU 0; gpu=N for another
 *   range ADDR [base= size=]                 attr NAME ADDR [want=]
 *   hostload ADDR       nohost ADDR SIZE     the CPU's own view of an address
 *   layout A.BB         reserves r0, maps one handle per letter over as many 2-MiB pages
 *   state W.RR0         the rights of device 0 on each page of r0, "." for a hole
 *   left SIZE           free memory of device 0 (dev=N) is that much less than at the start
 *   equal X Y, differ X Y, aligned X Y       many COUNT SIZE     untilfull SIZE COUNT
 */
#ifndef ORACLE_SCRIPT_H
#define ORACLE_SCRIPT_H

#include <stdbool.h>

/* Runs the script and takes everything it made away again. The result is the code's name without
 * its family ("SUCCESS", "INVALID_VALUE", ...), or NULL with the reason in text when a statement
 * other than the case itself did not go as written. */
const char *script_run(const char *script, char *text, unsigned size);

#endif
