/* SPDX-License-Identifier: MIT */
#include "fake/table.h"

#include <errno.h>

#include "fake/arena.h"

static uint64_t slot_of(const struct fake_map *map, uint64_t key)
{
    key = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15ull;
    return (key ^ (key >> 29)) & (map->capacity - 1);
}

static struct fake_map_slot *find(const struct fake_map *map, uint64_t key)
{
    uint64_t i = slot_of(map, key);

    while (map->slots[i].value != NULL && map->slots[i].key != key)
        i = (i + 1) & (map->capacity - 1);
    return &map->slots[i];
}

void *fake_map_get(const struct fake_map *map, uint64_t key)
{
    return map->capacity == 0 ? NULL : find(map, key)->value;
}

static int grow(struct fake_map *map)
{
    struct fake_map bigger = {.capacity = map->capacity == 0 ? 16 : map->capacity * 2};

    bigger.slots = fake_calloc(bigger.capacity * sizeof(*bigger.slots));
    if (bigger.slots == NULL)
        return -ENOMEM;
    for (uint64_t i = 0; i < map->capacity; i++)
        if (map->slots[i].value != NULL)
            *find(&bigger, map->slots[i].key) = map->slots[i];
    bigger.count = map->count;
    fake_free(map->slots);
    *map = bigger;
    return 0;
}

int fake_map_put(struct fake_map *map, uint64_t key, void *value)
{
    struct fake_map_slot *slot;

    if (map->count * 4 >= map->capacity * 3) {
        int err = grow(map);

        if (err != 0)
            return err;
    }
    slot = find(map, key);
    if (slot->value == NULL)
        map->count++;
    slot->key = key;
    slot->value = value;
    return 0;
}

void *fake_map_take(struct fake_map *map, uint64_t key)
{
    uint64_t mask = map->capacity - 1, hole, i;
    void *value;

    if (map->capacity == 0)
        return NULL;
    hole = (uint64_t)(find(map, key) - map->slots);
    value = map->slots[hole].value;
    if (value == NULL)
        return NULL;
    map->count--;
    /* Close the gap, so that no later probe ends too early. */
    for (i = (hole + 1) & mask; map->slots[i].value != NULL; i = (i + 1) & mask) {
        uint64_t home = slot_of(map, map->slots[i].key);

        if (((i - home) & mask) >= ((i - hole) & mask)) {
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    map->slots[hole].value = NULL;
    return value;
}

void fake_map_clear(struct fake_map *map)
{
    fake_free(map->slots);
    *map = (struct fake_map){0};
}

static uint32_t pop_least(struct fake_ids *ids)
{
    uint32_t least = ids->heap[0], n = ids->top - ids->used - 1, i = 0;
    uint32_t last = ids->heap[n];

    while (2 * i + 1 < n) {
        uint32_t child = 2 * i + 1;

        if (child + 1 < n && ids->heap[child + 1] < ids->heap[child])
            child++;
        if (ids->heap[child] >= last)
            break;
        ids->heap[i] = ids->heap[child];
        i = child;
    }
    ids->heap[i] = last;
    return least;
}

static int ids_grow(struct fake_ids *ids)
{
    uint32_t capacity = ids->capacity == 0 ? 16 : ids->capacity * 2;
    void **slots = fake_realloc(ids->slots, capacity * sizeof(*slots));
    uint32_t *heap;

    if (slots == NULL)
        return -ENOMEM;
    ids->slots = slots;
    heap = fake_realloc(ids->heap, capacity * sizeof(*heap));
    if (heap == NULL)
        return -ENOMEM;
    ids->heap = heap;
    ids->capacity = capacity;
    return 0;
}

int fake_ids_add(struct fake_ids *ids, void *value, uint32_t *id)
{
    if (ids->used < ids->top) {
        *id = pop_least(ids);
    } else {
        int err = ids->top == ids->capacity ? ids_grow(ids) : 0;

        if (err != 0)
            return err;
        *id = ids->top++;
    }
    ids->used++;
    ids->slots[*id] = value;
    return 0;
}

void *fake_ids_get(const struct fake_ids *ids, uint32_t id)
{
    return id < ids->top ? ids->slots[id] : NULL;
}

void *fake_ids_take(struct fake_ids *ids, uint32_t id)
{
    void *value = fake_ids_get(ids, id);
    uint32_t i;

    if (value == NULL)
        return NULL;
    ids->slots[id] = NULL;
    for (i = ids->top - ids->used; i > 0 && ids->heap[(i - 1) / 2] > id; i = (i - 1) / 2)
        ids->heap[i] = ids->heap[(i - 1) / 2];
    ids->heap[i] = id;
    ids->used--;
    return value;
}

void fake_ids_clear(struct fake_ids *ids)
{
    fake_free(ids->slots);
    fake_free(ids->heap);
    *ids = (struct fake_ids){0};
}
