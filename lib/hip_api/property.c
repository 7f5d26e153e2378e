/* SPDX-License-Identifier: MIT */
/* What HIP says about a device, from what the kernel says. */
#include "hip_api/state.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Bits of the topology's capability word that hold the revision of the chip. */
#define CAPABILITY_REVISION_SHIFT 22
#define CAPABILITY_REVISION_MASK 0xfu

/* Work-items of one work-group on every GPU that KFD drives. */
#define MAX_WORKGROUP 1024

static int clamp(uint64_t value)
{
    return value > INT_MAX ? INT_MAX : (int)value;
}

static uint32_t compute_units(const struct kfd_device_info *info)
{
    return info->simd_per_cu ? info->simd_count / info->simd_per_cu : info->simd_count;
}

/* From gfx10 on HIP counts pairs of compute units. */
static uint32_t multiprocessors(const struct kfd_device_info *info)
{
    return info->gfx_version >= 100000 ? compute_units(info) / 2 : compute_units(info);
}

static void fill(const struct hip_state *state, uint32_t device, hipDeviceProp_t *prop)
{
    const struct kfd_device_info *info = kfd_device_info(kfd_device_at(state->kfd, device));
    /* A multiprocessor of gfx10 and later has the wave slots of two compute units. */
    uint32_t units = multiprocessors(info) == compute_units(info) ? 1 : 2;
    char digits[17];

    memset(prop, 0, sizeof(*prop));
    snprintf(prop->name, sizeof(prop->name), "%s", info->product);
    snprintf(digits, sizeof(digits), "%016llx", (unsigned long long)info->unique_id);
    memcpy(prop->uuid.bytes, digits, sizeof(prop->uuid.bytes));
    snprintf(prop->gcnArchName, sizeof(prop->gcnArchName), "%s", info->name);
    prop->totalGlobalMem = state->memory[device];
    prop->sharedMemPerBlock = (size_t)info->lds_size_kb * 1024;
    prop->sharedMemPerBlockOptin = prop->sharedMemPerBlock;
    prop->sharedMemPerMultiprocessor = prop->sharedMemPerBlock * units;
    prop->maxSharedMemoryPerMultiProcessor = prop->sharedMemPerMultiprocessor;
    prop->warpSize = clamp(info->wave_front_size);
    prop->maxThreadsPerBlock = MAX_WORKGROUP;
    for (int i = 0; i < 3; i++)
        prop->maxThreadsDim[i] = MAX_WORKGROUP;
    prop->maxThreadsPerMultiProcessor = clamp((uint64_t)info->max_waves_per_simd *
                                              info->simd_per_cu * units * info->wave_front_size);
    prop->multiProcessorCount = clamp(multiprocessors(info));
    prop->clockRate = clamp((uint64_t)info->max_clock_mhz * 1000);
    prop->memoryClockRate = clamp((uint64_t)info->mem_clock_mhz * 1000);
    prop->memoryBusWidth = clamp(info->mem_width_bits);
    prop->major = clamp(info->gfx_version / 10000);
    prop->minor = clamp(info->gfx_version / 100 % 100);
    prop->integrated = info->apu;
    prop->canMapHostMemory = 1;
    prop->hostRegisterSupported = 1;
    prop->canUseHostPointerForRegisteredMem = 1;
    prop->unifiedAddressing = 1;
    prop->computeMode = hipComputeModeDefault;
    prop->pciDomainID = clamp(info->domain);
    prop->pciBusID = clamp(info->location_id >> 8 & 0xff);
    prop->pciDeviceID = clamp(info->location_id >> 3 & 0x1f);
    prop->isLargeBar = info->large_bar;
    prop->asicRevision =
        clamp(info->capability >> CAPABILITY_REVISION_SHIFT & CAPABILITY_REVISION_MASK);
}

/* Attributes that are a field of the properties, a 0 for want of knowledge included, so that both
 * ways of asking agree. Those not listed anywhere are refused. */
struct attribute {
    hipDeviceAttribute_t id;
    size_t offset, size;
};

