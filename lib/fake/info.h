/* SPDX-License-Identifier: MIT */
/* What a DRM node tells about itself: VERSION, GET_CAP, GET_CLIENT and AMDGPU_INFO. */
#ifndef FAKE_INFO_H
#define FAKE_INFO_H

#include "fake/fake_internal.h"

int fake_drm_version(struct fake_call *call, void *arg);
int fake_drm_get_client(struct fake_call *call, void *arg);
int fake_drm_get_cap(struct fake_call *call, void *arg);
int fake_drm_info(struct fake_call *call, void *arg);

#endif
