/* SPDX-License-Identifier: MIT */
/* One process: its threads, its children, its limits. */
#include "rig.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "fake/fake_internal.h"

#define RW (KFD_VA_READ | KFD_VA_WRITE)
#define ROUNDS 200

struct worker {
    struct rig *r;
    uint64_t va;
    uint32_t n;
    int failed; /* line */
};

#define CHECK(what)               \
    do {                          \
        if (!(what)) {            \
            w->failed = __LINE__; \
            return NULL;          \
        }                         \
    } while (0)

/* A buffer's whole life, on the node that all threads share and on one of its own. */
static void *live(void *arg)
{
    struct worker *w = arg;
    struct rig *r = w->r;

    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct kfd_ioctl_alloc_memory_of_gpu_args a = {
            .size = 2 * MIB, .gpu_id = r->id[0], .flags = VRAM_RW};
        struct fake_translation t;
        uint32_t gem, other;
        int fd, own;
        char c = 0;

        CHECK(rig_request(r, r->kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &a) == 0);
        fd = rig_export(r, a.handle);
        CHECK(fd >= 0 && rig_prime(r, r->drm[0], fd, &gem) == 0);
        own = rig_open_render(r, 0);
        CHECK(own >= 0 && rig_prime(r, own, fd, &other) == 0);
        CHECK(close(fd) == 0);
        CHECK(rig_va(r, r->drm[0], AMDGPU_VA_OP_MAP, gem, w->va, 0, 2 * MIB, RW) == 0);
        CHECK(fake_gpu_write(r->fake, 0, w->va + 77, "y", 1, NULL) == 0);
        CHECK(fake_gpu_read(r->fake, 0, w->va + 77, &c, 1, &t) == 0 && c == 'y');
        CHECK(rig_va(r, r->drm[0], AMDGPU_VA_OP_UNMAP, gem, w->va, 0, 2 * MIB, 0) == 0);
        CHECK(rig_flush(r, a.handle, 0) == 0);
        CHECK(fake_gpu_read(r->fake, 0, w->va, &c, 1, NULL) == -EFAULT);
        CHECK(rig_close(r, own) == 0);
        CHECK(rig_gem_close(r, r->drm[0], gem) == 0);
        CHECK(rig_free(r, a.handle) == 0);
    }
    return NULL;
}

static void test_threads_share_a_process(void **state)
{
    struct worker workers[4];
    pthread_t threads[4];
    struct fake_usage u;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", FAKE_STRICT);
    assert_int_equal(fake_log_start(r.fake, 64), 0);
    for (uint32_t i = 0; i < 4; i++) {
        workers[i] = (struct worker){.r = &r, .va = VA + i * 64 * MIB, .n = i};
        assert_int_equal(pthread_create(&threads[i], NULL, live, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].failed, 0);
    }
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.objects, 0);
    assert_int_equal(u.open_files, 2);
    assert_int_equal(fake_strict_count(r.fake), 0);
    assert_int_equal(fake_machine_validate(&r.fake->machine), 0);
    rig_end(&r);
}

/* A file that goes while a request of another thread works on it. */
static void *open_and_close(void *arg)
{
    struct worker *w = arg;

    for (uint32_t i = 0; i < ROUNDS * 5; i++) {
        int fd = rig_open_render(w->r, 0);

        CHECK(fd >= 0);
        rig_va(w->r, fd, AMDGPU_VA_OP_CLEAR, 0, VA, 0, MIB, 0);
        CHECK(rig_close(w->r, fd) == 0);
    }
    return NULL;
}

static void *call_anything(void *arg)
{
    struct worker *w = arg;
    struct drm_gem_close a = {.handle = 1};

    for (uint32_t i = 0; i < ROUNDS * 20; i++) {
        int ret = rig_request(w->r, 3 + (int)(i % 16), DRM_CODE_GEM_CLOSE, &a);

        CHECK(ret < 0);
    }
    return NULL;
}

