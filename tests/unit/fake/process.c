/* SPDX-License-Identifier: MIT */
/* One process: its threads, its children, its limits. */
#include "rig.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "fake/fake_internal.h"

#define RW (KFD_VA_READ | KFD_VA_WRITE)
#define GIB (1024 * MIB)
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

/* Runs fn in a child; its exit status, or -1. */
static int in_child(struct rig *r, int (*fn)(struct rig *r, uint64_t arg), uint64_t arg)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(fn(r, arg));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static uint32_t gem_create(struct rig *r, uint64_t size)
{
    union drm_amdgpu_gem_create c = {.in = {.bo_size = size, .domains = AMDGPU_GEM_DOMAIN_VRAM}};

    return rig_request(r, r->drm[0], DRM_CODE_GEM_CREATE, &c) == 0 ? c.out.handle : 0;
}

static int map_in_the_parent(struct rig *r, uint64_t gem)
{
    union drm_amdgpu_gem_mmap m = {.in = {.handle = (uint32_t)gem}};
    uint32_t own = gem_create(r, 2 * MIB);
    char *view;

    if (own != gem + 1 || rig_request(r, r->drm[0], DRM_CODE_GEM_MMAP, &m) != 0)
        return 1;
    if (r->sys->ops->map_pages(r->sys, NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, r->drm[0],
                               m.out.addr_ptr, (void **)&view) != 0)
        return 2;
    strcpy(view, "child");
    if (rig_va(r, r->drm[0], AMDGPU_VA_OP_UNMAP, (uint32_t)gem, VA, 0, 2 * MIB, 0) != 0)
        return 3;
    return rig_va(r, r->drm[0], AMDGPU_VA_OP_MAP, own, VA + 4 * MIB, 0, 2 * MIB, RW) != 0 ||
           rig_va(r, r->drm[0], AMDGPU_VA_OP_MAP, (uint32_t)gem, VA + 8 * MIB, 0, 2 * MIB, RW) != 0;
}

static void test_a_child_works_on_its_parents_vm(void **state)
{
    struct fake_translation t;
    struct fake_usage u;
    char text[8] = "";
    uint32_t gem;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", FAKE_STRICT);
    gem = gem_create(&r, 2 * MIB);
    assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, gem, VA, 0, 2 * MIB, RW), 0);
    assert_int_equal(in_child(&r, map_in_the_parent, gem), 0);
    /* The child's buffer is the parent's file's, and outlives the child. */
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.gem_handles, 2);
    assert_int_equal(u.mappings, 2);
    assert_int_equal(u.objects, 2);
    assert_int_equal(rig_fault(&r, 0, VA + 4 * MIB, FAKE_WRITE), FAKE_FAULT_NONE);
    assert_int_equal(fake_gpu_read(r.fake, 0, VA + 8 * MIB, text, 6, NULL), 0);
    assert_string_equal(text, "child");
    assert_int_equal(fake_gpu_translate(r.fake, 0, VA, FAKE_READ, &t), -EFAULT);
    assert_non_null(strstr(t.text, "(GEM_VA UNMAP)"));
    assert_int_equal(rig_gem_close(&r, r.drm[0], gem + 1), 0);
    assert_int_equal(rig_gem_close(&r, r.drm[0], gem), 0);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.objects, 0);
    rig_end(&r);
}

static int fork_again(struct rig *r, uint64_t gem)
{
    return in_child(r, map_in_the_parent, gem);
}

static int close_it(struct rig *r, uint64_t arg)
{
    return rig_close(r, r->drm[0]) != 0 || gem_create(r, MIB) != 0;
}

static void test_a_grandchild_does_too_and_a_close_is_only_its_own(void **state)
{
    struct fake_usage u;
    uint32_t gem;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", FAKE_STRICT);
    gem = gem_create(&r, 2 * MIB);
    assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, gem, VA, 0, 2 * MIB, RW), 0);
    assert_int_equal(in_child(&r, fork_again, gem), 0);
    assert_int_equal(in_child(&r, close_it, 0), 0);
    assert_int_equal(gem_create(&r, MIB), gem + 2);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.open_files, 2);
    rig_end(&r);
}

