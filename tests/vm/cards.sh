#!/bin/bash
# SPDX-License-Identifier: MIT
# cards.sh GFX CARDS VRAM BAR UPDATE
# The kernel command line words that make hollow cards and let amdgpu bind to them.
#   GFX 8 (VegaM, 40-bit addresses), 9 (Vega10, 47-bit) or 10 (Navi10, 47-bit); CARDS 0 to 4; VRAM
#   MiB of each and BAR MiB of it that the CPU sees, powers of two; UPDATE cpu or sdma: who writes
#   the page tables
set -euo pipefail
gfx=$1 cards=$2 vram=$3 bar=$4 update=$5
kept=$(((cards * (vram + 6) + 127) / 128 * 128))
case $update in cpu) mode=3 ;; sdma) mode=0 ;; *) exit 2 ;; esac

if [ "$cards" = 0 ]; then # the driver without any card
    echo mods=vgem
    exit
fi
# The cards' memory lies at 1 GiB: their 32-bit BARs need addresses below 4 GiB.
echo "memmap=${kept}M\$0x40000000" mods=hollow,vgem
echo "hollow.gen=$gfx" "hollow.count=$cards" "hollow.vram_mb=$vram" "hollow.bar_mb=$bar"
case $gfx in
8) # preset: memory size in MiB; BIOS scratch 7 "initialised already"; two user queues of each SDMA engine idle
    echo hollow.device=0x694c hollow.revision=0xc0
    echo "hollow.reg_off=0x5428,0x1740,0xd444,0xd644,0xdc44,0xde44" "hollow.reg_val=$vram,0x200,4,4,4,4"
    # held: VMID to PASID mappings are done (a user queue waits for that without end)
    echo hollow.force_off=0x3398 hollow.force_val=0xffffffff
    echo amdgpu.vm_size=1024
    ;;
9) # preset: the same; held: MMHUB's flush semaphore free, flushes acknowledged, mappings done
    echo hollow.device=0x6860 hollow.revision=0
    echo "hollow.reg_off=0x378c,0x14c,0x4ec4,0x5044,0x56c4,0x5844" "hollow.reg_val=$vram,0x200,4,4,4,4"
    echo hollow.force_off=0x69b88,0x69c18,0xa318,0x30ac hollow.force_val=1,0xffffffff,0xffffffff,0xffffffff
    echo amdgpu.fw_load_type=0 amdgpu.agp=0
    ;;
10) # preset: the same, and how memory is spread over channels
    echo hollow.device=0x731f hollow.revision=0xc1
    echo "hollow.reg_off=0x378c,0x14c,0x98f8,0x4ec4,0x5044,0x66c4,0x6844" "hollow.reg_val=$vram,0x200,0x44,4,4,4,4"
    # held: the semaphore; flushes of both hubs acknowledged; instruction caches of the four
    # microcontrollers emptied
    off=0x69b88,0x69c18,0xa318,0x3e10c,0x3e11c,0x3e12c,0x3e13c
    echo hollow.force_off=$off hollow.force_val=1,0xffffffff,0xffffffff,2,2,2,2
    # the list of blocks from a file; the graphics ring started by registers and not by the KIQ
    echo amdgpu.discovery=2 amdgpu.async_gfx_ring=0 amdgpu.fw_load_type=0 amdgpu.agp=0
    ;;
*) exit 2 ;;
esac
# Blocks: common, gmc, ih, gfx, sdma; no kernel compute queues, for nothing plays their IB tests.
echo amdgpu.ip_block_mask=0x1f amdgpu.num_kcq=0 "amdgpu.vm_update_mode=$mode" amdgpu.sched_policy=2
echo amdgpu.gpu_recovery=0 amdgpu.dc=0 amdgpu.runpm=0
