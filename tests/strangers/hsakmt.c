/* SPDX-License-Identifier: MIT */
/* Debian's libhsakmt on the fake: AMD's own user-space driver, which knows nothing of us. */
#include "world.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <amdgpu_drm.h>
#include <drm.h>
#include <hsakmt.h>

#define SIZE (4ull << 20)
#define RING_SIZE 65536ull

static struct fake_profile *profile;
static HsaSystemProperties system_properties;

static int start(void **state)
{
    profile = world();
    assert_int_equal(hsaKmtOpenKFD(), HSAKMT_STATUS_SUCCESS);
    assert_int_equal(hsaKmtAcquireSystemProperties(&system_properties), HSAKMT_STATUS_SUCCESS);
    return 0;
}

static int stop(void **state)
{
    assert_int_equal(hsaKmtReleaseSystemProperties(), HSAKMT_STATUS_SUCCESS);
    assert_int_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS);
    fake_profile_free(profile);
    return 0;
}

static uint32_t node_of(uint32_t gpu)
{
    return fake_profile_gpu_node(profile, gpu);
}

static void test_version_is_the_personalitys(void **state)
{
    HsaVersionInfo v;

    assert_int_equal(hsaKmtGetVersion(&v), HSAKMT_STATUS_SUCCESS);
    assert_int_equal(v.KernelInterfaceMajorVersion, 1);
    assert_int_equal(v.KernelInterfaceMinorVersion, profile->kernel.kfd_minor);
}

static void test_cpu_nodes_are_the_profiles(void **state)
{
    assert_int_equal(system_properties.NumNodes, fake_profile_node_count(profile));
    for (uint32_t n = 0; n < profile->cpu_count; n++) {
        HsaNodeProperties np;
        HsaMemoryProperties mem;

        assert_int_equal(hsaKmtGetNodeProperties(n, &np), HSAKMT_STATUS_SUCCESS);
        assert_int_equal(np.NumCPUCores, profile->cpus[n].cores);
        assert_int_equal(np.CComputeIdLo, profile->cpus[n].apic_base);
        assert_int_equal(np.NumFComputeCores, 0);
        assert_int_equal(hsaKmtGetNodeMemoryProperties(n, 1, &mem), HSAKMT_STATUS_SUCCESS);
        assert_int_equal(mem.HeapType, HSA_HEAPTYPE_SYSTEM);
        assert_true(mem.SizeInBytes == profile->cpus[n].ram);
    }
}

static void test_gpu_nodes_are_the_profiles_property_by_property(void **state)
{
    for (uint32_t g = 0; g < profile->gpu_count; g++) {
        const struct fake_gpu *gpu = &profile->gpus[g];
        HsaNodeProperties np;

        assert_int_equal(hsaKmtGetNodeProperties(node_of(g), &np), HSAKMT_STATUS_SUCCESS);
        assert_int_equal(np.NumCPUCores, 0);
        assert_int_equal(np.NumFComputeCores, gpu->simd_count);
        assert_int_equal(np.FComputeIdLo, gpu->simd_id_base);
        assert_int_equal(np.MaxWavesPerSIMD, gpu->max_waves_per_simd);
        assert_int_equal(np.LDSSizeInKB, gpu->lds_size_in_kb);
        assert_int_equal(np.GDSSizeInKB, gpu->gds_size_in_kb);
        assert_int_equal(np.WaveFrontSize, gpu->wave_front_size);
        assert_int_equal(np.NumShaderBanks, gpu->array_count);
        assert_int_equal(np.NumArrays, gpu->simd_arrays_per_engine);
        assert_int_equal(np.NumCUPerArray, gpu->cu_per_simd_array);
        assert_int_equal(np.NumSIMDPerCU, gpu->simd_per_cu);
        assert_int_equal(np.MaxSlotsScratchCU, gpu->max_slots_scratch_cu);
        assert_int_equal(np.VendorId, gpu->vendor_id);
        assert_int_equal(np.DeviceId, gpu->device_id);
        assert_int_equal(np.LocationId,
                         gpu->location_id | (gpu->partitions > 1 ? gpu->partition : 0));
        assert_int_equal(np.Domain, gpu->domain);
        assert_true(np.HiveID == gpu->hive_id);
        assert_true(np.UniqueID == gpu->unique_id);
        assert_int_equal(np.NumSdmaEngines, gpu->num_sdma_engines);
        assert_int_equal(np.NumSdmaXgmiEngines, gpu->num_sdma_xgmi_engines);
        assert_int_equal(np.NumSdmaQueuesPerEngine, gpu->num_sdma_queues_per_engine);
        assert_int_equal(np.NumCpQueues, gpu->num_cp_queues);
        assert_int_equal(np.NumGws, gpu->num_gws);
        assert_int_equal(np.MaxEngineClockMhzFCompute, gpu->max_engine_clk_fcompute);
        assert_int_equal(np.EngineId.ui32.Major, gpu->gfx_target_version / 10000);
        assert_int_equal(np.EngineId.ui32.Minor, gpu->gfx_target_version / 100 % 100);
        assert_int_equal(np.EngineId.ui32.Stepping, gpu->gfx_target_version % 100);
        assert_int_equal(np.Capability.Value, gpu->capability &
                                                  profile->kernel.sysfs_capability_mask &
                                                  ~(profile->kernel.svm ? 0 : 0x08000000u));
    }
}

