/* SPDX-License-Identifier: MIT */
/* EXPORT, IMPORT, GET_DMABUF_INFO; life and identity of the memory, over processes too. */
#include "rig.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int info(struct rig *r, int fd, struct kfd_ioctl_get_dmabuf_info_args *a)
{
    memset(a, 0, sizeof(*a));
    a->dmabuf_fd = (uint32_t)fd;
    return rig_request(r, r->kfd, KFD_CODE_GET_DMABUF_INFO, a);
}

static void test_a_dmabuf_has_the_rounded_size_and_the_handles_mode(void **state)
{
    uint64_t rw, ro;
    struct rig r;
    void *p;
    int fd;

    rig_start(&r, "mi300x:1", "6.12", 0);
    rw = rig_must_alloc(&r, 0, 0, 0x1001, VRAM_RW);
    ro = rig_must_alloc(&r, 0, 0, 4096, KFD_MEM_GTT);
    fd = rig_export(&r, rw);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(lseek(fd, 0, SEEK_END), 8192);
    p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
    assert_ptr_not_equal(p, MAP_FAILED);
    munmap(p, 4096);
    rig_close(&r, fd);
    fd = rig_export(&r, ro);
    assert_ptr_equal(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    assert_int_equal(errno, EACCES);
    rig_close(&r, fd);
    rig_end(&r);
}

static void test_export_without_cloexec_survives_exec(void **state)
{
    struct kfd_uapi_export_dmabuf a = {0};
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    a.handle = rig_must_alloc(&r, 0, 0, MIB, VRAM_RW);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_EXPORT_DMABUF, &a), 0);
    assert_int_equal(fcntl((int)a.dmabuf_fd, F_GETFD), 0);
    rig_close(&r, (int)a.dmabuf_fd);
    a.handle++;
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_EXPORT_DMABUF, &a), -EINVAL);
    rig_end(&r);
}

static void test_import_is_the_same_memory_at_its_own_address(void **state)
{
    struct fake_translation a, b;
    uint64_t own, other;
    char buf[8];
    struct rig r;
    int fd;

    rig_start(&r, "mi300x:2", "6.12", 0);
    own = rig_must_alloc(&r, 0, VA, MIB, KFD_MEM_VRAM);
    fd = rig_export(&r, own);
    assert_int_equal(rig_import(&r, 0, fd, VA + 4 * MIB, &other), 0);
    assert_int_not_equal(own, other);
    rig_close(&r, fd);
    assert_int_equal(rig_map(&r, own, 0), 0);
    assert_int_equal(rig_map(&r, other, 0), 0);
    fake_gpu_translate(r.fake, 0, VA, FAKE_READ, &a);
    fake_gpu_translate(r.fake, 0, VA + 4 * MIB, FAKE_READ, &b);
    assert_int_equal(a.object, b.object);
    /* An import is always writable and executable. */
    assert_int_equal(rig_fault(&r, 0, VA, FAKE_WRITE), FAKE_FAULT_READ_ONLY);
    assert_int_equal(rig_fault(&r, 0, VA + 4 * MIB, FAKE_EXEC), FAKE_FAULT_NONE);
    assert_int_equal(fake_gpu_write(r.fake, 0, VA + 4 * MIB, "import", 7, NULL), 0);
    assert_int_equal(fake_gpu_read(r.fake, 0, VA, buf, 7, NULL), 0);
    assert_string_equal(buf, "import");
    rig_end(&r);
}

static void test_import_checks_in_the_personalitys_order(void **state)
{
    struct kfd_ioctl_import_dmabuf_args a = {0};
    uint64_t handle;
    struct rig r;
    int null = open("/dev/null", O_RDWR);

    rig_open(&r, "mi210:1", "6.12", 0);
    assert_int_equal(rig_import(&r, 0, -1, 0, &handle), -ENODEV);
    a.dmabuf_fd = UINT32_MAX;
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_IMPORT_DMABUF, &a), -EINVAL);
    assert_int_equal(rig_acquire(&r, 0, r.drm[0]), 0);
    assert_int_equal(rig_import(&r, 0, -1, 0, &handle), -EBADF);
    assert_int_equal(rig_import(&r, 0, null, 0, &handle), -EINVAL);
    assert_int_equal(rig_import(&r, 0, r.kfd, 0, &handle), -EINVAL);
    rig_end(&r);
    rig_open(&r, "mi210:1", "6.1", 0);
    assert_int_equal(rig_request(&r, r.kfd, KFD_CODE_IMPORT_DMABUF, &a), -EBADF);
    rig_end(&r);
    close(null);
}