static void test_closing_a_node_in_use_is_safe(void **state)
{
    struct worker workers[3];
    pthread_t threads[3];
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    for (uint32_t i = 0; i < 3; i++) {
        workers[i] = (struct worker){.r = &r};
        assert_int_equal(
            pthread_create(&threads[i], NULL, i == 0 ? call_anything : open_and_close, &workers[i]),
            0);
    }
    for (uint32_t i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].failed, 0);
    }
    rig_end(&r);
}

/* 10,000 buffers, mapped and touched, with no descriptor each and few allowed. */
static void test_many_handles_need_few_descriptors(void **state)
{
    struct rlimit old, low;
    uint64_t *h = calloc(10000, sizeof(*h));
    struct fake_usage u;
    struct rig r;
    char c;

    rig_start(&r, "mi300x:1", "6.12", 0);
    getrlimit(RLIMIT_NOFILE, &old);
    low = old;
    low.rlim_cur = 64;
    setrlimit(RLIMIT_NOFILE, &low);
    for (uint64_t i = 0; i < 10000; i++) {
        h[i] = rig_must_alloc(&r, 0, VA + i * 4096, 4096, VRAM_RW);
        assert_int_equal(rig_map(&r, h[i], 0), 0);
        c = (char)i;
        assert_int_equal(fake_gpu_write(r.fake, 0, VA + i * 4096, &c, 1, NULL), 0);
    }
    for (uint64_t i = 0; i < 10000; i += 97) {
        assert_int_equal(fake_gpu_read(r.fake, 0, VA + i * 4096, &c, 1, NULL), 0);
        assert_int_equal(c, (char)i);
    }
    for (uint64_t i = 0; i < 10000; i++) {
        assert_int_equal(rig_unmap(&r, h[i], 0), 0);
        assert_int_equal(rig_free(&r, h[i]), 0);
    }
    setrlimit(RLIMIT_NOFILE, &old);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.objects, 0);
    rig_end(&r);
    free(h);
}

/* More mappings of one buffer than a process may have VMAs. */
static void test_many_mappings_of_one_buffer(void **state)
{
    const uint64_t n = 100000;
    struct fake_usage u;
    uint64_t h;
    uint32_t gem;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    h = rig_must_alloc(&r, 0, 0, 2 * MIB, VRAM_RW);
    gem = rig_gem(&r, h, 0);
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(
            rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, gem, VA + i * 4096, i % 512 * 4096, 4096, RW),
            0);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.mappings, n);
    for (uint64_t i = 0; i < n; i += 2)
        assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_UNMAP, gem, VA + i * 4096, 0, 4096, 0),
                         0);
    assert_int_equal(rig_fault(&r, 0, VA + 4096 * 1000, FAKE_READ), FAKE_FAULT_NOT_MAPPED);
    assert_int_equal(rig_fault(&r, 0, VA + 4096 * 1001, FAKE_READ), FAKE_FAULT_NONE);
    assert_int_equal(rig_gem_close(&r, r.drm[0], gem), 0);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.mappings, 0);
    rig_end(&r);
}

static void *fork_in_the_middle(void *arg)
{
    struct worker *w = arg;

    for (int i = 0; i < 20; i++) {
        int status;
        pid_t pid = fork();

        if (pid == 0) {
            struct kfd_ioctl_get_version_args v;
            int fd = rig_open_path(w->r, "/dev/kfd");

            _exit(fd >= 0 && rig_request(w->r, fd, KFD_CODE_GET_VERSION, &v) == 0 ? 0 : 1);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    return NULL;
}

static void test_forking_while_threads_work_is_safe(void **state)
{
    struct worker a, b;
    pthread_t threads[2];
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    a = (struct worker){.r = &r, .va = VA};
    b = a;
    assert_int_equal(pthread_create(&threads[0], NULL, live, &a), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, fork_in_the_middle, &b), 0);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert_int_equal(a.failed, 0);
    assert_int_equal(b.failed, 0);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_share_a_process),
        cmocka_unit_test(test_closing_a_node_in_use_is_safe),
        cmocka_unit_test(test_many_handles_need_few_descriptors),
        cmocka_unit_test(test_many_mappings_of_one_buffer),
        cmocka_unit_test(test_forking_while_threads_work_is_safe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
