/* SPDX-License-Identifier: MIT */
/* Properties and attributes, compared with what the machines are made of. */
#include "fixture.h"

static const struct expected {
    const char *machine, *kernel, *arch, *name;
    int units, physical_units, warp, threads, integrated, large_bar, dma_buf, xccs;
    size_t memory_mib;
} machines[] = {
    {"mi300x", "6.12", "gfx942", "AMD Instinct MI300X", 304, 304, 64, 2048, 0, 1, 1, 8, 196592},
    {"mi210", "6.12", "gfx90a", "AMD Instinct MI210", 104, 104, 64, 2048, 0, 1, 1, 1, 65520},
    {"navi31", "6.1", "gfx1100", "AMD Radeon RX 7900 XTX", 48, 96, 32, 2048, 0, 1, 0, 1, 24560},
    {"navi31-smallbar", "6.12", "gfx1100", "AMD Radeon RX 7900 XTX", 48, 96, 32, 2048, 0, 0, 1, 1,
     24560},
    {"apu", "6.12", "gfx1103", "AMD Radeon 780M", 6, 12, 32, 2048, 1, 1, 1, 1, 16384},
};

static int attribute(hipDeviceAttribute_t id)
{
    int value = -77;

    HIP_OK(hipDeviceGetAttribute(&value, id, 0));
    return value;
}

static void test_properties_are_the_machines(void **state)
{
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        const struct expected *want = &machines[i];
        struct fixture f;
        hipDeviceProp_t prop;

        fixture_open(&f, want->machine, want->kernel);
        memset(&prop, 0xff, sizeof(prop));
        HIP_OK(hipGetDeviceProperties(&prop, 0));
        assert_string_equal(prop.gcnArchName, want->arch);
        assert_string_equal(prop.name, want->name);
        assert_int_equal(prop.multiProcessorCount, want->units);
        assert_int_equal(prop.warpSize, want->warp);
        assert_int_equal(prop.maxThreadsPerMultiProcessor, want->threads);
        assert_int_equal(prop.integrated, want->integrated);
        assert_int_equal(prop.isLargeBar, want->large_bar);
        assert_int_equal(prop.totalGlobalMem, want->memory_mib * MIB);
        assert_int_equal(prop.sharedMemPerBlock, 65536);
        assert_int_equal(prop.managedMemory, 0);
        assert_int_equal(prop.memoryPoolsSupported, 0);
        assert_int_equal(prop.reserved[62], 0);
        assert_int_equal(attribute(hipDeviceAttributeMultiprocessorCount), want->units);
        assert_int_equal(attribute(hipDeviceAttributePhysicalMultiProcessorCount),
                         want->physical_units);
        assert_int_equal(attribute(hipDeviceAttributeNumberOfXccs), want->xccs);
        assert_int_equal(attribute(hipDeviceAttributeIsLargeBar), want->large_bar);
        assert_int_equal(attribute(hipDeviceAttributeDmaBufSupported), want->dma_buf);
        assert_int_equal(attribute(hipDeviceAttributeIntegrated), want->integrated);
        fixture_close(&f);
    }
}

static void test_attributes_of_vmm_say_what_works(void **state)
{
    struct fixture f;

    fixture_open(&f, "mi300x:2", "6.12");
    assert_int_equal(attribute(hipDeviceAttributeVirtualMemoryManagementSupported), 1);
    assert_int_equal(attribute(hipDeviceAttributeHostAllocDmaBufSupported), 1);
    assert_int_equal(attribute(hipDeviceAttributeHandleTypeFabricSupported), 0);
    assert_int_equal(attribute(hipDeviceAttributeGPUDirectRDMAWithHipVMMSupported), 0);
    assert_int_equal(attribute(hipDeviceAttributeGPUDirectRDMASupported), 0);
    assert_int_equal(attribute(hipDeviceAttributeMemoryPoolsSupported), 0);
    assert_int_equal(attribute(hipDeviceAttributeMemoryPoolSupportedHandleTypes), 0);
    assert_int_equal(attribute(hipDeviceAttributeManagedMemory), 0);
    assert_int_equal(attribute(hipDeviceAttributeHostRegisterSupported), 1);
    assert_int_equal(attribute(hipDeviceAttributeCanMapHostMemory), 1);
    assert_int_equal(attribute(hipDeviceAttributeUnifiedAddressing), 1);
    assert_int_equal(attribute(hipDeviceAttributeComputeCapabilityMajor), 9);
    assert_int_equal(attribute(hipDeviceAttributeComputeCapabilityMinor), 4);
    assert_int_equal(attribute(hipDeviceAttributeWarpSize), 64);
    assert_int_equal(attribute(hipDeviceAttributePciBusId), 5);
    assert_int_equal(attribute(hipDeviceAttributePciDeviceId), 0);
    assert_int_equal(attribute(hipDeviceAttributePciDomainId), 0);
    assert_int_equal(attribute(hipDeviceAttributePciChipId), 0x74a1);
    assert_int_equal(attribute(hipDeviceAttributeAsicRevision), 1);
    assert_int_equal(attribute(hipDeviceAttributeTotalGlobalMem), 0x7fffffff);
    assert_int_equal(attribute(hipDeviceAttributeClockRate), 2100000);
    assert_int_equal(attribute(hipDeviceAttributeMemoryBusWidth), 8192);
    assert_int_equal(attribute(hipDeviceAttributeHostNumaId), 0);
    fixture_close(&f);
}

