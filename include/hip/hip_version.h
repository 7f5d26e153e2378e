/* SPDX-License-Identifier: MIT */
/*
 * The version of the HIP interface that these headers follow, not that of a ROCm release:
 * hipDriverGetVersion and hipRuntimeGetVersion return it. Programs test it to choose between
 * interfaces, so it must say 7.1 or later: file descriptors are imported by value.
 */
#ifndef HIP_VERSION_H
#define HIP_VERSION_H

#define HIP_VERSION_MAJOR 7
#define HIP_VERSION_MINOR 2
#define HIP_VERSION_PATCH 0
#define HIP_VERSION (HIP_VERSION_MAJOR * 10000000 + HIP_VERSION_MINOR * 100000 + HIP_VERSION_PATCH)

/* Set only by these headers, for programs that want kfdirect's additions (hipx...). */
#define HIP_KFDIRECT 1

#endif
