/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake/file.h"
#include "fake/inject.h"
#include "fake/log.h"
#include "fake/process.h"
#include "fake/sys.h"
#include "fake/vm.h"
#include "kfd/error.h"

#define DEFAULT_MACHINE "mi300x:1"
#define DEFAULT_KERNEL "6.12"

/* What a personality and a machine leave of memory. */
static void set_limits(const struct fake_profile *profile, struct fake_limits *limits)
{
    uint64_t reserve = fake_profile_page_table_reserve(profile);

    memset(limits, 0, sizeof(*limits));
    limits->gpu_count = profile->gpu_count;
    limits->system = fake_profile_system_limit(profile);
    limits->ttm = fake_profile_ttm_limit(profile);
    for (uint32_t i = 0; i < profile->gpu_count; i++) {
        const struct fake_gpu *g = &profile->gpus[i];

        limits->vram[i] = g->apu ? UINT64_MAX : g->vram;
        limits->vram_kfd[i] =
            g->vram > reserve + g->vram_pinned ? g->vram - reserve - g->vram_pinned : 0;
    }
}

static int check_options(const struct fake_options *options)
{
    const unsigned char *bytes = (const void *)options;

    if (options->size < offsetof(struct fake_options, flags) + sizeof(options->flags))
        return kfd_fail(-EINVAL, "fake_options: size %zu is too small", options->size);
    for (size_t i = sizeof(*options); i < options->size; i++)
        if (bytes[i] != 0)
            return kfd_fail(-EINVAL, "fake_options: unknown option at byte %zu", i);
    if ((options->flags & ~(FAKE_STRICT | FAKE_QUIRK_T1 | FAKE_QUIRK_T5)) != 0)
        return kfd_fail(-EINVAL, "fake_options: unknown flags 0x%x", options->flags);
    return 0;
}

static void free_fake(struct fake *fake)
{
    free(fake->machine_text);
    free(fake->kernel_text);
    free(fake);
}

int fake_create_named(const struct fake_options *options, const char *name, struct fake **out)
{
    struct fake *fake = calloc(1, sizeof(*fake));
    struct fake_process *p = NULL;
    uint32_t slot;
    int err;

    if (fake == NULL)
        return -ENOMEM;
    fake->machine_text = strdup(options->machine != NULL ? options->machine : DEFAULT_MACHINE);
    fake->kernel_text = strdup(options->kernel != NULL ? options->kernel : DEFAULT_KERNEL);
    err = -ENOMEM;
    if (fake->machine_text == NULL || fake->kernel_text == NULL)
        goto fail_fake;
    err = fake_profile_load(fake->machine_text, fake->kernel_text, &fake->profile);
    if (err != 0)
        goto fail_fake;
    fake->flags = options->flags;
    set_limits(fake->profile, &fake->limits);
    err = -ENOMEM;
    fake->injector = fake_injector_new();
    fake->log = fake_log_new();
    if (fake->injector == NULL || fake->log == NULL)
        goto fail_parts;
    fake->sys = fake_sys_new(fake);
    if (fake->sys == NULL)
        goto fail_parts;
    err = fake_machine_open(name, &fake->limits, &fake->machine, &slot);
    if (err != 0)
        goto fail_sys;
    p = fake_process_create(fake, slot);
    if (p == NULL) {
        fake_machine_close(&fake->machine, slot);
        err = -ENOMEM;
        goto fail_sys;
    }
    atomic_init(&fake->process, p);
    *out = fake;
    return 0;
fail_sys:
    fake_sys_free(fake->sys);
fail_parts:
    fake_log_free(fake->log);
    fake_injector_free(fake->injector);
    fake_profile_free(fake->profile);
fail_fake:
    free_fake(fake);
    return err;
}

int fake_create(const struct fake_options *options, struct fake **out)
{
    int err;

    if (options == NULL || out == NULL)
        return kfd_fail(-EINVAL, "fake_create: a NULL argument");
    err = check_options(options);
    return err != 0 ? err : fake_create_named(options, NULL, out);
}

void fake_destroy(struct fake *fake)
{
    struct fake_process *p;

    if (fake == NULL)
        return;
    fake_env_forget(fake);
    fake_sys_release(fake->sys);
    p = atomic_load(&fake->process);
    /* A child that never used what it inherited has nothing of its own in the machine. */
    if (p->pid == getpid()) {
        uint32_t slot = p->slot;

        fake_process_destroy(fake, p);
        fake_machine_close(&fake->machine, slot);
    } else {
        fake_process_forget(p);
        fake_machine_unmap(&fake->machine);
    }
    fake_sys_free(fake->sys);
    fake_log_free(fake->log);
    fake_injector_free(fake->injector);
    fake_profile_free(fake->profile);
    free_fake(fake);
}