/* Both ways of asking say the same, where the kernel tells and where nobody knows. */
static void test_an_attribute_is_the_field_of_the_properties(void **state)
{
    struct fixture f;
    hipDeviceProp_t prop;

    fixture_open(&f, "mi300x", "6.12");
    HIP_OK(hipGetDeviceProperties(&prop, 0));
    assert_int_equal(attribute(hipDeviceAttributeMaxThreadsPerBlock), 1024);
    assert_int_equal(prop.maxThreadsPerBlock, 1024);
    assert_int_equal(attribute(hipDeviceAttributeMaxBlockDimX), prop.maxThreadsDim[0]);
    assert_int_equal(attribute(hipDeviceAttributeMaxBlockDimZ), prop.maxThreadsDim[2]);
    assert_int_equal(attribute(hipDeviceAttributeSharedMemPerBlockOptin), 65536);
    assert_int_equal(prop.sharedMemPerBlockOptin, 65536);
    assert_int_equal(attribute(hipDeviceAttributeL2CacheSize), prop.l2CacheSize);
    assert_int_equal(attribute(hipDeviceAttributeMaxTexture2DHeight), prop.maxTexture2D[1]);
    assert_int_equal(attribute(hipDeviceAttributeMaxGridDimY), prop.maxGridSize[1]);
    assert_int_equal(attribute(hipDeviceAttributeTextureAlignment), prop.textureAlignment);
    assert_string_equal(prop.gcnArchName, "gfx942");
    fixture_close(&f);
}

static void test_bad_arguments_and_unknown_attributes_are_refused(void **state)
{
    static const int unknown[] = {-1,    100,   64,    86,    9999,  10001,
                                  10003, 10004, 10023, 19999, 20000, 1 << 30};
    struct fixture f;
    hipDeviceProp_t prop;
    int value = -77;

    fixture_open(&f, "navi31", "6.12");
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        HIP_FAILS(hipDeviceGetAttribute(&value, (hipDeviceAttribute_t)unknown[i], 0),
                  hipErrorInvalidValue, "attribute");
    HIP_FAILS(hipDeviceGetAttribute(NULL, hipDeviceAttributeWarpSize, 0), hipErrorInvalidValue,
              "NULL");
    HIP_FAILS(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 1), hipErrorInvalidDevice,
              "device 1");
    assert_int_equal(value, -77);
    HIP_FAILS(hipGetDeviceProperties(NULL, 0), hipErrorInvalidValue, "NULL");
    HIP_FAILS(hipGetDeviceProperties(&prop, 1), hipErrorInvalidDevice, "device 1");
    fixture_close(&f);
}

static void test_the_device_that_meets_most_wishes_is_chosen(void **state)
{
    struct fixture f;
    hipDeviceProp_t wish;
    int device = -1;

    fixture_open(&f, "mi300x:2", "6.12");
    memset(&wish, 0, sizeof(wish));
    HIP_OK(hipChooseDevice(&device, &wish));
    assert_int_equal(device, 0);
    wish.major = 9;
    wish.warpSize = 64;
    HIP_OK(hipChooseDevice(&device, &wish));
    assert_int_equal(device, 0);
    HIP_FAILS(hipChooseDevice(NULL, &wish), hipErrorInvalidValue, "NULL");
    HIP_FAILS(hipChooseDevice(&device, NULL), hipErrorInvalidValue, "NULL");
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_properties_are_the_machines),
        cmocka_unit_test(test_attributes_of_vmm_say_what_works),
        cmocka_unit_test(test_an_attribute_is_the_field_of_the_properties),
        cmocka_unit_test(test_bad_arguments_and_unknown_attributes_are_refused),
        cmocka_unit_test(test_the_device_that_meets_most_wishes_is_chosen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
