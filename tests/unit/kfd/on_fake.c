/* SPDX-License-Identifier: MIT */
/* The whole layer on the fake kernel: what it says is done is seen from the GPU side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <kfdirect/fake.h>
#include <kfdirect/kfd.h>
#include "kfd/uapi.h"

#define SIZE UINT64_C(0x400000)
#define VA UINT64_C(0x4000000000) /* inside 40 bits, for gfx8 */
#define DATA (KFD_MEM_WRITABLE | KFD_MEM_EXECUTABLE | KFD_MEM_NO_SUBSTITUTE)
#define RW (KFD_VA_READ | KFD_VA_WRITE)

struct world {
    struct fake *fake;
    struct kfd_sys *inject;
    struct kfd *kfd;
    struct kfd_device *devs[KFD_MAX_DEVICES];
    uint32_t count;
};

static void start(struct world *w, const char *machine, const char *kernel)
{
    struct fake_options options = {
        .size = sizeof(options), .machine = machine, .kernel = kernel, .flags = FAKE_STRICT};
    int ret = fake_create(&options, &w->fake);

    if (ret < 0)
        fail_msg("%s on %s: %s", machine, kernel, fake_error_text());
    assert_int_equal(kfd_sys_inject_new(fake_sys(w->fake), &w->inject), 0);
    ret = kfd_open(w->inject, &w->kfd);
    if (ret < 0)
        fail_msg("%s on %s: %s", machine, kernel, kfd_error_text());
    w->count = kfd_device_count(w->kfd);
    for (uint32_t i = 0; i < w->count; i++)
        w->devs[i] = kfd_device_at(w->kfd, i);
}

/* Nothing may be left: no object, handle, mapping; of files only the kept render nodes. */
static void stop(struct world *w)
{
    struct fake_usage usage;

    if (w->count) {
        assert_int_equal(fake_get_usage(w->fake, &usage), 0);
        assert_int_equal(usage.objects, 0);
        assert_int_equal(usage.kfd_handles, 0);
        assert_int_equal(usage.gem_handles, 0);
        assert_int_equal(usage.mappings, 0);
        assert_int_equal(usage.open_files, 1 + w->count);
    }
    if (fake_strict_count(w->fake))
        fail_msg("undefined use: %s", fake_strict_report(w->fake));
    kfd_close(w->kfd);
    kfd_sys_destroy(w->inject);
    fake_destroy(w->fake);
}

static void ok(int ret)
{
    if (ret < 0)
        fail_msg("%d: %s", ret, kfd_error_text());
}

/* A GPU's byte at va, or the reason why it cannot be read or written. */
static enum fake_fault_reason touch(struct world *w, uint32_t gpu, uint64_t va, int *value,
                                    bool write)
{
    struct fake_translation at = {0};
    unsigned char byte = (unsigned char)*value;
    int ret = write ? fake_gpu_write(w->fake, gpu, va, &byte, 1, &at)
                    : fake_gpu_read(w->fake, gpu, va, &byte, 1, &at);

    if (ret < 0)
        return at.reason;
    *value = byte;
    return FAKE_FAULT_NONE;
}

static void expect_byte(struct world *w, uint32_t gpu, uint64_t va, int expect)
{
    int value = 0;

    assert_int_equal(touch(w, gpu, va, &value, false), FAKE_FAULT_NONE);
    assert_int_equal(value, expect);
}

static void write_byte(struct world *w, uint32_t gpu, uint64_t va, int value)
{
    assert_int_equal(touch(w, gpu, va, &value, true), FAKE_FAULT_NONE);
}

static void expect_fault(struct world *w, uint32_t gpu, uint64_t va, bool write,
                         enum fake_fault_reason reason)
{
    int value = 0;

    assert_int_equal(touch(w, gpu, va, &value, write), reason);
}

