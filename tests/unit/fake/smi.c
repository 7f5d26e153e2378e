/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <poll.h>

#define VMFAULT_MASK 1ull

static int open_events(struct rig *r, uint32_t gpu_id, int *fd)
{
    struct kfd_ioctl_smi_events_args a = {.gpuid = gpu_id};
    int err = rig_request(r, r->kfd, KFD_CODE_SMI_EVENTS, &a);

    *fd = (int)a.anon_fd;
    return err;
}

static void test_descriptor_is_empty_until_its_event_happens(void **state)
{
    struct rig r;
    struct pollfd poll_fd = {.events = POLLIN};
    uint64_t mask = VMFAULT_MASK;
    char line[128] = "", byte;
    int fd;

    rig_start(&r, "mi210:2", NULL, 0);
    assert_int_equal(open_events(&r, 0xdead, &fd), -EINVAL);
    assert_int_equal(open_events(&r, r.id[1], &fd), 0);
    assert_int_equal(read(fd, line, sizeof(line)), -1);
    assert_int_equal(errno, EAGAIN);
    /* Not asked for, then another GPU's. */
    assert_int_equal(fake_gpu_read(r.fake, 1, VA, &byte, 1, NULL), -EFAULT);
    assert_int_equal(write(fd, &mask, sizeof(mask)), sizeof(mask));
    assert_int_equal(fake_gpu_read(r.fake, 0, VA, &byte, 1, NULL), -EFAULT);
    poll_fd.fd = fd;
    assert_int_equal(poll(&poll_fd, 1, 0), 0);
    assert_int_equal(fake_gpu_read(r.fake, 1, VA, &byte, 1, NULL), -EFAULT);
    assert_int_equal(poll(&poll_fd, 1, 0), 1);
    assert_true(read(fd, line, sizeof(line) - 1) > 0);
    assert_int_equal(line[0], '1');
    assert_non_null(strchr(line, '\n'));
    close(fd);
    /* The fake notices the closed end. */
    assert_int_equal(fake_gpu_read(r.fake, 1, VA, &byte, 1, NULL), -EFAULT);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptor_is_empty_until_its_event_happens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
