/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <string.h>

#include "stub_sys.h"

/* The test's arg: the last dma-buf request and what to answer. */
struct record {
    int calls, answer;
    struct kfd_uapi_export_dmabuf out;
    struct kfd_ioctl_import_dmabuf_args in;
    struct kfd_ioctl_get_dmabuf_info_args info;
    uint32_t owner;
};

static bool record(struct stub *stub, int fd, unsigned long request, void *arg, int *ret)
{
    struct record *r = stub->arg;

    if (_IOC_TYPE(request) != 'K')
        return false;
    *ret = r->answer;
    switch (_IOC_NR(request)) {
    case KFD_NR_EXPORT_DMABUF:
        r->out = *(struct kfd_uapi_export_dmabuf *)arg;
        if (r->answer == 0) {
            int made = stub->base.ops->open_path(&stub->base, "/dev/kfd", 0); /* any descriptor */

            ((struct kfd_uapi_export_dmabuf *)arg)->dmabuf_fd = (uint32_t)made;
        }
        break;
    case KFD_NR_IMPORT_DMABUF:
        r->in = *(struct kfd_ioctl_import_dmabuf_args *)arg;
        ((struct kfd_ioctl_import_dmabuf_args *)arg)->handle = 0x77;
        break;
    case KFD_NR_GET_DMABUF_INFO:
        r->info = *(struct kfd_ioctl_get_dmabuf_info_args *)arg;
        *(struct kfd_ioctl_get_dmabuf_info_args *)arg = (struct kfd_ioctl_get_dmabuf_info_args){
            .size = 0x3000,
            .gpu_id = r->owner,
            .flags = KFD_MEM_VRAM,
        };
        break;
    default:
        return false;
    }
    r->calls++;
    return true;
}

static struct kfd *open_record(struct stub **stub, struct record *r, uint32_t minor)
{
    struct kfd *kfd;

    *stub = stub_new(2);
    (*stub)->minor = minor;
    (*stub)->request = record;
    (*stub)->arg = r;
    assert_int_equal(kfd_open(&(*stub)->base, &kfd), 0);
    return kfd;
}

static void test_export_gives_a_close_on_exec_descriptor(void **state)
{
    struct record r = {0};
    struct stub *stub;
    struct kfd *kfd = open_record(&stub, &r, 12);
    int fd;

    assert_int_equal(kfd_dmabuf_export(kfd, 0xabc, &fd), 0);
    assert_int_equal(r.out.handle, 0xabc);
    assert_int_equal(r.out.flags, O_CLOEXEC);
    assert_true(fd >= STUB_FIRST_FD);
    stub->base.ops->close_fd(&stub->base, fd);
    kfd_close(kfd);
    stub_free(stub);
}

static void test_exported_descriptors_are_3_and_above(void **state)
{
    struct record r = {0};
    struct stub *stub;
    struct kfd *kfd = open_record(&stub, &r, 12);
    int open_before = stub->open_fds, fd;

    stub->low_fds = 1;
    assert_int_equal(kfd_dmabuf_export(kfd, 1, &fd), 0);
    assert_true(fd > 2);
    assert_int_equal(stub->open_fds, open_before + 1);
    stub->base.ops->close_fd(&stub->base, fd);
    kfd_close(kfd);
    stub_free(stub);
}

static void test_export_before_1_12_is_not_supported(void **state)
{
    struct record r = {0};
    struct stub *stub;
    struct kfd *kfd = open_record(&stub, &r, 11);
    int fd = 5;

    assert_int_equal(kfd_dmabuf_export(kfd, 1, &fd), -EOPNOTSUPP);
    assert_non_null(strstr(kfd_error_text(), "1.11"));
    assert_int_equal(r.calls, 0);
    assert_int_equal(fd, 5);
    kfd_close(kfd);
    stub_free(stub);
}

