/* SPDX-License-Identifier: MIT */
#include "vmm/handle.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "kfd/error.h"
#include "vmm/memory.h"

#define MAX_SLABS (((uint64_t)UINT32_MAX + 1) / VMM_HANDLE_SLAB)

/* The number of the next slab of any table; a child goes on from its parent's. They are enough for
 * a process that opens a table and adds to it every second for seven weeks. */
static _Atomic uint64_t next_slab;

int vmm_handles_init(struct vmm_handles *h, uint8_t tag)
{
    memset(h, 0, sizeof(*h));
    if (tag == 0)
        return kfd_fail(-EINVAL, "handles: tag 0");
    h->tag = tag;
    return vmm_lock_init(&h->lock, VMM_RANK_HANDLES);
}

void vmm_handles_fini(struct vmm_handles *h)
{
    for (uint32_t i = 0; i < h->slab_count; i++)
        vmm_free_mem(h->slabs[i]);
    vmm_free_mem(h->slabs);
    vmm_lock_destroy(&h->lock);
}

static struct vmm_handle_slot *slot_at(const struct vmm_handles *h, uint64_t index)
{
    return &h->slabs[index / VMM_HANDLE_SLAB][index % VMM_HANDLE_SLAB];
}

/* The own slot at a position, or NULL. */
static struct vmm_handle_slot *own_slot(const struct vmm_handles *h, uint64_t index)
{
    return index < h->used && h->slabs[index / VMM_HANDLE_SLAB] ? slot_at(h, index) : NULL;
}

static uint64_t handle_of(const struct vmm_handles *h, uint32_t generation, uint64_t index)
{
    return (uint64_t)h->tag << 56 | (uint64_t)generation << 32 |
           (index + (uint64_t)h->first_slab * VMM_HANDLE_SLAB);
}

/* Wraps beyond every position for an index below the table's first. */
static uint64_t position(const struct vmm_handles *h, uint64_t handle)
{
    return (handle & UINT32_MAX) - (uint64_t)h->first_slab * VMM_HANDLE_SLAB;
}

/* The slot that handle names now; NULL when it names none. */
static struct vmm_handle_slot *find(const struct vmm_handles *h, uint64_t handle)
{
    struct vmm_handle_slot *slot = own_slot(h, position(h, handle));

    if (!slot || handle >> 56 != h->tag || !slot->object ||
        slot->generation != (handle >> 32 & (VMM_HANDLE_GENERATIONS - 1)))
        return NULL;
    return slot;
}

/* Room for so many slab pointers. */
static int grow_directory(struct vmm_handles *h, uint32_t count)
{
    uint32_t room = h->slab_room ? h->slab_room * 2 : 16;
    struct vmm_handle_slot **slabs;

    if (count <= h->slab_room)
        return 0;
    if (room < count)
        room = count;
    slabs = vmm_calloc(room, sizeof(*slabs));
    if (!slabs)
        return -ENOMEM;
    if (h->slab_count)
        memcpy(slabs, h->slabs, h->slab_count * sizeof(*slabs));
    vmm_free_mem(h->slabs);
    h->slabs = slabs;
    h->slab_room = room;
    return 0;
}

/* One more slab, under a number of its own; a number drawn in vain is lost. */
static int add_slab(struct vmm_handles *h)
{
    struct vmm_handle_slot *slab = vmm_calloc(VMM_HANDLE_SLAB, sizeof(*slab));
    uint64_t number = atomic_load_explicit(&next_slab, memory_order_relaxed);
    uint32_t at;

    if (!slab)
        goto no_memory;
    do {
        if (number == MAX_SLABS) {
            vmm_free_mem(slab);
            return kfd_fail(-ENOMEM, "handles: the process has used up all %llu slots",
                            (unsigned long long)MAX_SLABS * VMM_HANDLE_SLAB);
        }
    } while (!atomic_compare_exchange_weak(&next_slab, &number, number + 1));
    if (h->slab_count == 0)
        h->first_slab = (uint32_t)number;
    at = (uint32_t)number - h->first_slab;
    if (grow_directory(h, at + 1))
        goto no_memory;
    h->slabs[at] = slab;
    h->slab_count = at + 1;
    h->used = (uint64_t)at * VMM_HANDLE_SLAB;
    return 0;

no_memory:
    vmm_free_mem(slab);
    return kfd_fail(-ENOMEM, "handles: no memory for more than %llu",
                    (unsigned long long)vmm_handles_count(h));
}

/* A slot that was never used. */
static int fresh_slot(struct vmm_handles *h, uint64_t *index)
{
    int err = h->used == (uint64_t)h->slab_count * VMM_HANDLE_SLAB ? add_slab(h) : 0;

    if (!err)
        *index = h->used++;
    return err;
}

