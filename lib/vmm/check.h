/* SPDX-License-Identifier: MIT */
/* Invariant checks and the picture. The public calls are declared in <kfdirect/vmm.h>. */
#ifndef VMM_CHECK_H
#define VMM_CHECK_H

#include "vmm/resv.h"

/* In debug builds: checks a locked reservation at the end of an operation, up to a few hundred
 * mappings; what it finds is kept for vmm_validate. Otherwise nothing. */
#ifdef KFDIRECT_DEBUG
void vmm_check_resv(const struct vmm_resv *resv);
#else
static inline void vmm_check_resv(const struct vmm_resv *resv)
{
    (void)resv;
}
#endif

#endif
