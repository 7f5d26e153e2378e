/* SPDX-License-Identifier: MIT */
/* <linux/kfd_ioctl.h> asks for drm/drm.h, which Debian's kernel headers leave to libdrm-dev; that
 * installs it as drm.h. */
#include <drm.h>
