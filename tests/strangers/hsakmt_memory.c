/* SPDX-License-Identifier: MIT */
/* libhsakmt's memory: allocate, map, register, share, import. */
#include "hsakmt_tests.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <amdgpu_drm.h>
#include <drm.h>

static HsaMemFlags memory_flags(bool host, bool exec)
{
    HsaMemFlags flags = {0};

    flags.ui32.NonPaged = 1;
    flags.ui32.HostAccess = host;
    flags.ui32.ExecuteAccess = exec;
    flags.ui32.CoarseGrain = 1;
    flags.ui32.PageSize = HSA_PAGE_SIZE_4KB;
    return flags;
}

void *alloc(uint32_t node, uint64_t size, bool host, bool exec)
{
    void *p = NULL;

    DONE("alloc", hsaKmtAllocMemory(node, size, memory_flags(host, exec), &p));
    return p;
}

void map_on(void *p, uint64_t size, uint32_t n, uint32_t *nodes)
{
    HsaMemMapFlags flags = {0};
    HSAuint64 va = 0;

    DONE("map", hsaKmtMapMemoryToGPUNodes(p, size, &va, flags, n, nodes));
    assert_true(va == 0 || va == (uintptr_t)p);
}

void release(void *p, uint64_t size)
{
    DONE("unmap", hsaKmtUnmapMemoryToGPU(p));
    DONE("free", hsaKmtFreeMemory(p, size));
}

static uint32_t all_nodes(uint32_t *all)
{
    for (uint32_t g = 0; g < profile->gpu_count; g++)
        all[g] = node_of(g);
    return profile->gpu_count;
}

void test_memory_is_mapped_on_one_and_on_all_nodes(void **state)
{
    uint32_t all[FAKE_MAX_GPUS], n = all_nodes(all);
    unsigned char *p;

    /* System memory of a node of its own, for every GPU. */
    p = alloc(0, SIZE, true, false);
    memset(p, 0x33, SIZE);
    map_on(p, SIZE, n, all);
    release(p, SIZE);
    for (uint32_t g = 0; g < n; g++) {
        bool host = fake_gpu_large_bar(&profile->gpus[g]);

        p = alloc(all[g], SIZE, host, false);
        map_on(p, SIZE, 1, &all[g]);
        if (host) {
            memset(p, (int)g + 1, SIZE);
            assert_int_equal(p[SIZE - 1], g + 1);
        }
        release(p, SIZE);
    }
}

/* What the library says of an address, in numbers that do not depend on where it lies. */
static HsaPointerInfo describe(const char *step, void *p)
{
    HsaPointerInfo info;
    HSAKMT_STATUS status;

    memset(&info, 0, sizeof(info));
    status = shown(step, hsaKmtQueryPointerInfo(p, &info));
    if (status == HSAKMT_STATUS_SUCCESS)
        witness_row(step, "0", "type=%d node=%u size=0x%llx registered=%u mapped=%u",
                    (int)info.Type, info.Node, (unsigned long long)info.SizeInBytes,
                    info.NRegisteredNodes, info.NMappedNodes);
    return info;
}

void test_pointers_are_described(void **state)
{
    uint32_t all[FAKE_MAX_GPUS], n = all_nodes(all);
    unsigned char *p = alloc(0, SIZE, true, false);
    HsaPointerInfo info = describe("not mapped", p);
    int mine = 0;

    assert_int_equal(info.Type, HSA_POINTER_ALLOCATED);
    assert_ptr_equal(info.CPUAddress, p);
    assert_int_equal(info.GPUAddress, (uintptr_t)p);
    assert_int_equal(info.SizeInBytes, SIZE);
    assert_int_equal(info.NMappedNodes, 0);
    map_on(p, SIZE, 1, all);
    info = describe("mapped on one", p + SIZE - 1);
    assert_int_equal(info.NMappedNodes, 1);
    assert_int_equal(info.MappedNodes[0], all[0]);
    map_on(p, SIZE, n, all);
    info = describe("mapped on all", p);
    assert_int_equal(info.NMappedNodes, n);
    for (uint32_t g = 0; g < n; g++)
        assert_int_equal(info.MappedNodes[g], all[g]);
    DONE("name it", hsaKmtSetMemoryUserData(p, &mine));
    assert_ptr_equal(describe("named", p).UserData, &mine);
    DONE("unmap", hsaKmtUnmapMemoryToGPU(p));
    assert_int_equal(describe("unmapped", p).NMappedNodes, 0);
    DONE("free", hsaKmtFreeMemory(p, SIZE));
    assert_int_not_equal(describe("freed", p).Type, HSA_POINTER_ALLOCATED);
    assert_int_equal(describe("not the library's", &mine).Type, HSA_POINTER_UNKNOWN);
}

void test_user_memory_is_registered_and_mapped(void **state)
{
    uint32_t all[FAKE_MAX_GPUS], n = all_nodes(all);
    HsaPointerInfo info;
    HsaMemMapFlags flags = {0};
    HSAuint64 va;
    unsigned char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(p != MAP_FAILED);
    memset(p, 7, SIZE);
    DONE("register", hsaKmtRegisterMemoryToNodes(p, SIZE, n, all));
    DONE("map", hsaKmtMapMemoryToGPUNodes(p, SIZE, &va, flags, n, all));
    info = describe("registered", p);
    assert_int_equal(info.Type, HSA_POINTER_REGISTERED_USER);
    assert_int_equal(info.NMappedNodes, n);
    assert_ptr_equal(info.CPUAddress, p);
    DONE("unmap", hsaKmtUnmapMemoryToGPU(p));
    DONE("deregister", hsaKmtDeregisterMemory(p));
    shown("deregister again", hsaKmtDeregisterMemory(p));
    munmap(p, SIZE);
}

