#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mkdiscovery.py OUT: the table that tells the driver what a gfx10 card consists of.

A card of silicon keeps it in its memory; with amdgpu.discovery=2 the driver takes it from this file.
The versions and register bases are those of a Navi10.
"""
import os
import struct
import sys

# hardware id, version, register bases in dwords
BLOCKS = [
    (11, (10, 1, 10), (0x1260, 0xA000)),  # graphics and compute
    (42, (5, 0, 0), (0x1260,)),  # SDMA 0
    (43, (5, 0, 0), (0x1260,)),  # SDMA 1: numbered from SDMA 0's base
    (34, (2, 0, 0), (0x1A000,)),  # memory hub
    (35, (2, 0, 0), (0xC00,)),  # address translation hub
    (40, (5, 0, 0), (0x10A0,)),  # interrupts
    (41, (5, 0, 0), (0xF20,)),  # host data path
    (46, (2, 1, 0), (0x7000,)),  # data fabric
    (108, (2, 3, 0), (0, 0x14, 0xD20, 0x10400)),  # bus interface
    (4, (11, 0, 0), (0x16800, 0x16A00)),  # clocks, ROM
    (3, (11, 0, 0), (0x16600,)),  # temperature
    # Without these three the driver gives up, also when they are masked out.
    (255, (11, 0, 0), (0x16000,)),  # security processor
    (1, (11, 0, 0), (0x16000,)),  # power management
    (12, (2, 0, 0), (0x7800, 0x7E00)),  # video
]
# engines, two kinds of WGPs per array, backends, L2 channels, registers, five numbers of geometry,
# LDS buffers, wave size, waves, scratch slots, LDS, scan converters, arrays, packers, L2 arbiters
SHAPE = (2, 3, 2, 8, 16, 1024, 32, 32, 1792, 512, 1, 32, 20, 32, 64, 2, 2, 2, 4)
TABLES = 6
HEAD = 12 + 8 * TABLES  # of the whole binary
SUMMED = 10  # what the whole sum leaves out


def blocks(at):
    """The list of blocks, which names its one die by its place in the binary."""
    list_head = 80
    data = struct.pack("<HH", 0, len(BLOCKS))
    for hw, version, bases in BLOCKS:
        data += struct.pack("<HBB3BB", hw, 0, len(bases), *version, 0)
        data += struct.pack(f"<{len(bases)}I", *bases)
    head = struct.pack("<4sHHIHHH", b"IPDS", 2, list_head + len(data), 0, 1, 0, at + list_head)
    return head.ljust(list_head, b"\0") + data


def shape():
    return struct.pack("<IHHI", 0x4347, 1, 0, 12 + 4 * len(SHAPE)) + struct.pack(f"<{len(SHAPE)}I", *SHAPE)


def main(out):
    body, rows = b"", b""
    for make in (blocks, lambda at: shape()):
        at = HEAD + len(body)
        table = make(at)
        rows += struct.pack("<HHHH", at, sum(table) & 0xFFFF, len(table), 0)
        body += table
    head = struct.pack("<H", HEAD + len(body)) + rows.ljust(8 * TABLES, b"\0")
    start = struct.pack("<IHHH", 0x28211407, 1, 0, sum(head + body) & 0xFFFF)
    assert len(start) == SUMMED
    os.makedirs(f"{out}/amdgpu", exist_ok=True)
    with open(f"{out}/amdgpu/ip_discovery.bin", "wb") as f:
        f.write(start + head + body)


if __name__ == "__main__":
    main(sys.argv[1])
