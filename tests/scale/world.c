/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <dirent.h>
#include <unistd.h>

void world_open(struct world *world, const char *machine_name, const char *kernel,
                enum vmm_engine engine)
{
    struct fake_options options = {
        .size = sizeof(options), .machine = machine_name, .kernel = kernel, .flags = FAKE_STRICT};
    struct vmm_options vmm_options = {.size = sizeof(vmm_options), .engine = engine};

    memset(world, 0, sizeof(*world));
    world->fd = -1;
    if (fake_create(&options, &world->fake) != 0)
        fail_msg("%s on %s: %s", machine_name, kernel, fake_error_text());
    assert_int_equal(kfd_sys_inject_new(fake_sys(world->fake), &world->injector), 0);
    assert_int_equal(kfd_sys_count_new(world->injector, &world->counter), 0);
    if (kfd_open(world->counter, &world->kfd) != 0 ||
        vmm_open(world->kfd, &vmm_options, &world->vmm) != 0)
        fail_msg("opening %s on %s: %s", machine_name, kernel, kfd_error_text());
    assert_int_equal(vmm_engine(world->vmm), engine);
}

bool world_close(struct world *world)
{
    struct fake_usage usage;
    bool clean;

    if (world->fd >= 0)
        close(world->fd);
    vmm_close(world->vmm);
    kfd_close(world->kfd);
    assert_int_equal(fake_get_usage(world->fake, &usage), 0);
    clean = usage.objects == 0 && usage.gem_handles == 0 && !fake_strict_count(world->fake);
    if (!clean)
        print_error("# left on the machine: %llu objects, %llu GEM handles; strict mode: %s\n",
                    (unsigned long long)usage.objects, (unsigned long long)usage.gem_handles,
                    fake_strict_count(world->fake) ? fake_strict_report(world->fake) : "nothing");
    kfd_sys_destroy(world->counter);
    kfd_sys_destroy(world->injector);
    fake_destroy(world->fake);
    return clean;
}

static vmm_handle created(struct world *world, uint32_t device, uint64_t size)
{
    struct vmm_props props = {.location = VMM_LOCATION_DEVICE, .device = device};
    vmm_handle handle = 0;

    assert_int_equal(vmm_create(world->vmm, &props, size, &handle), 0);
    return handle;
}

void world_fill(struct world *world)
{
    bool fine = vmm_engine(world->vmm) == VMM_ENGINE_DRM;
    struct vmm_access both[2] = {{0, VMM_PROT_READ_WRITE},
                                 {1, fine ? VMM_PROT_READ : VMM_PROT_READ_WRITE}};
    struct vmm_props props = {.location = VMM_LOCATION_DEVICE};
    size_t devices = vmm_engine(world->vmm) == VMM_ENGINE_GEM ? 1 : 2;

    assert_int_equal(vmm_reserve(world->vmm, WORLD_RANGE, 0, 0, &world->base), 0);
    world->whole = created(world, 0, MIB(4));
    world->other = created(world, devices == 1 ? 0 : 1, MIB(2));
    world->spare = created(world, 0, MIB(2));
    assert_int_equal(vmm_map(world->vmm, world->base, MIB(4), 0, world->whole), 0);
    assert_int_equal(vmm_map(world->vmm, world->base + MIB(4), MIB(2), 0, world->other), 0);
    assert_int_equal(vmm_map(world->vmm, world->base + MIB(8), MIB(4), 0, world->whole), 0);
    assert_int_equal(vmm_set_access(world->vmm, world->base, MIB(6), both, devices), 0);
    assert_int_equal(vmm_alloc(world->vmm, &props, MIB(2), &world->one_step), 0);
    assert_int_equal(vmm_export(world->vmm, world->spare, &world->fd), 0);
}

void world_empty(struct world *world)
{
    if (world->fd >= 0)
        close(world->fd);
    world->fd = -1;
    assert_int_equal(vmm_free(world->vmm, world->one_step), 0);
    assert_int_equal(vmm_unmap(world->vmm, world->base, WORLD_RANGE), 0);
    assert_int_equal(vmm_release(world->vmm, world->whole), 0);
    assert_int_equal(vmm_release(world->vmm, world->other), 0);
    assert_int_equal(vmm_release(world->vmm, world->spare), 0);
    assert_int_equal(vmm_address_free(world->vmm, world->base, WORLD_RANGE), 0);
}

static void print_usage(struct world *world, FILE *out)
{
    struct fake_usage usage;

    assert_int_equal(fake_get_usage(world->fake, &usage), 0);
    fprintf(out, "objects %llu gtt %llu kfd %llu gem %llu mappings %llu files %llu\n",
            (unsigned long long)usage.objects, (unsigned long long)usage.gtt_used,
            (unsigned long long)usage.kfd_handles, (unsigned long long)usage.gem_handles,
            (unsigned long long)usage.mappings, (unsigned long long)usage.open_files);
    for (uint32_t i = 0; i < fake_gpu_count(world->fake); i++)
        fprintf(out, "vram %u %llu\n", i, (unsigned long long)usage.vram_used[i]);
}

