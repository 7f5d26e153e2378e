/* SPDX-License-Identifier: MIT */
/* What the kernel can do: one table, decided once at open. */
#ifndef KFD_CAPS_H
#define KFD_CAPS_H

#include <kfdirect/kfd.h>

/* A bit per enum kfd_cap, from the versions that kfd and its devices report. */
uint64_t kfd_caps_find(const struct kfd *kfd);

/* Whether a DRM version has GEM_VA with a timeline point. */
static inline bool kfd_caps_drm_timeline(const struct kfd_device_info *info)
{
    return info->drm_major == 3 && info->drm_minor >= 64;
}

#endif