static void test_gpu_banks_and_links_are_the_profiles(void **state)
{
    for (uint32_t g = 0; g < profile->gpu_count; g++) {
        HsaMemoryProperties banks[8];
        HsaIoLinkProperties links[256];
        HsaNodeProperties np;
        uint64_t vram = 0;
        uint32_t direct = 0;

        assert_int_equal(hsaKmtGetNodeProperties(node_of(g), &np), HSAKMT_STATUS_SUCCESS);
        assert_true(np.NumMemoryBanks <= 8 && np.NumIOLinks <= 256);
        assert_int_equal(hsaKmtGetNodeMemoryProperties(node_of(g), np.NumMemoryBanks, banks),
                         HSAKMT_STATUS_SUCCESS);
        for (uint32_t i = 0; i < np.NumMemoryBanks; i++) {
            if (banks[i].HeapType == HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC ||
                banks[i].HeapType == HSA_HEAPTYPE_FRAME_BUFFER_PRIVATE) {
                assert_int_equal(banks[i].HeapType == HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC,
                                 fake_gpu_large_bar(&profile->gpus[g]));
                vram += banks[i].SizeInBytes;
            }
        }
        assert_true(vram == profile->gpus[g].vram);
        assert_int_equal(hsaKmtGetNodeIoLinkProperties(node_of(g), np.NumIOLinks, links),
                         HSAKMT_STATUS_SUCCESS);
        for (uint32_t i = 0; i < np.NumIOLinks; i++) {
            const struct fake_link *l =
                fake_profile_link(profile, node_of(g), links[i].NodeTo, false);

            /* libhsakmt adds indirect links of its own to those of the kernel. */
            if (l == NULL)
                continue;
            direct++;
            assert_int_equal(links[i].NodeFrom, node_of(g));
            assert_int_equal(links[i].IoLinkType, l->type);
            assert_int_equal(links[i].Weight, l->weight);
            assert_int_equal(links[i].MaximumBandwidth, l->max_bandwidth);
        }
        assert_true(direct > 0);
    }
}

static void *alloc(uint32_t node, uint64_t size, bool host, bool exec)
{
    HsaMemFlags flags = {0};
    void *p = NULL;

    flags.ui32.NonPaged = 1;
    flags.ui32.HostAccess = host;
    flags.ui32.ExecuteAccess = exec;
    flags.ui32.CoarseGrain = 1;
    flags.ui32.PageSize = HSA_PAGE_SIZE_4KB;
    assert_int_equal(hsaKmtAllocMemory(node, size, flags, &p), HSAKMT_STATUS_SUCCESS);
    return p;
}

