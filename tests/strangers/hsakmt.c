/* SPDX-License-Identifier: MIT */
/*
 * Debian's libhsakmt, AMD's own user-space driver, which knows nothing of us: on the fake, or on
 * the driver in the guest. Here: opening it and what it says of the machine.
 */
#include "hsakmt_tests.h"

#include <stdio.h>
#include <string.h>

struct fake_profile *profile;
HsaSystemProperties system_properties;

HSAKMT_STATUS shown(const char *step, HSAKMT_STATUS status)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", (int)status);
    witness_row(step, status == HSAKMT_STATUS_SUCCESS ? "0" : text, "-");
    return status;
}

static int start(void **state)
{
    witness_begin("libhsakmt", *state);
    profile = witness_world();
    DONE("open", hsaKmtOpenKFD());
    DONE("system properties", hsaKmtAcquireSystemProperties(&system_properties));
    return 0;
}

static int stop(void **state)
{
    assert_int_equal(hsaKmtReleaseSystemProperties(), HSAKMT_STATUS_SUCCESS);
    assert_int_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS);
    fake_profile_free(profile);
    return 0;
}

uint32_t node_of(uint32_t gpu)
{
    return fake_profile_gpu_node(profile, gpu);
}

static void test_version_is_the_personalitys(void **state)
{
    HsaVersionInfo v;

    DONE("version", hsaKmtGetVersion(&v));
    witness_row("version", "0", "%u.%u", v.KernelInterfaceMajorVersion,
                v.KernelInterfaceMinorVersion);
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
        witness_row("node", "0", "%s", (const char *)np.AMDName);
        assert_int_equal(np.Capability.Value, gpu->capability &
                                                  profile->kernel.sysfs_capability_mask &
                                                  ~(profile->kernel.svm ? 0 : 0x08000000u));
    }
}

static void bank_rows(uint32_t node, uint32_t n, const HsaMemoryProperties *banks)
{
    for (uint32_t i = 0; i < n; i++) {
        char step[48];

        snprintf(step, sizeof(step), "node %u bank %u", node, i);
        char base[32];

        /* The last is where the library itself has put a page. */
        snprintf(base, sizeof(base), "0x%llx", (unsigned long long)banks[i].VirtualBaseAddress);
        witness_row(step, "0", "heap=%d size=0x%llx flags=0x%x width=%u clock=%u base=%s",
                    (int)banks[i].HeapType, (unsigned long long)banks[i].SizeInBytes,
                    banks[i].Flags.MemoryProperty, banks[i].Width, banks[i].MemoryClockMax,
                    banks[i].HeapType == HSA_HEAPTYPE_MMIO_REMAP && banks[i].VirtualBaseAddress
                        ? "set"
                        : base);
    }
}