struct kfd_sys *fake_sys(struct fake *fake)
{
    return fake->sys;
}

const char *fake_error_text(void)
{
    return kfd_error_text();
}

int fake_list_machine(size_t i, struct fake_listed *out)
{
    return fake_profile_list(".machine", i, out->name, sizeof(out->name), out->about,
                             sizeof(out->about));
}

int fake_list_kernel(size_t i, struct fake_listed *out)
{
    return fake_profile_list(".kernel", i, out->name, sizeof(out->name), out->about,
                             sizeof(out->about));
}

uint32_t fake_gpu_count(const struct fake *fake)
{
    return fake->profile->gpu_count;
}

uint32_t fake_gpu_id(const struct fake *fake, uint32_t gpu)
{
    return gpu < fake->profile->gpu_count ? fake->profile->gpus[gpu].gpu_id : 0;
}

int fake_gpu_of_id(const struct fake *fake, uint32_t gpu_id)
{
    int gpu = gpu_id == 0 ? -1 : fake_profile_gpu_by_id(fake->profile, gpu_id);

    return gpu >= 0 && fake->profile->gpus[gpu].hidden ? -1 : gpu;
}

int fake_get_cost(struct fake *fake, uint32_t gpu, struct fake_cost *out)
{
    struct fake_process *p;
    int err;

    if (gpu >= fake->profile->gpu_count)
        return kfd_fail(-EINVAL, "fake_get_cost: GPU %u of %u", gpu, fake->profile->gpu_count);
    p = fake_process_get(fake, &err);
    if (p == NULL)
        return err;
    fake_process_lock(p);
    *out = p->cost[gpu];
    fake_process_unlock(p);
    return 0;
}

int fake_get_usage(struct fake *fake, struct fake_usage *out)
{
    struct fake_totals t;
    struct fake_process *p;
    int err;

    p = fake_process_get(fake, &err);
    if (p == NULL)
        return err;
    memset(out, 0, sizeof(*out));
    fake_process_lock(p);
    out->open_files = fake_file_sweep(fake, p);
    for (const struct fake_file *file = p->files; file != NULL; file = file->next) {
        out->gem_handles += file->gem.used - 1;
        if (file->vm != NULL)
            out->mappings += file->vm->user_mappings;
    }
    for (uint32_t i = 0; i < fake->profile->gpu_count; i++)
        out->kfd_handles += p->gpus[i].handles.used;
    fake_machine_totals(&fake->machine, &t);
    fake_process_unlock(p);
    out->objects = t.objects;
    out->gtt_used = t.gtt;
    memcpy(out->vram_used, t.vram, sizeof(out->vram_used));
    return 0;
}

int fake_strict_text(struct fake *fake, int otherwise, const char *text)
{
    if ((fake->flags & FAKE_STRICT) == 0)
        return otherwise;
    if (atomic_fetch_add(&fake->strict_count, 1) == 0) {
        snprintf(fake->strict_text, sizeof(fake->strict_text), "%s", text);
        atomic_store(&fake->strict_ready, true);
        if (fake->speaks)
            fprintf(stderr, "kfdirect: undefined use: %s\n", fake->strict_text);
    }
    return kfd_fail(-ENOTRECOVERABLE, "%s", text);
}

int fake_strict(struct fake *fake, struct fake_process *p, int otherwise,
                const struct fake_stamp *since, const char *fmt, ...)
{
    char text[sizeof(fake->strict_text)], when[FAKE_STAMP_TEXT];
    va_list args;
    size_t len;

    if ((fake->flags & FAKE_STRICT) == 0)
        return otherwise;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    len = strlen(text);
    if (since != NULL) {
        fake_stamp_print(since, &p->now, when);
        snprintf(text + len, sizeof(text) - len, ": made so %s", when);
    } else {
        snprintf(text + len, sizeof(text) - len, ": since process %d began, %llu requests ago",
                 p->pid, (unsigned long long)p->now.request);
    }
    return fake_strict_text(fake, otherwise, text);
}

uint64_t fake_strict_count(const struct fake *fake)
{
    return atomic_load(&fake->strict_count);
}

const char *fake_strict_report(const struct fake *fake)
{
    return atomic_load(&fake->strict_ready) ? fake->strict_text : NULL;
}
