/* SPDX-License-Identifier: MIT */
/*
 * The kfd and vmm calls that the HIP layer makes, replaced: they return what a test asks for and
 * keep what they were given, so that a test sees the HIP layer alone.
 */
#ifndef TESTS_UNIT_HIP_API_MOCK_H
#define TESTS_UNIT_HIP_API_MOCK_H

#include <kfdirect/vmm.h>

#define MOCK_TEXT "the layer below says why"

struct mock {
    /* What the calls return. */
    int open_error, vmm_open_error, result;
    uint32_t devices;
    enum vmm_engine engine;
    const char *skipped;
    struct vmm_range range;
    struct vmm_props props_out;
    /* What they were given. */
    unsigned opens, closes, vmm_opens, vmm_closes, calls;
    struct vmm_options options;
    struct vmm_props props;
    uint64_t va, size, align, hint, offset;
    vmm_handle handle;
    struct vmm_access access[KFD_MAX_DEVICES + 1];
    size_t access_count;
    uint32_t device;
    int fd;
    uint32_t tag[4];
};

extern struct mock mock;

/* A machine of two devices with the drm engine, where every call succeeds. */
void mock_reset(void);

#endif