#define FIELD(attribute_name, field)                                          \
    {                                                                         \
        hipDeviceAttribute##attribute_name, offsetof(hipDeviceProp_t, field), \
            sizeof(((hipDeviceProp_t *)0)->field)                             \
    }

static const struct attribute attributes[] = {
    FIELD(EccEnabled, ECCEnabled),
    FIELD(AccessPolicyMaxWindowSize, accessPolicyMaxWindowSize),
    FIELD(AsyncEngineCount, asyncEngineCount),
    FIELD(CanMapHostMemory, canMapHostMemory),
    FIELD(CanUseHostPointerForRegisteredMem, canUseHostPointerForRegisteredMem),
    FIELD(ClockRate, clockRate),
    FIELD(ComputeMode, computeMode),
    FIELD(ComputePreemptionSupported, computePreemptionSupported),
    FIELD(ConcurrentKernels, concurrentKernels),
    FIELD(ConcurrentManagedAccess, concurrentManagedAccess),
    FIELD(CooperativeLaunch, cooperativeLaunch),
    FIELD(CooperativeMultiDeviceLaunch, cooperativeMultiDeviceLaunch),
    FIELD(DeviceOverlap, deviceOverlap),
    FIELD(DirectManagedMemAccessFromHost, directManagedMemAccessFromHost),
    FIELD(GlobalL1CacheSupported, globalL1CacheSupported),
    FIELD(HostNativeAtomicSupported, hostNativeAtomicSupported),
    FIELD(Integrated, integrated),
    FIELD(IsMultiGpuBoard, isMultiGpuBoard),
    FIELD(KernelExecTimeout, kernelExecTimeoutEnabled),
    FIELD(L2CacheSize, l2CacheSize),
    FIELD(LocalL1CacheSupported, localL1CacheSupported),
    FIELD(LuidDeviceNodeMask, luidDeviceNodeMask),
    FIELD(ComputeCapabilityMajor, major),
    FIELD(ComputeCapabilityMinor, minor),
    FIELD(ManagedMemory, managedMemory),
    FIELD(MaxBlocksPerMultiProcessor, maxBlocksPerMultiProcessor),
    FIELD(MaxBlockDimX, maxThreadsDim[0]),
    FIELD(MaxBlockDimY, maxThreadsDim[1]),
    FIELD(MaxBlockDimZ, maxThreadsDim[2]),
    FIELD(MaxGridDimX, maxGridSize[0]),
    FIELD(MaxGridDimY, maxGridSize[1]),
    FIELD(MaxGridDimZ, maxGridSize[2]),
    FIELD(MaxSurface1D, maxSurface1D),
    FIELD(MaxSurface1DLayered, maxSurface1DLayered[0]),
    FIELD(MaxSurface2D, maxSurface2D[0]),
    FIELD(MaxSurface2DLayered, maxSurface2DLayered[0]),
    FIELD(MaxSurface3D, maxSurface3D[0]),
    FIELD(MaxSurfaceCubemap, maxSurfaceCubemap),
    FIELD(MaxSurfaceCubemapLayered, maxSurfaceCubemapLayered[0]),
    FIELD(MaxTexture1DWidth, maxTexture1D),
    FIELD(MaxTexture1DLayered, maxTexture1DLayered[0]),
    FIELD(MaxTexture1DLinear, maxTexture1DLinear),
    FIELD(MaxTexture1DMipmap, maxTexture1DMipmap),
    FIELD(MaxTexture2DWidth, maxTexture2D[0]),
    FIELD(MaxTexture2DHeight, maxTexture2D[1]),
    FIELD(MaxTexture2DGather, maxTexture2DGather[0]),
    FIELD(MaxTexture2DLayered, maxTexture2DLayered[0]),
    FIELD(MaxTexture2DLinear, maxTexture2DLinear[0]),
    FIELD(MaxTexture2DMipmap, maxTexture2DMipmap[0]),
    FIELD(MaxTexture3DWidth, maxTexture3D[0]),
    FIELD(MaxTexture3DHeight, maxTexture3D[1]),
    FIELD(MaxTexture3DDepth, maxTexture3D[2]),
    FIELD(MaxTexture3DAlt, maxTexture3DAlt[0]),
    FIELD(MaxTextureCubemap, maxTextureCubemap),
    FIELD(MaxTextureCubemapLayered, maxTextureCubemapLayered[0]),
    FIELD(MaxThreadsDim, maxThreadsDim[0]),
    FIELD(MaxThreadsPerBlock, maxThreadsPerBlock),
    FIELD(MaxThreadsPerMultiProcessor, maxThreadsPerMultiProcessor),
    FIELD(MaxPitch, memPitch),
    FIELD(MemoryBusWidth, memoryBusWidth),
    FIELD(MemoryClockRate, memoryClockRate),
    FIELD(MultiGpuBoardGroupID, multiGpuBoardGroupID),
    FIELD(MultiprocessorCount, multiProcessorCount),
    FIELD(PageableMemoryAccess, pageableMemoryAccess),
    FIELD(PageableMemoryAccessUsesHostPageTables, pageableMemoryAccessUsesHostPageTables),
    FIELD(PciBusId, pciBusID),
    FIELD(PciDeviceId, pciDeviceID),
    FIELD(PciDomainId, pciDomainID),
    FIELD(PersistingL2CacheMaxSize, persistingL2CacheMaxSize),
    FIELD(MaxRegistersPerBlock, regsPerBlock),
    FIELD(MaxRegistersPerMultiprocessor, regsPerMultiprocessor),
    FIELD(ReservedSharedMemPerBlock, reservedSharedMemPerBlock),
    FIELD(MaxSharedMemoryPerBlock, sharedMemPerBlock),
    FIELD(SharedMemPerBlockOptin, sharedMemPerBlockOptin),
    FIELD(SharedMemPerMultiprocessor, sharedMemPerMultiprocessor),
    FIELD(SingleToDoublePrecisionPerfRatio, singleToDoublePrecisionPerfRatio),
    FIELD(StreamPrioritiesSupported, streamPrioritiesSupported),
    FIELD(SurfaceAlignment, surfaceAlignment),
    FIELD(TccDriver, tccDriver),
    FIELD(TextureAlignment, textureAlignment),
    FIELD(TexturePitchAlignment, texturePitchAlignment),
    FIELD(TotalConstantMemory, totalConstMem),
    FIELD(TotalGlobalMem, totalGlobalMem),
    FIELD(UnifiedAddressing, unifiedAddressing),
    FIELD(WarpSize, warpSize),
    FIELD(MemoryPoolsSupported, memoryPoolsSupported),
    FIELD(HostRegisterSupported, hostRegisterSupported),
    FIELD(MemoryPoolSupportedHandleTypes, memoryPoolSupportedHandleTypes),
    FIELD(GPUDirectRDMASupported, gpuDirectRDMASupported),
    FIELD(GPUDirectRDMAFlushWritesOptions, gpuDirectRDMAFlushWritesOptions),
    FIELD(GPUDirectRDMAWritesOrdering, gpuDirectRDMAWritesOrdering),
    FIELD(ClockInstructionRate, clockInstructionRate),
    FIELD(MaxSharedMemoryPerMultiprocessor, maxSharedMemoryPerMultiProcessor),
    FIELD(CooperativeMultiDeviceUnmatchedFunc, cooperativeMultiDeviceUnmatchedFunc),
    FIELD(CooperativeMultiDeviceUnmatchedGridDim, cooperativeMultiDeviceUnmatchedGridDim),
    FIELD(CooperativeMultiDeviceUnmatchedBlockDim, cooperativeMultiDeviceUnmatchedBlockDim),
    FIELD(CooperativeMultiDeviceUnmatchedSharedMem, cooperativeMultiDeviceUnmatchedSharedMem),
    FIELD(IsLargeBar, isLargeBar),
    FIELD(AsicRevision, asicRevision),
};