static const struct {
    const char *machine, *kernel;
    uint32_t gpus;
    const char *name;
} machines[] = {
    {"mi300x:8", "6.12", 8, "gfx942"},
    {"mi210:4", "6.8", 4, "gfx90a"},
    {"mi100:2", "6.1", 2, "gfx908"},
    {"navi31:2", "6.12", 2, "gfx1100"},
    {"navi31-smallbar", "6.12", 1, "gfx1100"},
    {"navi48", "current", 1, "gfx1201"},
    {"navi10-hollow", "6.12", 1, "gfx1010"},
    {"vega10-hollow:2", "6.1", 2, "gfx900"},
    {"vegam-hollow", "6.12", 1, "gfx803"},
    {"cpx64", "6.12", 64, "gfx942"},
    {"apu", "6.12", 1, NULL},
    {"none", "6.12", 0, NULL},
};

#define MACHINES (sizeof(machines) / sizeof(machines[0]))

static void test_every_machine_opens_whole(void **state)
{
    for (size_t m = 0; m < MACHINES; m++) {
        struct world w;

        start(&w, machines[m].machine, machines[m].kernel);
        if (kfd_skipped(w.kfd, 0))
            fail_msg("%s: %s", machines[m].machine, kfd_skipped(w.kfd, 0));
        assert_int_equal(w.count, machines[m].gpus);
        assert_true(kfd_cpu_node_count(w.kfd) > 0);
        for (uint32_t i = 0; i < w.count; i++) {
            const struct kfd_device_info *info = kfd_device_info(w.devs[i]);

            assert_int_equal(info->gpu_id, fake_gpu_id(w.fake, i));
            assert_int_equal(info->vendor_id, 0x1002);
            assert_true(info->va_limit > info->va_base);
            assert_true(info->num_xcc > 0);
            assert_true(info->simd_count > 0);
            assert_int_not_equal(info->cpu_node, KFD_NO_NODE);
            assert_int_equal(info->apu, strcmp(machines[m].machine, "apu") == 0);
            assert_true(info->apu || info->vram_size > 0);
            if (machines[m].name)
                assert_string_equal(info->name, machines[m].name);
        }
        stop(&w);
    }
}

static void test_memory_is_shared_by_the_gpus_that_map_it(void **state)
{
    struct world w;
    uint64_t handle;
    uint32_t done;

    start(&w, "mi300x:4", "6.12");
    ok(kfd_mem_alloc(w.devs[2], VA, SIZE, KFD_MEM_VRAM | DATA, &handle, NULL));
    expect_fault(&w, 0, VA, false, FAKE_FAULT_NOT_MAPPED);
    ok(kfd_mem_map(w.kfd, handle, w.devs, 4, &done));
    assert_int_equal(done, 4);
    write_byte(&w, 0, VA + SIZE - 1, 77);
    for (uint32_t i = 0; i < 4; i++)
        expect_byte(&w, i, VA + SIZE - 1, 77);
    assert_int_equal(kfd_mem_free(w.kfd, handle), -EBUSY);
    ok(kfd_mem_unmap(w.kfd, handle, w.devs, 4, &done));
    assert_int_equal(done, 4);
    for (uint32_t i = 0; i < 4; i++)
        expect_fault(&w, i, VA, false, FAKE_FAULT_NOT_MAPPED);
    ok(kfd_mem_free(w.kfd, handle));
    assert_int_equal(kfd_mem_free(w.kfd, handle), -EINVAL);
    stop(&w);
}

/* What kfd_can_access says from the topology is what the kernel does. */
static void test_access_is_what_the_kernel_grants(void **state)
{
    static const char *const kernels[] = {"6.12", "current"};
    static const char *const names[] = {"mi300x:3", "navi31:2", "mi210:4", "apu",
                                        "navi31-smallbar:2"};

    for (size_t k = 0; k < 2; k++) {
        for (size_t m = 0; m < sizeof(names) / sizeof(names[0]); m++) {
            struct world w;

            start(&w, names[m], kernels[k]);
            for (uint32_t from = 0; from < w.count; from++) {
                for (uint32_t owner = 0; owner < w.count; owner++) {
                    uint64_t handle;
                    int ret;

                    ok(kfd_mem_alloc(w.devs[owner], VA, SIZE, KFD_MEM_VRAM | DATA, &handle, NULL));
                    ret = kfd_mem_map(w.kfd, handle, &w.devs[from], 1, NULL);
                    if ((ret == 0) != kfd_can_access(w.devs[from], w.devs[owner]))
                        fail_msg("%s on %s: GPU %u mapping memory of %u: %d", names[m], kernels[k],
                                 from, owner, ret);
                    if (ret == 0)
                        ok(kfd_mem_unmap(w.kfd, handle, &w.devs[from], 1, NULL));
                    else
                        assert_int_equal(ret, -EINVAL);
                    ok(kfd_mem_free(w.kfd, handle));
                }
            }
            stop(&w);
        }
    }
}