void test_vram_goes_to_peers_the_kernel_allows(void **state)
{
    if (profile->gpu_count < 2)
        skip();
    for (uint32_t g = 1; g < profile->gpu_count; g++) {
        uint32_t nodes[2] = {node_of(0), node_of(g)};
        HsaMemMapFlags flags = {0};
        HSAuint64 va;
        void *p = alloc(node_of(0), SIZE, false, false);
        HSAKMT_STATUS got =
            shown("map on a peer", hsaKmtMapMemoryToGPUNodes(p, SIZE, &va, flags, 2, nodes));

        if (fake_profile_peer(profile, g, 0, true)) {
            assert_int_equal(got, HSAKMT_STATUS_SUCCESS);
            release(p, SIZE);
        } else {
            /* The library does not undo the first GPU's part, so that the kernel keeps the memory.
             */
            assert_int_not_equal(got, HSAKMT_STATUS_SUCCESS);
            shown("unmap", hsaKmtUnmapMemoryToGPU(p));
            assert_int_not_equal(shown("free", hsaKmtFreeMemory(p, SIZE)), HSAKMT_STATUS_SUCCESS);
        }
    }
}

/* The requests exist in AMD's own driver only. Without a handle from there the library crashes when
 * it is to take one. */
void test_memory_is_shared_between_processes_nowhere_upstream(void **state)
{
    HsaSharedMemoryHandle handle = {0};
    void *p = alloc(node_of(0), SIZE, false, false);
    HSAuint64 size;
    char from[16] = "elsewhere", to[16] = "";
    HsaMemoryRange local = {to, sizeof(to)}, remote = {from, sizeof(from)};

    assert_int_not_equal(shown("share", hsaKmtShareMemory(p, SIZE, &handle)),
                         HSAKMT_STATUS_SUCCESS);
    assert_int_not_equal(
        shown("copy between processes", hsaKmtProcessVMRead(1, &local, 1, &remote, 1, &size)),
        HSAKMT_STATUS_SUCCESS);
    DONE("free", hsaKmtFreeMemory(p, SIZE));
}

/* A buffer of the first card's render node as a descriptor. */
static int render_buffer(uint64_t domain)
{
    union drm_amdgpu_gem_create create = {
        .in = {.bo_size = SIZE, .alignment = 4096, .domains = domain}};
    struct drm_prime_handle prime = {.flags = DRM_RDWR};
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/dev/dri/renderD%u", profile->gpus[0].render_minor);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ioctl(fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &create), 0);
    prime.handle = create.out.handle;
    assert_int_equal(ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime), 0);
    close(fd); /* the descriptor keeps the buffer */
    return prime.fd;
}

void test_dma_bufs_of_the_render_node_are_imported_and_mapped(void **state)
{
    static const uint64_t domains[] = {AMDGPU_GEM_DOMAIN_VRAM, AMDGPU_GEM_DOMAIN_GTT};
    uint32_t node = node_of(0);

    for (size_t d = 0; d < 2; d++) {
        int fd = render_buffer(domains[d]);
        HsaGraphicsResourceInfo info;

        DONE("import", hsaKmtRegisterGraphicsHandleToNodes((uint64_t)fd, &info, 1, &node));
        assert_int_equal(info.SizeInBytes, SIZE);
        witness_row("import", "0", "metadata=%u", info.MetadataSizeInBytes);
        map_on(info.MemoryAddress, SIZE, 1, &node);
        assert_int_equal(describe("imported", info.MemoryAddress).Type,
                         HSA_POINTER_REGISTERED_GRAPHICS);
        DONE("unmap", hsaKmtUnmapMemoryToGPU(info.MemoryAddress));
        DONE("deregister", hsaKmtDeregisterMemory(info.MemoryAddress));
        close(fd);
    }
    witness_row("import of no descriptor", "0", "%s",
                hsaKmtRegisterGraphicsHandleToNodes(9999, &(HsaGraphicsResourceInfo){0}, 1,
                                                    &node) == HSAKMT_STATUS_SUCCESS
                    ? "taken"
                    : "refused");
}

/* Statuses of the child that uses the library on its own; 0 when all succeed. */
static int import_as_another(int fd)
{
    uint32_t node = node_of(0);
    HsaGraphicsResourceInfo info;
    HsaSystemProperties properties;
    HsaMemMapFlags flags = {0};
    HSAuint64 va;

    return shown("child: open", hsaKmtOpenKFD()) ||
           shown("child: properties", hsaKmtAcquireSystemProperties(&properties)) ||
           shown("child: import",
                 hsaKmtRegisterGraphicsHandleToNodes((uint64_t)fd, &info, 1, &node)) ||
           info.SizeInBytes != SIZE ||
           shown("child: map",
                 hsaKmtMapMemoryToGPUNodes(info.MemoryAddress, SIZE, &va, flags, 1, &node)) ||
           shown("child: unmap", hsaKmtUnmapMemoryToGPU(info.MemoryAddress)) ||
           shown("child: deregister", hsaKmtDeregisterMemory(info.MemoryAddress)) ||
           shown("child: release", hsaKmtReleaseSystemProperties()) ||
           shown("child: close", hsaKmtCloseKFD());
}

void test_dma_bufs_are_imported_by_another_process(void **state)
{
    int fd = render_buffer(AMDGPU_GEM_DOMAIN_VRAM), status;
    HsaVersionInfo v;
    pid_t pid;

    if (getenv("STRANGERS_NO_FORK") != NULL) {
        close(fd);
        print_message("skipped: a child of libhsakmt's takes 16 GiB under valgrind\n");
        skip();
    }
    fflush(stdout);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(import_as_another(fd));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    DONE("the parent's library lives on", hsaKmtGetVersion(&v));
    close(fd);
}
