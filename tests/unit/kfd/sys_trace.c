/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stub_sys.h"

struct traced {
    struct stub *stub;
    struct kfd_sys *sys;
    FILE *out;
    char *text;
    size_t size;
};

static void start(struct traced *t, uint32_t gpus)
{
    t->stub = stub_new(gpus);
    t->out = open_memstream(&t->text, &t->size);
    assert_non_null(t->out);
    assert_int_equal(kfd_sys_trace_new(&t->stub->base, t->out, &t->sys), 0);
}

static void stop(struct traced *t)
{
    kfd_sys_destroy(t->sys);
    assert_int_equal(fclose(t->out), 0); /* the stream stayed ours */
    free(t->text);
    stub_free(t->stub);
}

static void expect(struct traced *t, const char *part)
{
    fflush(t->out);
    if (!strstr(t->text, part))
        fail_msg("no '%s' in\n%s", part, t->text);
}

static uint32_t count_lines(struct traced *t)
{
    uint32_t n = 0;

    fflush(t->out);
    for (const char *p = t->text; (p = strchr(p, '\n')); p++)
        n++;
    return n;
}

static void test_requests_are_decoded_with_their_results(void **state)
{
    struct traced t;
    struct kfd *kfd;

    start(&t, 1);
    assert_int_equal(kfd_open(t.sys, &kfd), 0);
    expect(&t, "open /dev/kfd flags=0x");
    expect(&t, "GET_VERSION -> major_version=1 minor_version=17 = 0 <");
    expect(&t, "GET_PROCESS_APERTURES_NEW kfd_process_device_apertures_ptr=0x0 num_of_nodes=0 -> "
               "num_of_nodes=1 = 0 <");
    expect(&t, "read /sys/devices/virtual/kfd/kfd/topology/generation_id = 2 <");
    expect(&t, "ACQUIRE_VM drm_fd=101 gpu_id=1000 = 0 <");
    expect(&t, " us>\n");
    kfd_close(kfd);
    expect(&t, "close fd=100 = 0 <");
    stop(&t);
}

static void test_failures_show_the_errnos_name(void **state)
{
    struct kfd_ioctl_free_memory_of_gpu_args args = {.handle = 0xabc};
    struct traced t;

    start(&t, 0);
    t.sys->ops->request(t.sys, -1, KFD_CODE_FREE_MEMORY_OF_GPU, &args);
    expect(&t, "ioctl fd=-1 FREE_MEMORY_OF_GPU handle=0xabc = -9 EBADF <");
    t.sys->ops->open_path(t.sys, "/dev/dri/renderD128", 0);
    expect(&t, "open /dev/dri/renderD128 flags=0x0 = -2 ENOENT <");
    stop(&t);
}

static int ignore(void *arg, const char *name)
{
    return 0;
}

static void test_each_operation_is_one_line_and_passed_on(void **state)
{
    struct traced t;
    char text[32];
    void *at = NULL;
    int fd, dup;

    start(&t, 0);
    fd = t.sys->ops->open_path(t.sys, "/dev/kfd", 0);
    dup = t.sys->ops->dup_fd(t.sys, fd, 3);
    t.sys->ops->close_fd(t.sys, dup);
    t.sys->ops->close_fd(t.sys, fd);
    assert_int_equal(t.sys->ops->map_pages(t.sys, (void *)0x5000, 4096, 3, 1, 4,
                                           UINT64_C(0xc000000000000000), &at),
                     0);
    assert_ptr_equal(at, (void *)0x5000);
    t.sys->ops->protect_pages(t.sys, at, 4096, 1);
    t.sys->ops->advise_pages(t.sys, at, 4096, 16);
    t.sys->ops->unmap_pages(t.sys, at, 4096);
    assert_int_equal(t.sys->ops->read_file(t.sys, t.stub->files[0].path, text, sizeof(text)), 2);
    assert_int_equal(t.sys->ops->list_dir(t.sys, "/sys", ignore, NULL), 0);
    assert_int_equal(t.sys->ops->product_name(t.sys, 3, text, sizeof(text)), 0);
    assert_int_equal(count_lines(&t), 11);
    expect(&t, "mmap 0x5000 size=0x1000 prot=3 flags=0x1 fd=4 offset=0xc000000000000000 -> 0x5000");
    expect(&t, "product name fd=3 -> Stub Accelerator");
    stop(&t);
}

static void test_an_unknown_request_is_shown_as_numbers(void **state)
{
    uint32_t arg = 0;
    struct traced t;

    start(&t, 0);
    t.sys->ops->request(t.sys, -1, 0x80044b7f, &arg);
    expect(&t, "type 0x4b nr 0x7f size 4 = -9 EBADF");
    stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_are_decoded_with_their_results),
        cmocka_unit_test(test_failures_show_the_errnos_name),
        cmocka_unit_test(test_each_operation_is_one_line_and_passed_on),
        cmocka_unit_test(test_an_unknown_request_is_shown_as_numbers),
    };

    return cmocka_run_group_tests_name("kfd/sys_trace", tests, NULL, NULL);
}