/* The last descriptor is the child's. */
static void test_a_file_goes_with_the_last_descriptor_of_any_process(void **state)
{
    int to[2], from[2], status, extra;
    struct fake_usage u;
    struct rig r;
    pid_t pid;
    char c;

    rig_start(&r, "mi300x:1", "6.12", 0);
    extra = rig_open_render(&r, 0);
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    pid = fork();
    if (pid == 0) {
        (void)!read(to[0], &c, 1);
        rig_close(&r, extra);
        (void)!write(from[1], "", 1);
        (void)!read(to[0], &c, 1);
        _exit(0);
    }
    rig_close(&r, extra);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.open_files, 3);
    assert_int_equal(write(to[1], "", 1), 1);
    assert_int_equal(read(from[0], &c, 1), 1);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.open_files, 2);
    assert_int_equal(write(to[1], "", 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    rig_end(&r);
}

/* The kernel would go on: its VM is the file's, not the process's. */
static void test_a_node_works_until_its_opener_ends(void **state)
{
    int to[2], from[2], answer[2], status;
    struct rig r;
    pid_t pid;
    char c;

    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    assert_int_equal(pipe(answer), 0);
    pid = fork();
    if (pid == 0) {
        rig_start(&r, "mi300x:1", "6.12", 0);
        if (fork() == 0) {
            struct drm_gem_close a = {.handle = 9};
            int while_alive = rig_request(&r, r.drm[0], DRM_CODE_GEM_CLOSE, &a), after;

            (void)!write(from[1], "", 1);
            (void)!read(to[0], &c, 1);
            after = rig_request(&r, r.drm[0], DRM_CODE_GEM_CLOSE, &a);
            c = while_alive == -EINVAL && after == -EBADF;
            (void)!write(answer[1], &c, 1);
            _exit(0);
        }
        (void)!read(from[0], &c, 1);
        rig_end(&r);
        (void)!write(to[1], "", 1);
        pause();
    }
    assert_int_equal(read(answer[0], &c, 1), 1);
    assert_true(c);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static int die_at_work(struct rig *r, uint64_t arg)
{
    fake_process_lock(atomic_load(&r->fake->process));
    raise(SIGKILL);
    return 0;
}

static void test_a_child_that_dies_at_work_does_not_block_its_parent(void **state)
{
    uint32_t gem;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    gem = gem_create(&r, 2 * MIB);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(in_child(&r, die_at_work, 0), -1);
        assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, gem, VA, 0, 2 * MIB, RW), 0);
        assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_UNMAP, gem, VA, 0, 2 * MIB, RW), 0);
    }
    rig_end(&r);
}

/* Both change one VM at the same time. */
static int map_and_unmap(struct rig *r, uint64_t gem)
{
    for (uint32_t i = 0; i < 2000; i++) {
        if (rig_va(r, r->drm[0], AMDGPU_VA_OP_MAP, (uint32_t)gem, VA + GIB, 0, 2 * MIB, RW) != 0 ||
            rig_va(r, r->drm[0], AMDGPU_VA_OP_UNMAP, (uint32_t)gem, VA + GIB, 0, 2 * MIB, 0) != 0)
            return 1;
    }
    return 0;
}

static void *in_thread(void *arg)
{
    struct worker *w = arg;

    w->failed = in_child(w->r, map_and_unmap, 1);
    return NULL;
}

static void test_parent_and_child_work_at_the_same_time(void **state)
{
    struct fake_usage u;
    struct worker w;
    pthread_t thread;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    assert_int_equal(gem_create(&r, 2 * MIB), 1);
    w = (struct worker){.r = &r};
    assert_int_equal(pthread_create(&thread, NULL, in_thread, &w), 0);
    for (uint32_t i = 0; i < 2000; i++) {
        assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_MAP, 1, VA, 0, 2 * MIB, RW), 0);
        assert_int_equal(rig_va(&r, r.drm[0], AMDGPU_VA_OP_UNMAP, 1, VA, 0, 2 * MIB, 0), 0);
    }
    pthread_join(thread, NULL);
    assert_int_equal(w.failed, 0);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.mappings, 0);
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
        cmocka_unit_test(test_a_child_works_on_its_parents_vm),
        cmocka_unit_test(test_a_grandchild_does_too_and_a_close_is_only_its_own),
        cmocka_unit_test(test_a_file_goes_with_the_last_descriptor_of_any_process),
        cmocka_unit_test(test_a_node_works_until_its_opener_ends),
        cmocka_unit_test(test_a_child_that_dies_at_work_does_not_block_its_parent),
        cmocka_unit_test(test_parent_and_child_work_at_the_same_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
