/* SPDX-License-Identifier: MIT */
#include "hip_api/object.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "hip_api/error.h"

/* Innermost of all: nothing is called under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Slots are kept for ever; a slot is free when its kind is NONE. Under lock. */
static struct hip_object *slots;
static uint32_t slot_count, free_hint;
/* The slots of the process that forked this one; kept for a search for leaks to find, which is no
 * use that a compiler sees. */
static struct hip_object *volatile inherited;
/* Of the next object: never 0, so that no handle looks like a small number. */
static uint32_t next_generation = 1;

static const char *kind_name(enum hip_kind kind)
{
    return kind == HIP_KIND_STREAM ? "stream" : kind == HIP_KIND_EVENT ? "event" : "graph";
}

static uintptr_t make_handle(uint32_t slot, const struct hip_object *object)
{
    return (uintptr_t)object->generation << 32 | (uintptr_t)slot << 4 | (uintptr_t)object->kind;
}

static struct hip_object *find(enum hip_kind kind, uintptr_t handle)
{
    uint32_t slot = (uint32_t)handle >> 4;

    if (slot >= slot_count || make_handle(slot, &slots[slot]) != handle || slots[slot].kind != kind)
        return NULL;
    return &slots[slot];
}

static bool grow(void)
{
    uint32_t count = slot_count ? slot_count * 2 : 64;
    struct hip_object *more;

    if (count > 1u << 27)
        return false;
    more = realloc(slots, count * sizeof(*slots));
    if (!more)
        return false;
    memset(more + slot_count, 0, (count - slot_count) * sizeof(*slots));
    free_hint = slot_count;
    slots = more;
    slot_count = count;
    return true;
}

hipError_t hip_object_new(const struct hip_object *init, uintptr_t *handle)
{
    hipError_t code = hipSuccess;

    pthread_mutex_lock(&lock);
    while (free_hint < slot_count && slots[free_hint].kind != HIP_KIND_NONE)
        free_hint++;
    if (free_hint == slot_count && !grow()) {
        code = hipErrorOutOfMemory;
    } else {
        slots[free_hint] = *init;
        slots[free_hint].generation = next_generation;
        next_generation = next_generation == UINT32_MAX ? 1 : next_generation + 1;
        *handle = make_handle(free_hint, &slots[free_hint]);
        free_hint++;
    }
    pthread_mutex_unlock(&lock);
    if (code != hipSuccess)
        hip_fail(code, "no memory for one more %s", kind_name(init->kind));
    return code;
}

hipError_t hip_object_change(enum hip_kind kind, uintptr_t handle,
                             hipError_t (*change)(struct hip_object *object, void *arg), void *arg)
{
    struct hip_object *object;
    hipError_t code;

    pthread_mutex_lock(&lock);
    object = find(kind, handle);
    code = object ? change(object, arg) : hipErrorInvalidHandle;
    pthread_mutex_unlock(&lock);
    if (!object)
        hip_fail(code, "0x%llx is no live %s", (unsigned long long)handle, kind_name(kind));
    return code;
}

static hipError_t copy_out(struct hip_object *object, void *out)
{
    memcpy(out, object, sizeof(*object));
    return hipSuccess;
}

hipError_t hip_object_get(enum hip_kind kind, uintptr_t handle, struct hip_object *out)
{
    return hip_object_change(kind, handle, copy_out, out);
}

static hipError_t clear(struct hip_object *object, void *unused)
{
    uint32_t slot = (uint32_t)(object - slots);

    memset(object, 0, sizeof(*object));
    if (slot < free_hint)
        free_hint = slot;
    return hipSuccess;
}

hipError_t hip_object_delete(enum hip_kind kind, uintptr_t handle)
{
    return hip_object_change(kind, handle, clear, NULL);
}

void hip_object_delete_of(int device)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < slot_count; i++) {
        if ((slots[i].kind == HIP_KIND_STREAM || slots[i].kind == HIP_KIND_EVENT) &&
            slots[i].device == device)
            clear(&slots[i], NULL);
    }
    pthread_mutex_unlock(&lock);
}

void hip_object_forget(void)
{
    /* Another thread of the parent may have held the lock or been in realloc: take a new lock and
     * leave the old slots alone. */
    pthread_mutex_init(&lock, NULL);
    inherited = slots;
    slots = NULL;
    slot_count = 0;
    free_hint = 0;
}

void hip_object_clear(void)
{
    free(slots);
    slots = NULL;
    slot_count = 0;
    free_hint = 0;
}
