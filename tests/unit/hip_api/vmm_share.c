/* SPDX-License-Identifier: MIT */
/* Allocations as descriptors, within the process and in a child of it. */
#include "fixture.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int start(void **state)
{
    static struct fixture fixture;

    fixture_open(&fixture, "mi300x:2", "6.12");
    *state = &fixture;
    return 0;
}

static int stop(void **state)
{
    fixture_close(*state);
    return 0;
}

static int export_fd(hipMemGenericAllocationHandle_t handle)
{
    int fd = -1;

    HIP_OK(hipMemExportToShareableHandle(&fd, handle, hipMemHandleTypePosixFileDescriptor, 0));
    return fd;
}

static hipMemGenericAllocationHandle_t import_fd(int fd)
{
    hipMemGenericAllocationHandle_t handle = NULL;

    HIP_OK(hipMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
                                           hipMemHandleTypePosixFileDescriptor));
    return handle;
}

/* bugs.md C14. */
static void test_each_export_is_a_new_descriptor_closed_on_exec(void **state)
{
    hipMemGenericAllocationHandle_t handle = make_handle(0, 2 * MIB, true);
    int first = export_fd(handle), second = export_fd(handle);

    assert_true(first >= 3 && second >= 3 && first != second);
    assert_true(fcntl(first, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(second, F_GETFD) & FD_CLOEXEC);
    close(first);
    close(second);
    HIP_OK(hipMemRelease(handle));
}

/* bugs.md B09, B10, C08, C16. */
static void test_an_import_is_the_same_memory_with_a_handle_of_its_own(void **state)
{
    hipMemGenericAllocationHandle_t handle, by_value, by_address = NULL;
    hipMemAllocationProp prop;
    hipPointerAttribute_t attributes;
    char *ptr = map_new(1, 2 * MIB, &handle), *view = reserve(2 * MIB);
    int fd = export_fd(handle);

    by_value = import_fd(fd);
    HIP_OK(hipMemImportFromShareableHandle(&by_address, &fd, hipMemHandleTypePosixFileDescriptor));
    close(fd);
    assert_ptr_not_equal(by_value, handle);
    assert_ptr_not_equal(by_value, by_address);
    HIP_OK(hipMemGetAllocationPropertiesFromHandle(&prop, by_value));
    assert_int_equal(prop.location.type, hipMemLocationTypeDevice);
    assert_int_equal(prop.location.id, 1);
    assert_int_equal(prop.requestedHandleTypes, hipMemHandleTypePosixFileDescriptor);
    HIP_OK(hipMemMap(view, 2 * MIB, 0, by_value, 0));
    set_access(view, 2 * MIB, 0, hipMemAccessFlagsProtReadWrite);
    gpu_write(*state, 1, ptr + 4096, 21);
    assert_int_equal(gpu_read(*state, 0, view + 4096), 21);
    HIP_OK(hipPointerGetAttributes(&attributes, view));
    assert_int_equal(attributes.type, hipMemoryTypeDevice);
    assert_int_equal(attributes.device, 1);
    /* The exporter goes first; the memory stays. */
    unmap_all(ptr, 2 * MIB, handle);
    assert_int_equal(gpu_read(*state, 0, view + 4096), 21);
    HIP_OK(hipMemRelease(by_address));
    unmap_all(view, 2 * MIB, by_value);
}

static void test_what_cannot_be_exported_or_imported_says_why(void **state)
{
    hipMemGenericAllocationHandle_t plain = make_handle(0, 4096, false),
                                    shared = make_handle(0, 4096, true), out = NULL, import;
    int fd = export_fd(shared), null = open("/dev/null", O_RDONLY), value = -1;
    hipMemAllocationProp prop = device_prop(0);
    const hipMemAllocationHandleType fd_type = hipMemHandleTypePosixFileDescriptor;

    import = import_fd(fd);
    HIP_FAILS(hipMemExportToShareableHandle(&value, plain, fd_type, 0), hipErrorInvalidValue,
              "types 0x0");
    HIP_FAILS(hipMemExportToShareableHandle(&value, plain, hipMemHandleTypeNone, 0),
              hipErrorInvalidValue, "type is 0");
    HIP_FAILS(hipMemExportToShareableHandle(&value, shared, hipMemHandleTypeWin32, 0),
              hipErrorInvalidValue, "type is 2");
    HIP_FAILS(hipMemExportToShareableHandle(&value, import, fd_type, 0), hipErrorInvalidValue,
              "import");
    HIP_FAILS(hipMemImportFromShareableHandle(&out, (void *)(intptr_t)null, fd_type),
              hipErrorInvalidValue, "hipMemImport");
    close(null);
    HIP_FAILS(hipMemImportFromShareableHandle(&out, (void *)(intptr_t)null, fd_type),
              hipErrorInvalidValue, "hipMemImport");
    HIP_FAILS(hipMemImportFromShareableHandle(&out, (void *)(intptr_t)fd, hipMemHandleTypeFabric),
              hipErrorNotSupported, "descriptor");
    prop.requestedHandleTypes = hipMemHandleTypeFabric;
    HIP_FAILS(hipMemCreate(&out, 4096, &prop, 0), hipErrorNotSupported, "descriptor");
    assert_int_equal(value, -1);
    assert_null(out);
    close(fd);
    HIP_OK(hipMemRelease(import));
    HIP_OK(hipMemRelease(shared));
    HIP_OK(hipMemRelease(plain));
}

static void test_a_range_is_exported_whole_and_from_its_begin_only(void **state)
{
    const hipMemRangeHandleType type = hipMemRangeHandleTypeDmaBufFd;
    hipMemGenericAllocationHandle_t handle, import;
    char *ptr = map_new(0, 2 * MIB, &handle), *view = reserve(2 * MIB);
    void *one_step;
    int fd = -1, local;

    HIP_OK(hipMemGetHandleForAddressRange(&fd, ptr, 2 * MIB, type, 0));
    import = import_fd(fd);
    close(fd);
    HIP_OK(hipMemMap(view, 2 * MIB, 0, import, 0));
    set_access(view, 2 * MIB, 0, hipMemAccessFlagsProtRead);
    gpu_write(*state, 0, ptr, 8);
    assert_int_equal(gpu_read(*state, 0, view), 8);
    HIP_FAILS(hipMemGetHandleForAddressRange(&fd, ptr + 4096, 4096, type, 0), hipErrorNotSupported,
              "begin");
    HIP_FAILS(hipMemGetHandleForAddressRange(&fd, ptr, 2 * MIB, (hipMemRangeHandleType)-1, 0),
              hipErrorInvalidValue, "type");
    HIP_FAILS(hipMemGetHandleForAddressRange(&fd, ptr, 2 * MIB, type, 0xff), hipErrorInvalidValue,
              "flags");
    HIP_FAILS(hipMemGetHandleForAddressRange(&fd, ptr, 0, type, 0), hipErrorInvalidValue, "size");
    HIP_FAILS(hipMemGetHandleForAddressRange(&fd, NULL, 4096, type, 0), hipErrorInvalidValue,
              "NULL");
    HIP_FAILS(hipMemGetHandleForAddressRange(&fd, &local, 4, type, 0), hipErrorInvalidValue, "0x");
    unmap_all(view, 2 * MIB, import);
    HIP_OK(hipMemUnmap(ptr, 2 * MIB));
    HIP_FAILS(hipMemGetHandleForAddressRange(&fd, ptr, 4096, type, 0), hipErrorInvalidValue, "0x");
    HIP_OK(hipMemAddressFree(ptr, 2 * MIB));
    HIP_OK(hipMemRelease(handle));
    HIP_OK(hipMalloc(&one_step, 2 * MIB));
    HIP_OK(hipMemGetHandleForAddressRange(&fd, one_step, 2 * MIB, type, 0));
    close(fd);
    HIP_OK(hipFree(one_step));
    HIP_FAILS(hipMemGetHandleForAddressRange(&fd, one_step, 4096, type, 0), hipErrorInvalidValue,
              "0x");
}

/* bugs.md C01, C02, C03: no descriptor per handle. */
static void test_handles_and_mappings_hold_no_descriptors(void **state)
{
    hipMemGenericAllocationHandle_t handles[64];
    char *ptr = reserve(64 * 4096);
    int first = dup(0), after;

    close(first);
    for (int i = 0; i < 64; i++) {
        handles[i] = make_handle(0, 4096, true);
        HIP_OK(hipMemMap(ptr + i * 4096, 4096, 0, handles[i], 0));
    }
    set_access(ptr, 64 * 4096, 0, hipMemAccessFlagsProtReadWrite);
    set_access(ptr, 64 * 4096, 1, hipMemAccessFlagsProtRead);
    after = dup(0);
    close(after);
    assert_int_equal(first, after);
    HIP_OK(hipMemUnmap(ptr, 64 * 4096));
    HIP_OK(hipMemAddressFree(ptr, 64 * 4096));
    for (int i = 0; i < 64; i++)
        HIP_OK(hipMemRelease(handles[i]));
}

/* In a child: takes the memory and answers with what it read, or the number of a failed step. */
static int child(int fd)
{
    hipMemAccessDesc desc = device_access(1, hipMemAccessFlagsProtReadWrite);
    hipMemGenericAllocationHandle_t handle;
    uint64_t value = 0;
    void *ptr;

    if (hipMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
                                        hipMemHandleTypePosixFileDescriptor) != hipSuccess)
        return 1;
    close(fd);
    if (hipMemAddressReserve(&ptr, 2 * MIB, 0, NULL, 0) != hipSuccess)
        return 2;
    if (hipMemMap(ptr, 2 * MIB, 0, handle, 0) != hipSuccess ||
        hipMemRelease(handle) != hipSuccess ||
        hipMemSetAccess(ptr, 2 * MIB, &desc, 1) != hipSuccess)
        return 3;
    if (hipMemcpyDtoH(&value, ptr, sizeof(value)) != hipSuccess || value != 77)
        return 4;
    value = 78;
    if (hipMemcpyHtoD((char *)ptr + 8, &value, sizeof(value)) != hipSuccess)
        return 5;
    return 0;
}

