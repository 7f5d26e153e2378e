/* SPDX-License-Identifier: MIT */
#include "fake/client.h"

static bool modelled(const struct fake *fake)
{
    return (fake->flags & FAKE_QUIRK_T1) && fake->profile->kernel.kfd_gem_handles;
}

int fake_client_add(struct fake *fake, struct fake_handle *h, bool import)
{
    return modelled(fake) ? fake_machine_number_take(&fake->machine, h->gpu, h->bo->mem->ref,
                                                     import, &h->client)
                          : 0;
}

uint32_t fake_client_export(struct fake *fake, const struct fake_handle *h)
{
    uint32_t index = h->bo->mem->index;

    /* Once there is a dma-buf, the number is not looked at any more. */
    if (h->client == 0 || fake_machine_bo(&fake->machine, index)->dmabuf_mode != UINT32_MAX)
        return index;
    return fake_machine_number_share(&fake->machine, h->gpu, h->client);
}

void fake_client_free(struct fake *fake, const struct fake_handle *h)
{
    if (h->client != 0)
        fake_machine_number_drop(&fake->machine, h->gpu, h->bo->mem->ref, h->client);
}
