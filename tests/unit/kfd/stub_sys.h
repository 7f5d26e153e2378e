/* SPDX-License-Identifier: MIT */
/*
 * A hand-made system for the tests of lib/kfd: sysfs text, device nodes and the few requests that
 * opening needs. Everything else is the test's `request` hook. It knows how many descriptors are
 * open, and ties a process to the first render file that a GPU's VM was acquired with, as the
 * kernel does. Not thread-safe beyond what a test arranges.
 */
#ifndef STUB_SYS_H
#define STUB_SYS_H

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdatomic.h>
#include <stdint.h>
#include <errno.h>

#include <cmocka.h>

#include <kfdirect/kfd.h>
#include "kfd/uapi.h"

#define STUB_FIRST_FD 100
#define STUB_MAX_FDS 512
#define STUB_MAX_GPUS 80

struct stub_gpu {
    uint32_t node, gpu_id, minor;
    uint32_t device_id;     /* as the topology has it */
    uint32_t drm_device_id; /* as the render node answers */
    uint32_t drm_minor;     /* 3.<this> */
    const char *driver;     /* of the render node */
    int open_error;         /* of the render node, -errno */
    int acquire_error;      /* -errno */
    uint64_t ids_flags;     /* DEV_INFO */
    uint64_t va_base, va_limit;
    uint32_t device_minor; /* stat of the render node's path */
    bool no_aperture;
    int acquired_file; /* 0: none */
};

struct stub_file {
    char *path, *text;
    int error; /* -errno instead of the text */
};

struct stub {
    struct kfd_sys base;
    struct stub_file *files;
    uint32_t file_count;
    struct stub_gpu gpus[STUB_MAX_GPUS];
    uint32_t gpu_count;
    uint32_t major, minor;
    int kfd_error; /* of open("/dev/kfd"), -errno */
    struct kfd_sys_stat node_stat;
    /* Whether a render file outlives its struct kfd. */
    bool keeps;
    struct kfd_sys_state *state;
    int low_fds; /* so many of the next opens get a number below 3 */

    struct {
        int file;   /* 0: closed */
        int gpu;    /* -1: /dev/kfd or another dma-buf */
        bool other; /* the program's by now, of another device */
    } fds[STUB_MAX_FDS];
    int next_file;
    int open_fds, opened;
    atomic_ullong requests;

    /* Sees each request before the stub; returns true if it answered, with *ret set. */
    bool (*request)(struct stub *stub, int fd, unsigned long request, void *arg, int *ret);
    /* Called before each read of a file. */
    void (*reading)(struct stub *stub, const char *path);
    void *arg; /* the test's */
};

/* A machine of one CPU node and n MI300X-like GPUs without links, KFD 1.17, DRM 3.61; GPU i is node
 * i + 1, gpu_id 1000 + i, render minor 128 + i. */
struct stub *stub_new(uint32_t gpus);
/* Releases what the library keeps on it; fails the test if a descriptor is still open. */
void stub_free(struct stub *stub);

/* Sets a file's text or error; replaces. The path is below the topology folder if it does not begin
 * with a slash. */
void stub_set_file(struct stub *stub, const char *path, const char *text);
void stub_set_error(struct stub *stub, const char *path, int error);
/* The text of a GPU's properties file. Rewrites it from gpus[i]. */
void stub_write_gpu(struct stub *stub, uint32_t i);
void stub_write_bank(struct stub *stub, uint32_t i, uint32_t heap, uint64_t size);
void stub_write_link(struct stub *stub, uint32_t node, const char *kind, uint32_t number,
                     uint32_t type, uint32_t to, uint32_t flags);

#endif
