#!/bin/bash
# SPDX-License-Identifier: MIT
# cards.sh GFX CARDS VRAM BAR UPDATE
# The kernel command line words that make hollow cards and let amdgpu bind to them.
#   GFX 8 (VegaM, 40-bit addresses) or 9 (Vega10, 47-bit); CARDS 0 to 4; VRAM MiB of each and BAR
#   MiB of it that the CPU sees, powers of two; UPDATE cpu or sdma: who writes the page tables
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
8) # preset: memory size in MiB; BIOS scratch 7 "initialised already"
    echo hollow.device=0x694c hollow.revision=0xc0 "hollow.reg_off=0x5428,0x1740" "hollow.reg_val=$vram,0x200"
    # held: VMID to PASID mappings are done (a user queue waits for that without end)
    echo hollow.force_off=0x3398 hollow.force_val=0xffffffff
    echo amdgpu.vm_size=1024
    ;;
9) # preset: the same two; held: MMHUB's flush semaphore free, flushes acknowledged, mappings done
    echo hollow.device=0x6860 hollow.revision=0 "hollow.reg_off=0x378c,0x14c" "hollow.reg_val=$vram,0x200"
    echo hollow.force_off=0x69b88,0x69c18,0xa318,0x30ac hollow.force_val=1,0xffffffff,0xffffffff,0xffffffff
    echo amdgpu.fw_load_type=0 amdgpu.agp=0
    ;;
*) exit 2 ;;
esac
# Blocks: common, gmc, ih, gfx, sdma; no kernel compute queues, for nothing plays their IB tests.
echo amdgpu.ip_block_mask=0x1f amdgpu.num_kcq=0 "amdgpu.vm_update_mode=$mode" amdgpu.sched_policy=2
echo amdgpu.gpu_recovery=0 amdgpu.dc=0 amdgpu.runpm=0