static void test_import_hands_on_its_arguments(void **state)
{
    struct record r = {0};
    struct stub *stub;
    struct kfd *kfd = open_record(&stub, &r, 17);
    uint64_t handle;

    assert_int_equal(kfd_dmabuf_import(kfd_device_at(kfd, 1), 40, 0x7f0000000000, &handle), 0);
    assert_int_equal(r.in.gpu_id, 1001);
    assert_int_equal(r.in.dmabuf_fd, 40);
    assert_int_equal(r.in.va_addr, 0x7f0000000000);
    assert_int_equal(handle, 0x77);
    assert_int_equal(kfd_dmabuf_import(kfd_device_at(kfd, 1), 40, 0, &handle), 0);
    kfd_close(kfd);
    stub_free(stub);
}

static void test_import_refuses_bad_descriptors_and_addresses(void **state)
{
    struct record r = {0};
    struct stub *stub;
    struct kfd *kfd = open_record(&stub, &r, 17);
    struct kfd_device *dev = kfd_device_at(kfd, 0);
    uint64_t handle = 5;

    assert_int_equal(kfd_dmabuf_import(dev, -1, 0, &handle), -EBADF);
    assert_int_equal(kfd_dmabuf_import(dev, 40, 0x7f0000000001, &handle), -EINVAL);
    assert_int_equal(kfd_dmabuf_import(dev, 40, 0x1000, &handle), -EINVAL);
    assert_int_equal(kfd_dmabuf_import(dev, 40, 0x800000000000, &handle), -EINVAL);
    assert_int_equal(r.calls, 0);
    r.answer = -EINVAL;
    assert_int_equal(kfd_dmabuf_import(dev, 40, 0, &handle), -EINVAL);
    assert_non_null(strstr(kfd_error_text(), "device 0"));
    assert_int_equal(handle, 5);
    kfd_close(kfd);
    stub_free(stub);
}

static void test_info_names_the_owner(void **state)
{
    struct record r = {.owner = 1001};
    struct stub *stub;
    struct kfd *kfd = open_record(&stub, &r, 17);
    struct kfd_dmabuf_info info;

    assert_int_equal(kfd_dmabuf_info(kfd, 40, &info), 0);
    assert_int_equal(r.info.dmabuf_fd, 40);
    assert_int_equal(info.size, 0x3000);
    assert_int_equal(info.flags, KFD_MEM_VRAM);
    assert_int_equal(info.gpu_id, 1001);
    assert_ptr_equal(info.owner, kfd_device_at(kfd, 1));
    r.owner = 4; /* a GPU that this process does not see */
    assert_int_equal(kfd_dmabuf_info(kfd, 40, &info), 0);
    assert_int_equal(info.gpu_id, 4);
    assert_null(info.owner);
    assert_int_equal(kfd_dmabuf_info(kfd, -1, &info), -EBADF);
    kfd_close(kfd);
    stub_free(stub);
}

/* The kernel refuses to leave a graphics program's metadata behind. */
static void test_info_has_room_for_metadata(void **state)
{
    struct record r = {.owner = 1000};
    struct stub *stub;
    struct kfd *kfd = open_record(&stub, &r, 17);
    struct kfd_dmabuf_info info;

    assert_int_equal(kfd_dmabuf_info(kfd, 40, &info), 0);
    assert_true(r.info.metadata_size >= 256);
    assert_int_not_equal(r.info.metadata_ptr, 0);
    kfd_close(kfd);
    stub_free(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_export_gives_a_close_on_exec_descriptor),
        cmocka_unit_test(test_exported_descriptors_are_3_and_above),
        cmocka_unit_test(test_export_before_1_12_is_not_supported),
        cmocka_unit_test(test_import_hands_on_its_arguments),
        cmocka_unit_test(test_import_refuses_bad_descriptors_and_addresses),
        cmocka_unit_test(test_info_names_the_owner),
        cmocka_unit_test(test_info_has_room_for_metadata),
    };

    return cmocka_run_group_tests_name("kfd/dmabuf", tests, NULL, NULL);
}