static void map_on(void *p, uint64_t size, uint32_t n, uint32_t *nodes)
{
    HsaMemMapFlags flags = {0};
    HSAuint64 va = 0;

    assert_int_equal(hsaKmtMapMemoryToGPUNodes(p, size, &va, flags, n, nodes),
                     HSAKMT_STATUS_SUCCESS);
    assert_true(va == 0 || va == (uintptr_t)p);
}

static void release(void *p, uint64_t size)
{
    assert_int_equal(hsaKmtUnmapMemoryToGPU(p), HSAKMT_STATUS_SUCCESS);
    assert_int_equal(hsaKmtFreeMemory(p, size), HSAKMT_STATUS_SUCCESS);
}

static void test_memory_is_mapped_on_one_and_on_all_nodes(void **state)
{
    uint32_t all[FAKE_MAX_GPUS];
    unsigned char *p;

    for (uint32_t g = 0; g < profile->gpu_count; g++)
        all[g] = node_of(g);
    /* System memory of a node of its own, for every GPU. */
    p = alloc(0, SIZE, true, false);
    memset(p, 0x33, SIZE);
    map_on(p, SIZE, profile->gpu_count, all);
    release(p, SIZE);
    for (uint32_t g = 0; g < profile->gpu_count; g++) {
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

static void test_vram_goes_to_peers_the_kernel_allows(void **state)
{
    if (profile->gpu_count < 2)
        skip();
    for (uint32_t g = 1; g < profile->gpu_count; g++) {
        uint32_t nodes[2] = {node_of(0), node_of(g)};
        HsaMemMapFlags flags = {0};
        HSAuint64 va;
        void *p = alloc(node_of(0), SIZE, false, false);
        HSAKMT_STATUS got = hsaKmtMapMemoryToGPUNodes(p, SIZE, &va, flags, 2, nodes);

        if (fake_profile_peer(profile, g, 0, true)) {
            assert_int_equal(got, HSAKMT_STATUS_SUCCESS);
            release(p, SIZE);
        } else {
            /* The library does not undo the first GPU's part, so that the kernel keeps the memory.
             */
            assert_int_not_equal(got, HSAKMT_STATUS_SUCCESS);
            hsaKmtUnmapMemoryToGPU(p);
            assert_int_not_equal(hsaKmtFreeMemory(p, SIZE), HSAKMT_STATUS_SUCCESS);
        }
    }
}

static void test_memory_is_shared_between_processes_nowhere_upstream(void **state)
{
    HsaSharedMemoryHandle handle;
    void *p = alloc(node_of(0), SIZE, false, false);

    /* The requests exist in AMD's own driver only. */
    assert_int_not_equal(hsaKmtShareMemory(p, SIZE, &handle), HSAKMT_STATUS_SUCCESS);
    assert_int_equal(hsaKmtFreeMemory(p, SIZE), HSAKMT_STATUS_SUCCESS);
}

static void test_dma_bufs_of_the_render_node_are_imported_and_mapped(void **state)
{
    uint32_t node = node_of(0);
    union drm_amdgpu_gem_create create = {
        .in = {.bo_size = SIZE, .alignment = 4096, .domains = AMDGPU_GEM_DOMAIN_VRAM}};
    struct drm_prime_handle prime = {.flags = DRM_RDWR};
    HsaGraphicsResourceInfo info;
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/dev/dri/renderD%u", profile->gpus[0].render_minor);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ioctl(fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &create), 0);
    prime.handle = create.out.handle;
    assert_int_equal(ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime), 0);
    assert_int_equal(hsaKmtRegisterGraphicsHandleToNodes((uint64_t)prime.fd, &info, 1, &node),
                     HSAKMT_STATUS_SUCCESS);
    assert_int_equal(info.SizeInBytes, SIZE);
    map_on(info.MemoryAddress, SIZE, 1, &node);
    assert_int_equal(hsaKmtUnmapMemoryToGPU(info.MemoryAddress), HSAKMT_STATUS_SUCCESS);
    assert_int_equal(hsaKmtDeregisterMemory(info.MemoryAddress), HSAKMT_STATUS_SUCCESS);
    close(prime.fd);
    close(fd);
}

static void test_events_are_set_waited_for_and_reset(void **state)
{
    HsaEventDescriptor d = {.EventType = HSA_EVENTTYPE_SIGNAL};
    HsaEvent *events[3];

    for (int i = 0; i < 3; i++)
        assert_int_equal(hsaKmtCreateEvent(&d, true, false, &events[i]), HSAKMT_STATUS_SUCCESS);
    assert_int_equal(hsaKmtWaitOnEvent(events[0], 1), HSAKMT_STATUS_WAIT_TIMEOUT);
    assert_int_equal(hsaKmtSetEvent(events[1]), HSAKMT_STATUS_SUCCESS);
    assert_int_equal(hsaKmtWaitOnEvent(events[1], 1000), HSAKMT_STATUS_SUCCESS);
    assert_int_equal(hsaKmtWaitOnMultipleEvents(events, 3, false, 1000), HSAKMT_STATUS_SUCCESS);
    assert_int_equal(hsaKmtWaitOnMultipleEvents(events, 3, true, 1), HSAKMT_STATUS_WAIT_TIMEOUT);
    assert_int_equal(hsaKmtResetEvent(events[1]), HSAKMT_STATUS_SUCCESS);
    assert_int_equal(hsaKmtWaitOnEvent(events[1], 1), HSAKMT_STATUS_WAIT_TIMEOUT);
    for (int i = 0; i < 3; i++)
        assert_int_equal(hsaKmtDestroyEvent(events[i]), HSAKMT_STATUS_SUCCESS);
}

/* SDMA queues need no save area, which this old library sizes in its own way. */
static void test_queues_are_made_and_destroyed(void **state)
{
    HsaQueueResource queue = {0};
    uint32_t node = node_of(0);
    void *ring;

    ring = alloc(0, RING_SIZE, true, true);
    map_on(ring, RING_SIZE, 1, &node);
    assert_int_equal(hsaKmtCreateQueue(node, HSA_QUEUE_SDMA, 100, HSA_QUEUE_PRIORITY_NORMAL, ring,
                                       RING_SIZE, NULL, &queue),
                     HSAKMT_STATUS_SUCCESS);
    *(volatile uint32_t *)queue.Queue_DoorBell = 0;
    assert_int_equal(hsaKmtDestroyQueue(queue.QueueId), HSAKMT_STATUS_SUCCESS);
    release(ring, RING_SIZE);
}

static void test_clocks_run(void **state)
{
    HsaClockCounters a, b;

    assert_int_equal(hsaKmtGetClockCounters(node_of(0), &a), HSAKMT_STATUS_SUCCESS);
    assert_int_equal(hsaKmtGetClockCounters(node_of(0), &b), HSAKMT_STATUS_SUCCESS);
    assert_true(b.GPUClockCounter >= a.GPUClockCounter && a.GPUClockCounter != 0);
    assert_true(b.SystemClockCounter > a.SystemClockCounter);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    /* Each opens the library anew. */
    const struct CMUnitTest tests[] = {
        TEST(test_version_is_the_personalitys),
        TEST(test_cpu_nodes_are_the_profiles),
        TEST(test_gpu_nodes_are_the_profiles_property_by_property),
        TEST(test_gpu_banks_and_links_are_the_profiles),
        TEST(test_memory_is_mapped_on_one_and_on_all_nodes),
        TEST(test_vram_goes_to_peers_the_kernel_allows),
        TEST(test_memory_is_shared_between_processes_nowhere_upstream),
        TEST(test_dma_bufs_of_the_render_node_are_imported_and_mapped),
        TEST(test_events_are_set_waited_for_and_reset),
        TEST(test_queues_are_made_and_destroyed),
        TEST(test_clocks_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
