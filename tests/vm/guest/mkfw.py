#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mkfw.py OUT CHIP: placeholder firmware for a device that will never run it.

Each file has a valid outer header and zeros. CHIP is the driver's name for the chip, e.g. vega10.
"""
import os
import struct
import sys

SIZE, HEADER = 1024, 256
# An old SDMA version: a newer one makes the driver use a second kind of queue.
PARTS = {"pfp": (1, 0x1000), "me": (1, 0x1000), "ce": (1, 0x1000), "mec": (1, 0x1000), "mec2": (1, 0x1000),
         "rlc": (2, 0x1000), "sdma": (1, 16), "sdma1": (1, 16)}
# engines, CUs per array, arrays per engine, backends, caches, registers, five numbers of geometry,
# LDS buffers, wave size, waves, scratch slots, LDS
SHAPE = (4, 16, 1, 4, 16, 256, 32, 32, 1792, 1, 1, 64, 10, 32, 64)


def header(major, version):
    return struct.pack("<IIHHHHIIII", SIZE, HEADER, major, 0, 8, 0, version, SIZE - HEADER, HEADER, 0)


def write(folder, chip, part, data):
    with open(f"{folder}/{chip}_{part}.bin", "wb") as f:
        f.write(data)


def main(out, chip):
    folder = f"{out}/amdgpu"
    os.makedirs(folder, exist_ok=True)
    for part, (major, version) in PARTS.items():
        write(folder, chip, part, header(major, version).ljust(SIZE, b"\0"))
    info = header(1, 0x1000) + struct.pack("<HH", 1, 0)
    write(folder, chip, "gpu_info", info.ljust(HEADER, b"\0") + struct.pack("<15I", *SHAPE).ljust(SIZE - HEADER, b"\0"))


if __name__ == "__main__":
    main(*sys.argv[1:3])