static void test_a_refused_peer_leaves_the_others_mapped(void **state)
{
    struct world w;
    uint64_t handle;
    uint32_t done = 9;

    start(&w, "navi31:2", "6.12"); /* no peer-to-peer in this kernel */
    ok(kfd_mem_alloc(w.devs[0], VA, SIZE, KFD_MEM_VRAM | DATA, &handle, NULL));
    assert_int_equal(kfd_mem_map(w.kfd, handle, w.devs, 2, &done), -EINVAL);
    assert_int_equal(done, 1);
    write_byte(&w, 0, VA, 5);
    expect_fault(&w, 1, VA, false, FAKE_FAULT_NOT_MAPPED);
    ok(kfd_mem_unmap(w.kfd, handle, w.devs, done, &done));
    ok(kfd_mem_free(w.kfd, handle));
    stop(&w);
}

/* ALLOC without an address, exported, and imported into GEM tables; the descriptor is closed. */
static void make_gem(struct world *w, uint32_t owner, uint64_t size, uint64_t *handle,
                     uint32_t *gem, uint32_t n)
{
    struct kfd_sys *sys = kfd_get_sys(w->kfd);
    int fd;

    ok(kfd_mem_alloc(w->devs[owner], 0, size, KFD_MEM_VRAM | DATA, handle, NULL));
    ok(kfd_dmabuf_export(w->kfd, *handle, &fd));
    for (uint32_t i = 0; i < n; i++)
        ok(kfd_gem_import(w->devs[i], fd, &gem[i]));
    ok(sys->ops->close_fd(sys, fd));
}

static void drop_gem(struct world *w, uint64_t handle, const uint32_t *gem, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ok(kfd_gem_close(w->devs[i], gem[i]));
    ok(kfd_mem_free(w->kfd, handle));
}

