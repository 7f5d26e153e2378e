/* SPDX-License-Identifier: MIT */
/* The request log: what it keeps, saving and replaying. */
#include "rig.h"

#include <stdlib.h>
#include <unistd.h>

static void test_requests_come_out_decoded(void **state)
{
    struct fake_log_entry e;
    uint64_t h;
    struct rig r;

    rig_start(&r, "mi300x:2", "6.12", 0);
    assert_int_equal(fake_log_count(r.fake), 0);
    assert_int_equal(fake_log_start(r.fake, 100), 0);
    h = rig_must_alloc(&r, 1, VA, MIB, VRAM_RW);
    assert_int_equal(rig_map(&r, h, 1), 0);
    assert_int_equal(rig_free(&r, h), -EBUSY);
    assert_int_equal(rig_gem_close(&r, r.drm[1], 5), -EINVAL);
    assert_int_equal(rig_request(&r, r.kfd, _IOC(_IOC_READ, 'K', 0x7f, 8), &h), -ENOTTY);
    assert_int_equal(fake_log_count(r.fake), 5);
    assert_int_equal(fake_log_get(r.fake, 0, &e), 0);
    assert_int_equal(e.sequence, 1);
    assert_int_equal(e.kind, FAKE_LOG_REQUEST);
    assert_int_equal(e.fd, r.kfd);
    assert_int_equal(e.request, KFD_CODE_ALLOC_MEMORY_OF_GPU);
    assert_int_equal(e.gpu, FAKE_ANY_GPU);
    assert_non_null(strstr(e.text, "ALLOC_MEMORY_OF_GPU"));
    assert_int_equal(fake_log_get(r.fake, 2, &e), 0);
    assert_int_equal(e.result, -EBUSY);
    assert_int_equal(fake_log_get(r.fake, 3, &e), 0);
    assert_int_equal(e.gpu, 1);
    assert_int_equal(fake_log_get(r.fake, 4, &e), 0);
    assert_int_equal(e.result, -ENOTTY);
    assert_int_equal(fake_log_get(r.fake, 5, &e), -ENOENT);
    assert_int_equal(fake_log_find(r.fake, "MAP_MEMORY_TO_GPU"), 1);
    assert_int_equal(fake_log_find(r.fake, "no such thing"), 0);
    assert_int_equal(fake_log_start(r.fake, 0), 0);
    rig_free(&r, h);
    assert_int_equal(fake_log_count(r.fake), 0);
    rig_end(&r);
}

static void test_the_oldest_go_first(void **state)
{
    struct fake_log_entry e;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    assert_int_equal(fake_log_start(r.fake, 3), 0);
    for (uint64_t i = 0; i < 10; i++)
        rig_free(&r, i);
    assert_int_equal(fake_log_count(r.fake), 3);
    assert_int_equal(fake_log_get(r.fake, 0, &e), 0);
    assert_int_equal(e.sequence, 8);
    rig_end(&r);
}

/* A bit of everything that can be replayed. */
static void use(struct rig *r)
{
    static char mem[4096] __attribute__((aligned(4096)));
    struct kfd_ioctl_alloc_memory_of_gpu_args user = {
        .va_addr = VA + 64 * MIB, .size = 4096, .mmap_offset = (uintptr_t)mem};
    uint64_t h, second;
    uint32_t gem, done = 0;
    int fd, copy;

    r->kfd = rig_open_path(r, "/dev/kfd");
    for (uint32_t i = 0; i < 2; i++) {
        r->drm[i] = rig_open_render(r, i);
        rig_acquire(r, i, r->drm[i]);
    }
    h = rig_must_alloc(r, 0, VA, 2 * MIB, VRAM_RW);
    rig_map_ids(r, h, r->id, 2, &done);
    fd = rig_export(r, h);
    copy = rig_export(r, h);
    rig_import(r, 1, fd, VA + 4 * MIB, &second);
    rig_map(r, second, 1);
    rig_prime(r, r->drm[0], fd, &gem);
    rig_close(r, copy);
    rig_close(r, fd);
    rig_va(r, r->drm[0], AMDGPU_VA_OP_MAP, gem, VA + 8 * MIB, 0, MIB, 6);
    rig_va(r, r->drm[0], AMDGPU_VA_OP_MAP, gem, VA, 0, MIB, 6);
    user.gpu_id = r->id[0];
    user.flags = KFD_MEM_USERPTR;
    rig_request(r, r->kfd, KFD_CODE_ALLOC_MEMORY_OF_GPU, &user);
    rig_map_ids(r, h, NULL, 1, &done);
    rig_available(r, 0);
    rig_free(r, h);
}