static void test_foreign_devices_import_from_6_12_on(void **state)
{
    union drm_amdgpu_gem_create c;
    struct drm_prime_handle prime;
    const char *const kernels[] = {"6.1", "6.12"};
    uint64_t handle;
    struct rig r;

    for (int i = 0; i < 2; i++) {
        rig_start(&r, "mi210:2", kernels[i], 0);
        memset(&c, 0, sizeof(c));
        c.in.bo_size = MIB;
        c.in.domains = AMDGPU_GEM_DOMAIN_VRAM;
        assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_GEM_CREATE, &c), 0);
        prime = (struct drm_prime_handle){.handle = c.out.handle, .flags = O_CLOEXEC | O_RDWR};
        assert_int_equal(rig_request(&r, r.drm[0], DRM_CODE_PRIME_HANDLE_TO_FD, &prime), 0);
        assert_int_equal(rig_import(&r, 0, prime.fd, VA, &handle), 0);
        assert_int_equal(rig_map(&r, handle, 0), 0);
        assert_int_equal(rig_import(&r, 1, prime.fd, VA, &handle), i == 0 ? -EINVAL : 0);
        if (i == 1)
            assert_int_equal(rig_map(&r, handle, 1), 0);
        rig_close(&r, prime.fd);
        rig_end(&r);
    }
}

static void test_dmabuf_info(void **state)
{
    struct kfd_ioctl_get_dmabuf_info_args a;
    uint64_t vram, gtt;
    struct rig r;
    int fd;

    rig_start(&r, "mi210:2", "6.12", 0);
    vram = rig_must_alloc(&r, 1, 0, MIB, VRAM_RW | KFD_MEM_PUBLIC);
    gtt = rig_must_alloc(&r, 1, 0, 5000, KFD_MEM_GTT);
    fd = rig_export(&r, vram);
    assert_int_equal(info(&r, fd, &a), 0);
    assert_int_equal(a.size, MIB);
    assert_int_equal(a.gpu_id, r.id[1]);
    assert_int_equal(a.flags, KFD_MEM_VRAM); /* the CPU sees all of it anyway */
    assert_int_equal(a.metadata_size, 0);
    rig_close(&r, fd);
    fd = rig_export(&r, gtt);
    assert_int_equal(info(&r, fd, &a), 0);
    assert_int_equal(a.size, 8192);
    assert_int_equal(a.flags, KFD_MEM_GTT);
    rig_close(&r, fd);
    assert_int_equal(info(&r, -1, &a), -EBADF);
    assert_int_equal(info(&r, r.kfd, &a), -EINVAL);
    rig_end(&r);
    rig_open(&r, "none", "6.12", 0);
    assert_int_equal(info(&r, -1, &a), -EINVAL);
    rig_end(&r);
}

static void test_dmabuf_info_tells_public_once_the_cpu_has_a_view(void **state)
{
    struct kfd_ioctl_get_dmabuf_info_args a;
    struct rig r;
    void *view;
    int fd;

    rig_start(&r, "mi210", "6.12", 0);
    fd = rig_export(&r, rig_must_alloc(&r, 0, 0, MIB, VRAM_RW));
    assert_int_equal(info(&r, fd, &a), 0);
    assert_int_equal(a.flags, KFD_MEM_VRAM);
    assert_int_equal(r.sys->ops->map_pages(r.sys, NULL, MIB, PROT_READ, MAP_SHARED, fd, 0, &view),
                     0);
    assert_int_equal(r.sys->ops->unmap_pages(r.sys, view, MIB), 0);
    assert_int_equal(info(&r, fd, &a), 0);
    assert_int_equal(a.flags, KFD_MEM_VRAM | KFD_MEM_PUBLIC);
    rig_close(&r, fd);
    rig_end(&r);
}

static void test_memory_is_charged_until_the_last_reference(void **state)
{
    uint64_t all, h, second;
    struct rig r;
    int fd, copy;
    void *p;

    rig_start(&r, "mi300x:1", "6.12", 0);
    all = rig_available(&r, 0);
    h = rig_must_alloc(&r, 0, 0, 4 * MIB, VRAM_RW);
    fd = rig_export(&r, h);
    copy = dup(fd);
    p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    assert_int_equal(rig_free(&r, h), 0);
    assert_int_equal(rig_available(&r, 0), all - 4 * MIB);
    close(fd);
    assert_int_equal(rig_available(&r, 0), all - 4 * MIB);
    /* Nobody's handle, and still importable. */
    assert_int_equal(rig_import(&r, 0, copy, 0, &second), 0);
    close(copy);
    munmap(p, 4096);
    assert_int_equal(rig_available(&r, 0), all - 4 * MIB);
    assert_int_equal(rig_free(&r, second), 0);
    assert_int_equal(rig_available(&r, 0), all);
    h = rig_must_alloc(&r, 0, 0, 4 * MIB, VRAM_RW);
    fd = rig_export(&r, h);
    p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    assert_int_equal(rig_free(&r, h), 0);
    assert_int_equal(rig_available(&r, 0), all - 4 * MIB);
    munmap(p, 4096);
    assert_int_equal(rig_available(&r, 0), all);
    rig_end(&r);
}

