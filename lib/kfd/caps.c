/* SPDX-License-Identifier: MIT */
#include "kfd/caps.h"

#include "kfd/object.h"
#include "kfd/poison.h"

/* kfd_minor 0: decided by the DRM version. */
static const struct {
    uint32_t kfd_minor;
    const char *name, *text;
} caps[KFD_CAP_COUNT] = {
    [KFD_CAP_AVAILABLE_MEMORY] = {9, "available-memory", "ask for free VRAM"},
    [KFD_CAP_EXPORT_DMABUF] = {12, "export-dmabuf", "share KFD memory as dma-buf"},
    [KFD_CAP_GEM_VA] = {15, "gem-va", "GEM_VA mappings survive eviction"},
    [KFD_CAP_CONTIGUOUS] = {16, "contiguous", "ask for contiguous VRAM"},
    [KFD_CAP_VM_TIMELINE] = {0, "vm-timeline", "wait for page table updates"},
};

static bool timeline_on_all(const struct kfd *kfd)
{
    for (uint32_t i = 0; i < kfd->device_count; i++) {
        if (!kfd_caps_drm_timeline(&kfd->devices[i].info))
            return false;
    }
    return kfd->device_count > 0;
}

uint64_t kfd_caps_find(const struct kfd *kfd)
{
    uint64_t found = 0;

    for (unsigned cap = 0; cap < KFD_CAP_COUNT; cap++) {
        bool present =
            caps[cap].kfd_minor ? kfd->minor >= caps[cap].kfd_minor : timeline_on_all(kfd);

        if (present)
            found |= UINT64_C(1) << cap;
    }
    return found;
}

bool kfd_has(const struct kfd *kfd, enum kfd_cap cap)
{
    return (unsigned)cap < KFD_CAP_COUNT && (kfd->caps >> cap & 1);
}

void kfd_cap_info(const struct kfd *kfd, enum kfd_cap cap, struct kfd_cap_info *out)
{
    *out = (struct kfd_cap_info){.cap = cap, .name = "", .text = ""};
    if ((unsigned)cap >= KFD_CAP_COUNT)
        return;
    out->name = caps[cap].name;
    out->text = caps[cap].text;
    out->present = kfd_has(kfd, cap);
}
