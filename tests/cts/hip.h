/* SPDX-License-Identifier: MIT */
/* What the cases of the HIP calls share: each function is one call with its row. */
#ifndef CTS_HIP_H
#define CTS_HIP_H

#include "library.h"

/* The HIP calls run on a tracer, the library has started, page tables can be read. */
void lib_hip_start(struct lib *l, struct cts *c);
/* The same after lib_watch and a default system of the case's own. */
void lib_hip_begin(struct lib *l);

/* Memory of a device that can be exported. */
hipMemAllocationProp hip_prop(int device);
/* A reservation, to which rows from now on are relative. */
char *hip_reserve(struct lib *l, size_t size);
hipMemGenericAllocationHandle_t hip_create(struct lib *l, const char *step, int device,
                                           size_t size);
void hip_release(struct lib *l, hipMemGenericAllocationHandle_t handle);
/* device -1 is the CPU. */
void hip_access(struct lib *l, const char *step, hipError_t want, void *at, size_t size, int device,
                hipMemAccessFlags flags);
/* Maps a whole handle, lets device 0 read and write, and stamps it unless name is 0. */
void hip_give(struct lib *l, hipMemGenericAllocationHandle_t handle, char name, void *at,
              size_t size);
/* Stamps through hipMemcpy. */
void hip_stamp(struct lib *l, char name, void *at, size_t size);

#endif