static void print_translations(struct world *world, uint64_t base, uint64_t size, FILE *out)
{
    for (uint32_t gpu = 0; gpu < fake_gpu_count(world->fake); gpu++) {
        for (uint64_t at_offset = 0; at_offset < size; at_offset += WORLD_STEP) {
            for (int access = FAKE_READ; access <= FAKE_WRITE; access++) {
                struct fake_translation t;

                (void)fake_gpu_translate(world->fake, gpu, base + at_offset, access, &t);
                fprintf(out, "gpu %u +0x%llx access %d reason %d object %llu offset 0x%llx", gpu,
                        (unsigned long long)at_offset, access, (int)t.reason,
                        t.reason ? 0 : (unsigned long long)t.object,
                        t.reason ? 0 : (unsigned long long)t.offset);
                fprintf(out, " flags 0x%x stale %d\n", t.reason ? 0 : t.flags, t.stale);
            }
        }
    }
}

/* The kernel may name the same address space in several ways; only what lies in the range counts.
 */
static void print_cpu_view(uint64_t low, uint64_t high, FILE *out)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];

    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps)) {
        unsigned long long start, end;
        char rights[8];

        if (sscanf(line, "%llx-%llx %7s", &start, &end, rights) == 3 && end > low && start < high)
            fprintf(out, "cpu %llx-%llx %s %s\n", start < low ? (unsigned long long)low : start,
                    end > high ? (unsigned long long)high : end, rights,
                    strchr(line, '/') ? "backed" : "");
    }
    fclose(maps);
}

static void print_descriptors(FILE *out)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;

    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        char target[256] = "";

        if (readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1) > 0 &&
            atoi(entry->d_name) != dirfd(dir))
            fprintf(out, "fd %s %s\n", entry->d_name, target);
    }
    closedir(dir);
}

char *world_text(struct world *world)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out;

    if (vmm_validate(world->vmm) != 0)
        fail_msg("vmm_validate: %s", kfd_error_text());
    /* Descriptors first: the stream itself may take memory, but no descriptor. */
    out = open_memstream(&text, &size);
    assert_non_null(out);
    print_descriptors(out);
    print_usage(world, out);
    vmm_print(world->vmm, out);
    if (world->base) {
        print_translations(world, world->base, WORLD_RANGE, out);
        print_cpu_view(world->base, world->base + WORLD_RANGE, out);
    }
    if (world->one_step)
        print_translations(world, world->one_step, MIB(2), out);
    fclose(out);
    return text;
}

bool world_same(const char *what, const char *was, const char *is)
{
    const char *line_was = was, *line_is = is;

    if (strcmp(was, is) == 0)
        return true;
    while (*line_was && *line_is) {
        size_t a = strcspn(line_was, "\n"), b = strcspn(line_is, "\n");

        if (a != b || memcmp(line_was, line_is, a) != 0)
            break;
        line_was += a + (line_was[a] == '\n');
        line_is += b + (line_is[b] == '\n');
    }
    print_error("# %s: first difference\n#  was: %.*s\n#  is:  %.*s\n", what,
                (int)strcspn(line_was, "\n"), line_was, (int)strcspn(line_is, "\n"), line_is);
    return false;
}

bool world_consistent(struct world *world)
{
    bool good = vmm_validate(world->vmm) == 0;

    if (!good)
        print_error("# vmm_validate: %s\n", kfd_error_text());
    for (uint32_t gpu = 0; world->base && gpu < fake_gpu_count(world->fake); gpu++) {
        for (uint64_t offset = 0; offset < WORLD_RANGE; offset += WORLD_STEP) {
            uint32_t prot = VMM_PROT_NONE;
            struct fake_translation t;
            bool reads, writes;

            (void)vmm_get_access(world->vmm, world->base + offset, gpu, &prot);
            reads = fake_gpu_translate(world->fake, gpu, world->base + offset, FAKE_READ, &t) == 0;
            writes =
                fake_gpu_translate(world->fake, gpu, world->base + offset, FAKE_WRITE, &t) == 0;
            if (reads != ((prot & VMM_PROT_READ) != 0) ||
                writes != ((prot & VMM_PROT_WRITE) != 0)) {
                print_error("# GPU %u +0x%llx: the library says %u, the GPU reads %d writes %d\n",
                            gpu, (unsigned long long)offset, prot, reads, writes);
                good = false;
            }
        }
    }
    return good;
}