static void send_fd(int sock, int fd)
{
    char byte = 0, control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec iov = {&byte, 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control,
                         .msg_controllen = sizeof(control)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    if (sendmsg(sock, &msg, 0) != 1)
        _exit(99);
}

static int receive_fd(int sock)
{
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec iov = {&byte, 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control,
                         .msg_controllen = sizeof(control)};
    int fd = -1;

    if (recvmsg(sock, &msg, 0) == 1 && CMSG_FIRSTHDR(&msg) != NULL)
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
    return fd;
}

/* A child that makes a buffer, writes to it, sends it away and dies. */
static void exporter(struct rig *r, int sock)
{
    uint64_t h;

    r->kfd = rig_open_path(r, "/dev/kfd");
    r->drm[0] = rig_open_render(r, 0);
    if (rig_acquire(r, 0, r->drm[0]) != 0)
        _exit(1);
    h = rig_must_alloc(r, 0, VA, 4 * MIB, VRAM_RW);
    if (rig_map(r, h, 0) != 0 || fake_gpu_write(r->fake, 0, VA + MIB, "from afar", 10, NULL) != 0)
        _exit(2);
    send_fd(sock, rig_export(r, h));
    _exit(0);
}

static void test_a_buffer_outlives_its_exporter_and_is_charged_exactly(void **state)
{
    uint64_t all, h;
    char buf[16];
    struct fake_usage u;
    struct rig r;
    int pair[2], status, fd;
    pid_t pid;

    rig_start(&r, "mi300x:1", "6.12", 0);
    all = rig_available(&r, 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    pid = fork();
    if (pid == 0)
        exporter(&r, pair[1]);
    fd = receive_fd(pair[0]);
    assert_true(fd >= 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(rig_available(&r, 0), all - 4 * MIB);
    assert_int_equal(rig_import(&r, 0, fd, VA, &h), 0);
    close(fd);
    assert_int_equal(rig_map(&r, h, 0), 0);
    assert_int_equal(fake_gpu_read(r.fake, 0, VA + MIB, buf, 10, NULL), 0);
    assert_string_equal(buf, "from afar");
    assert_int_equal(rig_unmap(&r, h, 0), 0);
    assert_int_equal(rig_free(&r, h), 0);
    assert_int_equal(rig_available(&r, 0), all);
    assert_int_equal(fake_get_usage(r.fake, &u), 0);
    assert_int_equal(u.objects, 0);
    close(pair[0]);
    close(pair[1]);
    rig_end(&r);
}

static void test_a_full_descriptor_table_is_emfile(void **state)
{
    int fds[512], n = 0;
    uint64_t h;
    struct rig r;

    rig_start(&r, "mi300x:1", "6.12", 0);
    h = rig_must_alloc(&r, 0, 0, MIB, VRAM_RW);
    while (n < 512 && (fds[n] = open("/dev/null", O_RDONLY)) >= 0 && fds[n] < 500)
        n++;
    /* Below a limit of our own, as the machine's may be high. */
    struct rlimit old, low;

    getrlimit(RLIMIT_NOFILE, &old);
    low = old;
    low.rlim_cur = (rlim_t)fds[n - 1] + 1;
    close(fds[n]);
    setrlimit(RLIMIT_NOFILE, &low);
    assert_int_equal(rig_export(&r, h), -EMFILE);
    assert_int_equal(rig_free(&r, h), 0);
    setrlimit(RLIMIT_NOFILE, &old);
    while (n > 0)
        close(fds[--n]);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_dmabuf_has_the_rounded_size_and_the_handles_mode),
        cmocka_unit_test(test_export_without_cloexec_survives_exec),
        cmocka_unit_test(test_import_is_the_same_memory_at_its_own_address),
        cmocka_unit_test(test_import_checks_in_the_personalitys_order),
        cmocka_unit_test(test_foreign_devices_import_from_6_12_on),
        cmocka_unit_test(test_dmabuf_info),
        cmocka_unit_test(test_dmabuf_info_tells_public_once_the_cpu_has_a_view),
        cmocka_unit_test(test_memory_is_charged_until_the_last_reference),
        cmocka_unit_test(test_a_buffer_outlives_its_exporter_and_is_charged_exactly),
        cmocka_unit_test(test_a_full_descriptor_table_is_emfile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