static void link_rows(uint32_t node, uint32_t n, const HsaIoLinkProperties *links)
{
    for (uint32_t i = 0; i < n; i++) {
        char step[48];

        snprintf(step, sizeof(step), "node %u link %u", node, i);
        witness_row(step, "0", "to=%u type=%d weight=%u latency=%u..%u bandwidth=%u..%u flags=0x%x",
                    links[i].NodeTo, (int)links[i].IoLinkType, links[i].Weight,
                    links[i].MinimumLatency, links[i].MaximumLatency, links[i].MinimumBandwidth,
                    links[i].MaximumBandwidth, links[i].Flags.LinkProperty);
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
        bank_rows(node_of(g), np.NumMemoryBanks, banks);
        for (uint32_t i = 0; i < np.NumMemoryBanks; i++) {
            if (banks[i].HeapType == HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC ||
                banks[i].HeapType == HSA_HEAPTYPE_FRAME_BUFFER_PRIVATE) {
                assert_int_equal(banks[i].HeapType == HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC,
                                 fake_gpu_large_bar(&profile->gpus[g]));
                vram += banks[i].SizeInBytes;
                assert_int_equal(banks[i].Width, profile->gpus[g].mem_width);
                assert_int_equal(banks[i].MemoryClockMax, profile->gpus[g].mem_clk_max);
            }
        }
        assert_true(vram == profile->gpus[g].vram);
        assert_int_equal(hsaKmtGetNodeIoLinkProperties(node_of(g), np.NumIOLinks, links),
                         HSAKMT_STATUS_SUCCESS);
        link_rows(node_of(g), np.NumIOLinks, links);
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

/* The first kind of cache in the profile that looks like this one; the count when there is none. */
static uint32_t kind_of(const struct fake_gpu *gpu, uint32_t level, uint32_t size, uint32_t line,
                        uint32_t type)
{
    uint32_t k = 0;

    while (k < gpu->cache_count &&
           (gpu->caches[k].level != level || gpu->caches[k].size_kib != size ||
            (gpu->caches[k].type & 3) != (type & 3) ||
            (profile->kernel.cache_lines && gpu->caches[k].line_size != line)))
        k++;
    return k;
}

/* Each cache is one of the profile's kinds, and no kind is missing. */
static void test_caches_are_the_profiles(void **state)
{
    for (uint32_t g = 0; g < profile->gpu_count; g++) {
        const struct fake_gpu *gpu = &profile->gpus[g];
        uint32_t found[FAKE_MAX_CACHES + 1] = {0};
        HsaCacheProperties *c;
        HsaNodeProperties np;

        assert_int_equal(hsaKmtGetNodeProperties(node_of(g), &np), HSAKMT_STATUS_SUCCESS);
        c = calloc(np.NumCaches + 1, sizeof(*c));
        assert_non_null(c);
        DONE("caches", hsaKmtGetNodeCacheProperties(node_of(g), np.FComputeIdLo, np.NumCaches, c));
        for (uint32_t i = 0; i < np.NumCaches; i++)
            found[kind_of(gpu, c[i].CacheLevel, c[i].CacheSize, c[i].CacheLineSize,
                          c[i].CacheType.Value)]++;
        assert_int_equal(found[gpu->cache_count], 0);
        for (uint32_t k = 0; k < gpu->cache_count; k++) {
            const struct fake_cache *want = &gpu->caches[k];
            char step[48];

            if (kind_of(gpu, want->level, want->size_kib, want->line_size, want->type) < k)
                continue;
            assert_int_not_equal(found[k], 0);
            snprintf(step, sizeof(step), "node %u level %u type %u", node_of(g), want->level,
                     want->type);
            witness_row(step, "0", "%u of %u KiB", found[k], want->size_kib);
        }
        free(c);
    }
}

static void test_open_is_counted_and_closed_to_the_end(void **state)
{
    HsaSystemProperties again;
    HsaVersionInfo v;

    assert_int_equal(shown("open again", hsaKmtOpenKFD()), HSAKMT_STATUS_KERNEL_ALREADY_OPENED);
    DONE("properties again", hsaKmtAcquireSystemProperties(&again));
    assert_int_equal(again.NumNodes, system_properties.NumNodes);
    DONE("close the second", hsaKmtCloseKFD());
    DONE("still open", hsaKmtGetVersion(&v));
    DONE("release properties", hsaKmtReleaseSystemProperties());
    DONE("close the first", hsaKmtCloseKFD());
    assert_int_equal(shown("closed", hsaKmtCloseKFD()), HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED);
    DONE("open after that", hsaKmtOpenKFD());
    DONE("properties after that", hsaKmtAcquireSystemProperties(&system_properties));
}

static void test_clocks_run(void **state)
{
    HsaClockCounters a, b;

    assert_int_equal(hsaKmtGetClockCounters(node_of(0), &a), HSAKMT_STATUS_SUCCESS);
    assert_int_equal(hsaKmtGetClockCounters(node_of(0), &b), HSAKMT_STATUS_SUCCESS);
    assert_true(b.GPUClockCounter >= a.GPUClockCounter);
    /* The register of a card of plain memory stands still. */
    assert_true(a.GPUClockCounter != 0 || witness_on_driver());
    assert_true(b.SystemClockCounter > a.SystemClockCounter);
}

#define TEST(name) cmocka_unit_test_prestate_setup_teardown(name, start, stop, (void *)#name)

int main(void)
{
    /* Each opens the library anew. */
    const struct CMUnitTest tests[] = {
        TEST(test_version_is_the_personalitys),
        TEST(test_cpu_nodes_are_the_profiles),
        TEST(test_gpu_nodes_are_the_profiles_property_by_property),
        TEST(test_gpu_banks_and_links_are_the_profiles),
        TEST(test_caches_are_the_profiles),
        TEST(test_open_is_counted_and_closed_to_the_end),
        TEST(test_memory_is_mapped_on_one_and_on_all_nodes),
        TEST(test_pointers_are_described),
        TEST(test_user_memory_is_registered_and_mapped),
        TEST(test_vram_goes_to_peers_the_kernel_allows),
        TEST(test_memory_is_shared_between_processes_nowhere_upstream),
        TEST(test_dma_bufs_of_the_render_node_are_imported_and_mapped),
        TEST(test_dma_bufs_are_imported_by_another_process),
        TEST(test_events_are_set_waited_for_and_reset),
        TEST(test_an_event_wakes_the_thread_that_waits),
        TEST(test_sdma_queues_are_made_and_destroyed),
        TEST(test_compute_queues_are_made_where_the_save_area_fits),
        TEST(test_small_requests_are_answered),
        TEST(test_clocks_run),
    };

    return witness_run(tests, sizeof(tests) / sizeof(tests[0]));
}
