/* SPDX-License-Identifier: MIT */
#include "fake/client.h"

#include <errno.h>
#include <stdint.h>

static bool modelled(const struct fake *fake)
{
    return (fake->flags & FAKE_QUIRK_T1) && fake->profile->kernel.kfd_gem_handles;
}

static void *as_value(uint32_t number)
{
    return (void *)(uintptr_t)number;
}

int fake_client_add(struct fake *fake, struct fake_process *p, struct fake_handle *h, bool import)
{
    struct fake_process_gpu *g = &p->gpus[h->gpu];
    void *known = import ? fake_map_get(&g->client_shared, h->bo->mem->index) : NULL;
    uint32_t id;
    int err;

    if (!modelled(fake))
        return 0;
    if (known != NULL) {
        h->client = (uint32_t)(uintptr_t)known;
        return 0;
    }
    err = fake_ids_add(&g->client, h->bo->mem, &id);
    if (err != 0)
        return err;
    /* Numbers count from 1. */
    h->client = id + 1;
    return import ? fake_map_put(&g->client_shared, h->bo->mem->index, as_value(h->client)) : 0;
}

struct fake_mem *fake_client_export(struct fake *fake, struct fake_process *p,
                                    struct fake_handle *h)
{
    struct fake_process_gpu *g = &p->gpus[h->gpu];
    struct fake_mem *mem;

    /* Once there is a dma-buf, the number is not looked at any more. */
    if (!modelled(fake) ||
        fake_machine_bo(&fake->machine, h->bo->mem->index)->dmabuf_mode != UINT32_MAX)
        return h->bo->mem;
    mem = h->client != 0 ? fake_ids_get(&g->client, h->client - 1) : NULL;
    if (mem == NULL || fake_map_put(&g->client_shared, mem->index, as_value(h->client)) != 0)
        return NULL;
    return mem;
}

void fake_client_free(struct fake_process *p, struct fake_handle *h)
{
    struct fake_process_gpu *g = &p->gpus[h->gpu];
    const struct fake_mem *mem = h->client != 0 ? fake_ids_take(&g->client, h->client - 1) : NULL;

    if (mem != NULL && fake_map_get(&g->client_shared, mem->index) == as_value(h->client))
        fake_map_take(&g->client_shared, mem->index);
}

void fake_client_clear(struct fake_process_gpu *g)
{
    fake_ids_clear(&g->client);
    fake_map_clear(&g->client_shared);
}