static void test_a_forked_child_uses_the_memory_of_its_parent(void **state)
{
    hipMemGenericAllocationHandle_t handle;
    char *ptr = map_new(0, 2 * MIB, &handle);
    int fd = export_fd(handle), status;
    pid_t pid;

    gpu_write(*state, 0, ptr, 77);
    pid = fork();
    if (pid == 0)
        _exit(child(fd));
    close(fd);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    assert_int_equal(gpu_read(*state, 0, ptr + 8), 78);
    unmap_all(ptr, 2 * MIB, handle);
}

/* As a daemon does. */
static int child_with_files_of_its_own(void)
{
    struct stat null, now;
    void *ptr;
    int fd;

    close_range(3, ~0u, 0);
    if (stat("/dev/null", &null) != 0)
        return 1;
    while ((fd = open("/dev/null", O_RDWR)) < 40) {
        if (fd < 0)
            return 2;
    }
    if (hipMalloc(&ptr, 4096) != hipSuccess)
        return 3;
    for (int i = 3; i <= 40; i++) {
        if (fstat(i, &now) != 0 || now.st_rdev != null.st_rdev)
            return i;
    }
    return 0;
}

static void test_a_forked_child_s_own_files_are_left_alone(void **state)
{
    int status;
    pid_t pid;

    assert_int_equal(hipInit(0), hipSuccess);
    pid = fork();
    if (pid == 0)
        _exit(child_with_files_of_its_own());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_export_is_a_new_descriptor_closed_on_exec, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_an_import_is_the_same_memory_with_a_handle_of_its_own,
                                        start, stop),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_exported_or_imported_says_why, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_a_range_is_exported_whole_and_from_its_begin_only,
                                        start, stop),
        cmocka_unit_test_setup_teardown(test_handles_and_mappings_hold_no_descriptors, start, stop),
        cmocka_unit_test_setup_teardown(test_a_forked_child_uses_the_memory_of_its_parent, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_a_forked_child_s_own_files_are_left_alone, start,
                                        stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