static bool from_properties(const struct hip_state *state, hipDeviceAttribute_t id, int device,
                            int *value)
{
    hipDeviceProp_t prop;

    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
        const char *field = (const char *)&prop + attributes[i].offset;
        size_t wide;

        if (attributes[i].id != id)
            continue;
        fill(state, (uint32_t)device, &prop);
        if (attributes[i].size == sizeof(int)) {
            memcpy(value, field, sizeof(int));
        } else {
            memcpy(&wide, field, sizeof(wide));
            *value = clamp(wide);
        }
        return true;
    }
    return false;
}

static hipError_t get_attribute(int *value, hipDeviceAttribute_t id, int device)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);
    const struct kfd_device_info *info;
    bool vmm;

    if (code == hipSuccess && !value)
        code = hip_null("value");
    if (code == hipSuccess)
        code = hip_check_device(state, device, hipErrorInvalidDevice);
    if (code != hipSuccess)
        return code;
    if (from_properties(state, id, device, value))
        return hipSuccess;
    info = kfd_device_info(kfd_device_at(state->kfd, (uint32_t)device));
    vmm = vmm_engine(state->vmm) != VMM_ENGINE_NONE;
    switch (id) {
    case hipDeviceAttributeVirtualMemoryManagementSupported:
    case hipDeviceAttributeHostAllocDmaBufSupported:
        *value = vmm;
        return hipSuccess;
    case hipDeviceAttributeDmaBufSupported:
        *value = vmm && kfd_has(state->kfd, KFD_CAP_EXPORT_DMABUF);
        return hipSuccess;
    case hipDeviceAttributeGPUDirectRDMAWithHipVMMSupported:
    case hipDeviceAttributeHandleTypeFabricSupported:
    case hipDeviceAttributeCanUseStreamWaitValue:
    case hipDeviceAttributeImageSupport:
        *value = 0;
        return hipSuccess;
    case hipDeviceAttributeHostNumaId:
        *value = (int)info->cpu_node;
        return hipSuccess;
    case hipDeviceAttributePhysicalMultiProcessorCount:
        *value = (int)compute_units(info);
        return hipSuccess;
    case hipDeviceAttributeNumberOfXccs:
        *value = (int)info->num_xcc;
        return hipSuccess;
    case hipDeviceAttributePciChipId:
        *value = (int)info->device_id;
        return hipSuccess;
    default:
        return hip_fail(hipErrorInvalidValue, "attribute %d is not known here", (int)id);
    }
}

hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device)
{
    HIP_RETURN(get_attribute(value, attribute, device));
}

hipError_t hipGetDeviceProperties(hipDeviceProp_t *prop, int device)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess && !prop)
        code = hip_null("prop");
    if (code == hipSuccess)
        code = hip_check_device(state, device, hipErrorInvalidDevice);
    if (code == hipSuccess)
        fill(state, (uint32_t)device, prop);
    HIP_RETURN(code);
}

/* How many of the wishes a device meets; a field of 0 is no wish. */
static unsigned score(const hipDeviceProp_t *have, const hipDeviceProp_t *want)
{
    unsigned points = 0;

    points += want->major && (have->major > want->major ||
                              (have->major == want->major && have->minor >= want->minor));
    points += want->totalGlobalMem && have->totalGlobalMem >= want->totalGlobalMem;
    points += want->multiProcessorCount && have->multiProcessorCount >= want->multiProcessorCount;
    points += want->warpSize && have->warpSize == want->warpSize;
    points += want->clockRate && have->clockRate >= want->clockRate;
    points += want->gcnArchName[0] && strcmp(have->gcnArchName, want->gcnArchName) == 0;
    points += want->integrated && have->integrated;
    points += want->isLargeBar && have->isLargeBar;
    return points;
}

hipError_t hipChooseDevice(int *device, const hipDeviceProp_t *prop)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);
    unsigned best = 0;

    if (code == hipSuccess && (!device || !prop))
        code = hip_null(device ? "prop" : "device");
    if (code != hipSuccess)
        HIP_RETURN(code);
    *device = 0;
    for (uint32_t i = 0; i < state->devices; i++) {
        hipDeviceProp_t have;
        unsigned points;

        fill(state, i, &have);
        points = score(&have, prop);
        if (points > best) {
            best = points;
            *device = (int)i;
        }
    }
    HIP_RETURN(hipSuccess);
}