static void test_a_saved_log_replays_alike(void **state)
{
    struct fake_options o = {.size = sizeof(o), .machine = "mi300x:2", .kernel = "6.12"};
    struct fake_replay result;
    char *text = NULL, *line, *differences = NULL, pids[32];
    size_t size = 0, length = 0, told = 0;
    FILE *file = open_memstream(&text, &size), *report;
    struct rig r = {0};
    struct fake *other;

    assert_int_equal(fake_create(&o, &r.fake), 0);
    r.sys = fake_sys(r.fake);
    r.gpus = 2;
    for (uint32_t i = 0; i < 2; i++)
        r.id[i] = fake_gpu_id(r.fake, i);
    assert_int_equal(fake_log_start(r.fake, 1000), 0);
    use(&r);
    assert_int_equal(fake_log_save(r.fake, file), 0);
    fclose(file);
    rig_end(&r);

    assert_int_equal(fake_create(&o, &other), 0);
    file = fmemopen(text, size, "r");
    if (fake_log_replay(other, file, 0, NULL, &result) != 0)
        fail_msg("%s", fake_error_text());
    fclose(file);
    if (result.differing != 0)
        fail_msg("%s", result.text);
    assert_int_equal(result.replayed, 20);
    assert_int_equal(result.skipped, 0);
    fake_destroy(other);

    /* On another machine it differs, and every difference is told, then and now. */
    o.machine = "navi31:2";
    assert_int_equal(fake_create(&o, &other), 0);
    file = fmemopen(text, size, "r");
    report = open_memstream(&differences, &length);
    assert_int_equal(fake_log_replay(other, file, 0, report, &result), 0);
    fclose(file);
    fclose(report);
    assert_true(result.differing > 0);
    assert_non_null(strstr(result.text, "line "));
    for (char *at = differences; (at = strstr(at, "\n    now ")) != NULL; at++)
        told++;
    assert_int_equal(told, result.differing);
    free(differences);
    fake_destroy(other);

    /* A process that the log does not know, and those it does. */
    assert_int_equal(fake_create(&o, &other), 0);
    file = fmemopen(text, size, "r");
    assert_int_equal(fake_log_replay(other, file, getpid() + 1, NULL, &result), -ESRCH);
    snprintf(pids, sizeof(pids), "but of %d", (int)getpid());
    assert_non_null(strstr(fake_error_text(), pids));
    fclose(file);
    fake_destroy(other);

    /* A damaged line is named. */
    line = strchr(text, '\n') + 1;
    *line = 'x';
    o.machine = "mi300x:2";
    assert_int_equal(fake_create(&o, &other), 0);
    file = fmemopen(text, size, "r");
    assert_int_equal(fake_log_replay(other, file, 0, NULL, &result), -EINVAL);
    assert_non_null(strstr(fake_error_text(), "line 2"));
    fclose(file);
    *text = 'x';
    file = fmemopen(text, size, "r");
    assert_int_equal(fake_log_replay(other, file, 0, NULL, &result), -EINVAL);
    fclose(file);
    fake_destroy(other);
    free(text);
}

/* A child that closes what it inherited says nothing about the process that is done again. */
static void test_other_processes_keep_nothing(void **state)
{
    struct fake_options o = {.size = sizeof(o), .machine = "mi300x:1", .kernel = "6.12"};
    struct fake_replay result;
    char *text = NULL, *closing;
    FILE *file;
    size_t size = 0;
    struct rig r;
    uint64_t h;
    int fd;

    assert_int_equal(fake_create(&o, &r.fake), 0);
    r = (struct rig){.fake = r.fake, .sys = fake_sys(r.fake), .gpus = 1, .id = {0}};
    r.id[0] = fake_gpu_id(r.fake, 0);
    assert_int_equal(fake_log_start(r.fake, 100), 0);
    r.kfd = rig_open_path(&r, "/dev/kfd");
    r.drm[0] = rig_open_render(&r, 0);
    rig_acquire(&r, 0, r.drm[0]);
    h = rig_must_alloc(&r, 0, VA, 2 * MIB, VRAM_RW);
    fd = rig_export(&r, h);
    rig_close(&r, fd);
    rig_free(&r, h);
    rig_available(&r, 0);
    file = open_memstream(&text, &size);
    assert_int_equal(fake_log_save(r.fake, file), 0);
    fflush(file);
    closing = strstr(text, "CLOSE dmabuf");
    assert_non_null(closing);
    while (closing[-1] != '\n')
        closing--;
    closing = strndup(strchr(closing, ' '), strcspn(closing, "\n") - strcspn(closing, " "));
    fprintf(file, "%d%s\n", (int)getpid() + 1, closing);
    fclose(file);
    free(closing);
    rig_end(&r);

    assert_int_equal(fake_create(&o, &r.fake), 0);
    file = fmemopen(text, size, "r");
    assert_int_equal(fake_log_replay(r.fake, file, 0, NULL, &result), 0);
    fclose(file);
    assert_int_equal(result.others, 1);
    if (result.differing != 0)
        fail_msg("%s", result.text);
    fake_destroy(r.fake);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_come_out_decoded),
        cmocka_unit_test(test_the_oldest_go_first),
        cmocka_unit_test(test_a_saved_log_replays_alike),
        cmocka_unit_test(test_other_processes_keep_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