int vmm_handles_add(struct vmm_handles *h, void *object, uint64_t *handle)
{
    struct vmm_handle_slot *slot;
    uint64_t index = 0;
    int err = 0;

    vmm_lock_acquire(&h->lock);
    if (h->free_count > VMM_HANDLE_REST) {
        index = h->free_first;
        h->free_first = slot_at(h, index)->next_free;
        h->free_count--;
    } else {
        err = fresh_slot(h, &index);
    }
    if (!err) {
        slot = slot_at(h, index);
        slot->object = object;
        *handle = handle_of(h, slot->generation, index);
        atomic_fetch_add_explicit(&h->count, 1, memory_order_relaxed);
    }
    vmm_lock_release(&h->lock);
    return err;
}

void *vmm_handles_get(struct vmm_handles *h, uint64_t handle, bool (*take)(void *object))
{
    struct vmm_handle_slot *slot;
    void *object = NULL;

    vmm_lock_acquire(&h->lock);
    slot = find(h, handle);
    if (slot) {
        object = slot->object;
        if (take && !take(object))
            object = NULL;
    }
    vmm_lock_release(&h->lock);
    return object;
}

void *vmm_handles_remove(struct vmm_handles *h, uint64_t handle)
{
    uint32_t index = (uint32_t)position(h, handle);
    struct vmm_handle_slot *slot;
    void *object = NULL;

    vmm_lock_acquire(&h->lock);
    slot = find(h, handle);
    if (slot) {
        object = slot->object;
        slot->object = NULL;
        slot->generation++;
        if (slot->generation < VMM_HANDLE_GENERATIONS) {
            if (h->free_count++ == 0)
                h->free_first = index;
            else
                slot_at(h, h->free_last)->next_free = index;
            h->free_last = index;
        }
        atomic_fetch_sub_explicit(&h->count, 1, memory_order_relaxed);
    }
    vmm_lock_release(&h->lock);
    return object;
}

uint64_t vmm_handles_count(const struct vmm_handles *h)
{
    return atomic_load_explicit(&h->count, memory_order_relaxed);
}

int vmm_handles_each(struct vmm_handles *h, int (*each)(void *arg, uint64_t handle, void *object),
                     void *arg)
{
    for (uint64_t index = 0;; index++) {
        const struct vmm_handle_slot *slot;
        uint64_t handle = 0;
        void *object = NULL;
        bool end;
        int err;

        vmm_lock_acquire(&h->lock);
        end = index >= h->used;
        slot = own_slot(h, index);
        if (slot) {
            object = slot->object;
            handle = handle_of(h, slot->generation, index);
        } else {
            index |= VMM_HANDLE_SLAB - 1; /* another table's slab */
        }
        vmm_lock_release(&h->lock);
        if (end)
            return 0;
        err = object ? each(arg, handle, object) : 0;
        if (err)
            return err;
    }
}

static int validate_locked(const struct vmm_handles *h)
{
    uint64_t live = 0, retired = 0, queued = 0, own = 0;
    uint32_t index = h->free_first;

    if (h->used > (uint64_t)h->slab_count * VMM_HANDLE_SLAB)
        return kfd_fail(-EUCLEAN, "handles: more slots used than there are");
    for (uint64_t i = 0; i < h->used; i++) {
        const struct vmm_handle_slot *slot = own_slot(h, i);

        if (!slot)
            continue;
        own++;
        if (slot->generation > VMM_HANDLE_GENERATIONS ||
            (slot->object && slot->generation == VMM_HANDLE_GENERATIONS))
            return kfd_fail(-EUCLEAN, "handles: slot %llu beyond its last generation",
                            (unsigned long long)i);
        live += slot->object != NULL;
        retired += slot->generation == VMM_HANDLE_GENERATIONS;
    }
    if (live != vmm_handles_count(h) || live + retired + h->free_count != own)
        return kfd_fail(-EUCLEAN, "handles: %llu live, %llu retired, %llu free of %llu",
                        (unsigned long long)live, (unsigned long long)retired,
                        (unsigned long long)h->free_count, (unsigned long long)own);
    for (; queued < h->free_count; queued++) {
        const struct vmm_handle_slot *slot = own_slot(h, index);

        if (!slot || slot->object || slot->generation == VMM_HANDLE_GENERATIONS)
            return kfd_fail(-EUCLEAN, "handles: slot %u in the free queue is not free", index);
        if (queued + 1 == h->free_count && index != h->free_last)
            return kfd_fail(-EUCLEAN, "handles: the free queue ends at slot %u", index);
        index = slot->next_free;
    }
    return 0;
}

int vmm_handles_validate(struct vmm_handles *h)
{
    int err;

    vmm_lock_acquire(&h->lock);
    err = validate_locked(h);
    vmm_lock_release(&h->lock);
    return err;
}
