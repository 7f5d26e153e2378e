/* SPDX-License-Identifier: MIT */
/*
 * Two small containers: a hash map from a 64-bit key to a pointer, and a table that gives out the
 * lowest free number, as the kernel's handle tables do. The owner locks them.
 */
#ifndef FAKE_TABLE_H
#define FAKE_TABLE_H

#include <stdint.h>

struct fake_map_slot {
    uint64_t key;
    void *value; /* NULL: free */
};

struct fake_map {
    struct fake_map_slot *slots;
    uint64_t count, capacity;
};

/* NULL when absent. */
void *fake_map_get(const struct fake_map *map, uint64_t key);
/* Sets or replaces; value is not NULL. 0 or -ENOMEM. */
int fake_map_put(struct fake_map *map, uint64_t key, void *value);
/* Returns the value that was there, or NULL. */
void *fake_map_take(struct fake_map *map, uint64_t key);
void fake_map_clear(struct fake_map *map);

/* Zero-initialised: numbers from 0. */
struct fake_ids {
    void **slots;
    uint32_t *heap; /* free numbers below top, least first */
    uint32_t top, used, capacity;
};

/* 0 or -ENOMEM; value is not NULL. */
int fake_ids_add(struct fake_ids *ids, void *value, uint32_t *id);
void *fake_ids_get(const struct fake_ids *ids, uint32_t id);
void *fake_ids_take(struct fake_ids *ids, uint32_t id);
void fake_ids_clear(struct fake_ids *ids);

#endif