static void run_gem_va(const char *machine, const char *kernel)
{
    struct world w;
    uint64_t handle;
    uint32_t gem[2];

    start(&w, machine, kernel);
    make_gem(&w, 0, SIZE, &handle, gem, 2);
    /* GPU 0 may write the second half; GPU 1 may read all of it, elsewhere. */
    ok(kfd_gem_va(w.devs[0], KFD_VA_MAP, gem[0], VA, SIZE / 2, SIZE / 2, RW));
    ok(kfd_gem_va(w.devs[1], KFD_VA_MAP, gem[1], VA + SIZE, 0, SIZE, KFD_VA_READ));
    ok(kfd_gem_va_wait(w.devs, 2));
    write_byte(&w, 0, VA + 9, 33);
    expect_byte(&w, 1, VA + SIZE + SIZE / 2 + 9, 33);
    expect_fault(&w, 1, VA + SIZE, true, FAKE_FAULT_READ_ONLY);
    expect_fault(&w, 0, VA + SIZE / 2, false, FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(kfd_gem_va(w.devs[0], KFD_VA_MAP, gem[0], VA, 0, SIZE, RW), -EINVAL);

    /* Taking away the right to write, and the mapping; gone for the GPU after the flush. */
    ok(kfd_gem_va(w.devs[0], KFD_VA_REPLACE, gem[0], VA, SIZE / 2, SIZE / 2, KFD_VA_READ));
    ok(kfd_gem_va_wait(&w.devs[0], 1));
    ok(kfd_mem_flush(w.kfd, handle, w.devs, 1));
    expect_fault(&w, 0, VA, true, FAKE_FAULT_READ_ONLY);
    expect_byte(&w, 0, VA + 9, 33);
    ok(kfd_gem_va(w.devs[0], KFD_VA_UNMAP, gem[0], VA, 0, SIZE / 2, 0));
    ok(kfd_gem_va(w.devs[1], KFD_VA_UNMAP, gem[1], VA + SIZE, 0, SIZE, 0));
    ok(kfd_gem_va_wait(w.devs, 2));
    ok(kfd_mem_flush(w.kfd, handle, w.devs, 2));
    expect_fault(&w, 0, VA + 9, false, FAKE_FAULT_NOT_MAPPED);
    expect_fault(&w, 1, VA + SIZE, false, FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(kfd_gem_va(w.devs[0], KFD_VA_UNMAP, gem[0], VA, 0, SIZE / 2, 0), -ENOENT);
    drop_gem(&w, handle, gem, 2);
    stop(&w);
}

static void test_gem_va_maps_parts_with_rights_of_their_own(void **state)
{
    run_gem_va("mi300x:2", "6.12");
}

static void test_gem_va_works_on_a_timeline(void **state)
{
    run_gem_va("mi300x:2", "current");
    /* The CPU does not see all VRAM: page tables are written by the copy engine, later. */
    run_gem_va("navi31-smallbar:2", "current");
}

/* The reason why kfd_mem_flush exists. */
static void test_without_the_flush_a_gpu_still_reads_old_pages(void **state)
{
    struct fake_translation at;
    struct world w;
    uint64_t handle;
    uint32_t gem;

    start(&w, "mi300x", "6.12");
    make_gem(&w, 0, SIZE, &handle, &gem, 1);
    ok(kfd_gem_va(w.devs[0], KFD_VA_MAP, gem, VA, 0, SIZE, RW));
    write_byte(&w, 0, VA, 1);
    ok(kfd_gem_va(w.devs[0], KFD_VA_UNMAP, gem, VA, 0, SIZE, 0));
    assert_int_equal(fake_gpu_translate(w.fake, 0, VA, FAKE_READ, &at), 0);
    assert_true(at.stale);
    ok(kfd_mem_flush(w.kfd, handle, w.devs, 1));
    expect_fault(&w, 0, VA, false, FAKE_FAULT_NOT_MAPPED);
    drop_gem(&w, handle, &gem, 1);
    stop(&w);
}

static void test_a_second_import_is_counted(void **state)
{
    struct kfd_sys *sys;
    struct world w;
    uint64_t handle;
    uint32_t gem, again;
    int fd;

    start(&w, "mi300x", "6.12");
    sys = kfd_get_sys(w.kfd);
    make_gem(&w, 0, SIZE, &handle, &gem, 1);
    ok(kfd_dmabuf_export(w.kfd, handle, &fd));
    ok(kfd_gem_import(w.devs[0], fd, &again));
    ok(sys->ops->close_fd(sys, fd));
    assert_int_equal(again, gem);
    ok(kfd_gem_va(w.devs[0], KFD_VA_MAP, gem, VA, 0, SIZE, RW));
    ok(kfd_gem_close(w.devs[0], again));
    write_byte(&w, 0, VA, 1); /* the kernel alone would have dropped the mapping */
    ok(kfd_gem_va(w.devs[0], KFD_VA_UNMAP, gem, VA, 0, SIZE, 0));
    ok(kfd_mem_flush(w.kfd, handle, w.devs, 1));
    drop_gem(&w, handle, &gem, 1);
    stop(&w);
}

static void test_a_dmabuf_tells_its_owner_and_comes_back(void **state)
{
    struct kfd_dmabuf_info info;
    struct kfd_sys *sys;
    struct world w;
    uint64_t handle, alias;
    int fd;

    start(&w, "mi300x:2", "6.12");
    sys = kfd_get_sys(w.kfd);
    ok(kfd_mem_alloc(w.devs[1], VA, 0x3000, KFD_MEM_VRAM | DATA, &handle, NULL));
    ok(kfd_dmabuf_export(w.kfd, handle, &fd));
    ok(kfd_dmabuf_info(w.kfd, fd, &info));
    assert_int_equal(info.size, 0x3000);
    assert_ptr_equal(info.owner, w.devs[1]);
    assert_int_equal(info.flags & (KFD_MEM_VRAM | KFD_MEM_GTT), KFD_MEM_VRAM);
    ok(kfd_dmabuf_import(w.devs[1], fd, VA + SIZE, &alias));
    ok(sys->ops->close_fd(sys, fd));
    ok(kfd_mem_map(w.kfd, handle, &w.devs[1], 1, NULL));
    ok(kfd_mem_map(w.kfd, alias, w.devs, 2, NULL));
    write_byte(&w, 1, VA + 0x2fff, 8);
    expect_byte(&w, 0, VA + SIZE + 0x2fff, 8);
    ok(kfd_mem_unmap(w.kfd, alias, w.devs, 2, NULL));
    ok(kfd_mem_unmap(w.kfd, handle, &w.devs[1], 1, NULL));
    ok(kfd_mem_free(w.kfd, alias));
    ok(kfd_mem_free(w.kfd, handle));
    stop(&w);
}

static void test_what_is_no_dmabuf_is_refused(void **state)
{
    struct kfd_dmabuf_info info;
    struct world w;
    uint64_t handle;
    uint32_t gem;

    start(&w, "mi300x", "6.12");
    assert_int_equal(kfd_dmabuf_import(w.devs[0], 0, 0, &handle), -EINVAL);
    assert_int_equal(kfd_dmabuf_import(w.devs[0], 1000, 0, &handle), -EBADF);
    assert_int_equal(kfd_dmabuf_info(w.kfd, 0, &info), -EINVAL);
    assert_int_equal(kfd_dmabuf_info(w.kfd, 1000, &info), -EBADF);
    assert_int_equal(kfd_gem_import(w.devs[0], 1000, &gem), -EBADF);
    assert_int_equal(kfd_gem_import(w.devs[0], 0, &gem), -EINVAL);
    stop(&w);
}

/* Linux 6.1 exports no KFD memory: GEM memory goes the other way round. */
static void test_6_1_maps_gem_memory_through_kfd(void **state)
{
    struct kfd_sys *sys;
    struct world w;
    uint64_t handle, offset, bytes;
    uint32_t gem;
    int fd;

    start(&w, "vega10-hollow", "6.1");
    sys = kfd_get_sys(w.kfd);
    ok(kfd_mem_alloc(w.devs[0], 0, SIZE, KFD_MEM_VRAM | DATA, &handle, NULL));
    assert_int_equal(kfd_dmabuf_export(w.kfd, handle, &fd), -EOPNOTSUPP);
    ok(kfd_mem_free(w.kfd, handle));
    ok(kfd_mem_available(w.devs[0], &bytes));
    assert_true(bytes > 0);

    ok(kfd_gem_create(w.devs[0], SIZE, true, &gem));
    ok(kfd_gem_mmap_offset(w.devs[0], gem, &offset));
    assert_true(offset > 0);
    ok(kfd_gem_export(w.devs[0], gem, &fd));
    ok(kfd_dmabuf_import(w.devs[0], fd, VA, &handle));
    ok(sys->ops->close_fd(sys, fd));
    ok(kfd_mem_map(w.kfd, handle, w.devs, 1, NULL));
    write_byte(&w, 0, VA + SIZE - 1, 3);
    expect_byte(&w, 0, VA + SIZE - 1, 3);
    ok(kfd_mem_unmap(w.kfd, handle, w.devs, 1, NULL));
    ok(kfd_mem_free(w.kfd, handle));
    ok(kfd_gem_close(w.devs[0], gem));
    stop(&w);
}

static void test_available_memory_falls_and_rises(void **state)
{
    uint64_t before, during, after, handle;
    struct world w;

    start(&w, "mi300x", "6.12");
    ok(kfd_mem_available(w.devs[0], &before));
    ok(kfd_mem_alloc(w.devs[0], 0, SIZE, KFD_MEM_VRAM | DATA, &handle, NULL));
    ok(kfd_mem_available(w.devs[0], &during));
    assert_int_equal(before - during, SIZE);
    ok(kfd_mem_free(w.kfd, handle));
    ok(kfd_mem_available(w.devs[0], &after));
    assert_int_equal(after, before);
    assert_int_equal(kfd_mem_alloc(w.devs[0], 0, before + SIZE, KFD_MEM_VRAM | DATA, &handle, NULL),
                     -ENOMEM);
    stop(&w);
}

/* One use of everything: what it leaves behind is checked by stop(). */
static int cycle(struct world *w)
{
    struct kfd_sys *sys = kfd_get_sys(w->kfd);
    uint64_t handle = 0;
    uint32_t gem[2] = {0}, done = 0;
    int fd = -1, ret, undo;

    ret = kfd_mem_alloc(w->devs[0], VA, SIZE, KFD_MEM_VRAM | DATA, &handle, NULL);
    if (ret < 0)
        return ret;
    ret = kfd_mem_map(w->kfd, handle, w->devs, 2, &done);
    if (ret == 0)
        ret = kfd_dmabuf_export(w->kfd, handle, &fd);
    for (uint32_t i = 0; ret == 0 && i < 2; i++)
        ret = kfd_gem_import(w->devs[i], fd, &gem[i]);
    for (uint32_t i = 0; ret == 0 && i < 2; i++)
        ret = kfd_gem_va(w->devs[i], KFD_VA_MAP, gem[i], VA + SIZE, 0, SIZE, RW);
    kfd_sys_inject_set(w->inject, NULL);
    if (fd >= 0)
        sys->ops->close_fd(sys, fd);
    for (uint32_t i = 0; i < 2; i++) {
        if (!gem[i])
            continue;
        undo = kfd_gem_va(w->devs[i], KFD_VA_UNMAP, gem[i], VA + SIZE, 0, SIZE, 0);
        assert_true(undo == 0 || undo == -ENOENT);
    }
    ok(kfd_mem_flush(w->kfd, handle, w->devs, 2));
    for (uint32_t i = 0; i < 2; i++) {
        if (gem[i])
            ok(kfd_gem_close(w->devs[i], gem[i]));
    }
    if (done)
        ok(kfd_mem_unmap(w->kfd, handle, w->devs, done, NULL));
    ok(kfd_mem_free(w->kfd, handle));
    return ret;
}

/* Runs the cycle with each k-th operation failing, until one pass is left alone. */
static void fail_each(int error, int expect)
{
    struct world w;
    bool fired = true;
    uint64_t k = 0;

    start(&w, "mi300x:2", "6.12");
    for (; fired; k++) {
        struct kfd_sys_fault fault = {.op = KFD_SYS_ANY, .skip = k, .error = error};
        int ret;

        /* Disarmed by the cycle before it undoes, so `fired` is asked for by the result. */
        kfd_sys_inject_set(w.inject, &fault);
        ret = cycle(&w);
        fired = ret < 0 || (expect == 0 && k < 7);
        assert_int_equal(ret, fired ? expect : 0);
    }
    assert_int_equal(k, 8); /* ALLOC, MAP, EXPORT, 2 imports, 2 changes; and the untouched pass */
    stop(&w);
}

static void test_each_failure_can_be_undone(void **state)
{
    fail_each(ENOMEM, -ENOMEM);
    fail_each(EIO, -EIO);
}

static void test_interruptions_do_not_show(void **state)
{
    fail_each(EINTR, 0);
    fail_each(EAGAIN, 0);
}

static void test_opening_again_reuses_the_render_nodes(void **state)
{
    struct fake_usage usage;
    struct world w;

    start(&w, "mi300x:2", "6.12");
    for (int i = 0; i < 5; i++) {
        kfd_close(w.kfd);
        assert_int_equal(fake_get_usage(w.fake, &usage), 0);
        assert_int_equal(usage.open_files, 2);
        ok(kfd_open(w.inject, &w.kfd));
        assert_int_equal(kfd_device_count(w.kfd), 2);
    }
    stop(&w);
}

static void child(struct world *w)
{
    uint64_t handle;
    struct kfd *own;
    struct kfd_device *dev;
    unsigned char byte = 9;

    if (kfd_mem_alloc(w->devs[0], 0, SIZE, KFD_MEM_VRAM | DATA, &handle, NULL) != -EBADF)
        _exit(1);
    kfd_close(w->kfd);
    if (kfd_open(fake_sys(w->fake), &own) < 0 || kfd_device_count(own) != 1)
        _exit(2);
    dev = kfd_device_at(own, 0);
    if (kfd_mem_alloc(dev, VA, SIZE, KFD_MEM_VRAM | DATA, &handle, NULL) < 0 ||
        kfd_mem_map(own, handle, &dev, 1, NULL) < 0)
        _exit(3);
    if (fake_gpu_write(w->fake, 0, VA, &byte, 1, NULL) < 0)
        _exit(4);
    _exit(0);
}

static void test_a_child_works_on_its_own(void **state)
{
    struct world w;
    uint64_t handle;
    int status;
    pid_t pid;

    start(&w, "mi300x", "6.12");
    ok(kfd_mem_alloc(w.devs[0], VA, SIZE, KFD_MEM_VRAM | DATA, &handle, NULL));
    ok(kfd_mem_map(w.kfd, handle, w.devs, 1, NULL));
    write_byte(&w, 0, VA, 1);
    pid = fork();
    if (pid == 0)
        child(&w);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    expect_byte(&w, 0, VA, 1);
    ok(kfd_mem_unmap(w.kfd, handle, w.devs, 1, NULL));
    ok(kfd_mem_free(w.kfd, handle));
    stop(&w);
}

/* Every operation of an open fails once: nothing is lost, and the next try has every GPU. */
static void test_a_failed_open_can_be_repeated(void **state)
{
    bool fired = true;
    uint64_t k = 0;
    struct world w;

    start(&w, "mi300x:2", "6.12");
    for (; fired; k++) {
        struct kfd_sys_fault fault = {.op = KFD_SYS_ANY, .skip = k, .error = EIO};
        struct kfd *other;

        kfd_sys_inject_set(w.inject, &fault);
        if (kfd_open(w.inject, &other) == 0) {
            kfd_sys_inject_seen(w.inject, &fired);
            assert_true(!fired || kfd_skipped(other, 0) || kfd_device_count(other) == 2);
            kfd_close(other);
        }
        kfd_sys_inject_set(w.inject, NULL);
        ok(kfd_open(w.inject, &other));
        assert_int_equal(kfd_device_count(other), 2);
        kfd_close(other);
    }
    assert_true(k > 20);
    stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_machine_opens_whole),
        cmocka_unit_test(test_memory_is_shared_by_the_gpus_that_map_it),
        cmocka_unit_test(test_access_is_what_the_kernel_grants),
        cmocka_unit_test(test_a_refused_peer_leaves_the_others_mapped),
        cmocka_unit_test(test_gem_va_maps_parts_with_rights_of_their_own),
        cmocka_unit_test(test_gem_va_works_on_a_timeline),
        cmocka_unit_test(test_without_the_flush_a_gpu_still_reads_old_pages),
        cmocka_unit_test(test_a_second_import_is_counted),
        cmocka_unit_test(test_a_dmabuf_tells_its_owner_and_comes_back),
        cmocka_unit_test(test_what_is_no_dmabuf_is_refused),
        cmocka_unit_test(test_6_1_maps_gem_memory_through_kfd),
        cmocka_unit_test(test_available_memory_falls_and_rises),
        cmocka_unit_test(test_each_failure_can_be_undone),
        cmocka_unit_test(test_interruptions_do_not_show),
        cmocka_unit_test(test_opening_again_reuses_the_render_nodes),
        cmocka_unit_test(test_a_child_works_on_its_own),
        cmocka_unit_test(test_a_failed_open_can_be_repeated),
    };

    return cmocka_run_group_tests_name("kfd/on_fake", tests, NULL, NULL);
}
