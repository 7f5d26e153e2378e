/* SPDX-License-Identifier: MIT */
#include "mock.h"

#include <string.h>

#include "kfd/error.h"

struct mock mock;

/* Never looked into. */
static char kfd_object, vmm_object, device_objects[KFD_MAX_DEVICES];
static const struct kfd_device_info device_info = {.name = "gfx942", .product = "Mock"};

void mock_reset(void)
{
    mock = (struct mock){.devices = 2, .engine = VMM_ENGINE_DRM};
}

static int answer(void)
{
    mock.calls++;
    return mock.result ? kfd_fail(mock.result, MOCK_TEXT) : 0;
}

int kfd_open(struct kfd_sys *sys, struct kfd **out)
{
    mock.opens++;
    if (mock.open_error)
        return kfd_fail(mock.open_error, MOCK_TEXT);
    *out = (struct kfd *)&kfd_object;
    return 0;
}

void kfd_close(struct kfd *kfd)
{
    mock.closes++;
}

uint32_t kfd_device_count(const struct kfd *kfd)
{
    return mock.devices;
}

struct kfd_device *kfd_device_at(const struct kfd *kfd, uint32_t index)
{
    return index < mock.devices ? (struct kfd_device *)&device_objects[index] : NULL;
}

const struct kfd_device_info *kfd_device_info(const struct kfd_device *dev)
{
    return &device_info;
}

const char *kfd_skipped(const struct kfd *kfd, uint32_t i)
{
    return i == 0 ? mock.skipped : NULL;
}

uint32_t kfd_cpu_node_count(const struct kfd *kfd)
{
    return 2;
}

bool kfd_has(const struct kfd *kfd, enum kfd_cap cap)
{
    return true;
}

uint32_t kfd_link_count(const struct kfd *kfd)
{
    return 0;
}

void kfd_link_info(const struct kfd *kfd, uint32_t i, struct kfd_link_info *out)
{
}

bool kfd_can_access(const struct kfd_device *dev, const struct kfd_device *owner)
{
    return true;
}

int kfd_mem_available(struct kfd_device *dev, uint64_t *bytes)
{
    *bytes = 1 << 20;
    return answer();
}

int vmm_open(struct kfd *kfd, const struct vmm_options *options, struct vmm **out)
{
    mock.vmm_opens++;
    mock.options = *options;
    if (mock.vmm_open_error)
        return kfd_fail(mock.vmm_open_error, MOCK_TEXT);
    *out = (struct vmm *)&vmm_object;
    return 0;
}

void vmm_close(struct vmm *vmm)
{
    mock.vmm_closes++;
}

enum vmm_engine vmm_engine(const struct vmm *vmm)
{
    return mock.engine;
}

const char *vmm_engine_name(enum vmm_engine engine)
{
    static const char *const names[] = {"auto", "none", "drm", "kfd", "gem"};

    return names[engine];
}

const char *vmm_engine_reason(const struct vmm *vmm)
{
    return MOCK_TEXT;
}

uint64_t vmm_min_granularity(const struct vmm *vmm)
{
    return KFD_PAGE_SIZE;
}

uint64_t vmm_recommended_granularity(const struct vmm *vmm)
{
    return KFD_HUGE_PAGE_SIZE;
}

int vmm_reserve(struct vmm *vmm, uint64_t size, uint64_t align, uint64_t hint, uint64_t *va)
{
    mock.size = size;
    mock.align = align;
    mock.hint = hint;
    *va = 0x10000000;
    return answer();
}

static int with_range(uint64_t va, uint64_t size)
{
    mock.va = va;
    mock.size = size;
    return answer();
}

int vmm_address_free(struct vmm *vmm, uint64_t va, uint64_t size)
{
    return with_range(va, size);
}

int vmm_unmap(struct vmm *vmm, uint64_t va, uint64_t size)
{
    return with_range(va, size);
}

int vmm_map(struct vmm *vmm, uint64_t va, uint64_t size, uint64_t offset, vmm_handle handle)
{
    mock.offset = offset;
    mock.handle = handle;
    return with_range(va, size);
}

static int with_props(const struct vmm_props *props, uint64_t size)
{
    mock.props = *props;
    mock.size = size;
    return answer();
}

int vmm_create(struct vmm *vmm, const struct vmm_props *props, uint64_t size, vmm_handle *handle)
{
    *handle = 77;
    return with_props(props, size);
}

int vmm_alloc(struct vmm *vmm, const struct vmm_props *props, uint64_t size, uint64_t *va)
{
    *va = 0x20000000;
    return with_props(props, size);
}

int vmm_free(struct vmm *vmm, uint64_t va)
{
    mock.va = va;
    return answer();
}

int vmm_register(struct vmm *vmm, uint64_t va, uint64_t size, const uint32_t tag[4])
{
    mock.va = va;
    mock.size = size;
    return answer();
}

int vmm_unregister(struct vmm *vmm, uint64_t va)
{
    mock.va = va;
    return answer();
}

int vmm_free_all(struct vmm *vmm, uint32_t device)
{
    return answer();
}

int vmm_release(struct vmm *vmm, vmm_handle handle)
{
    mock.handle = handle;
    return answer();
}

int vmm_retain(struct vmm *vmm, uint64_t va, vmm_handle *handle)
{
    mock.va = va;
    *handle = 78;
    return answer();
}

int vmm_get_props(struct vmm *vmm, vmm_handle handle, struct vmm_props *props, uint64_t *size)
{
    mock.handle = handle;
    *props = mock.props_out;
    return answer();
}

int vmm_set_access(struct vmm *vmm, uint64_t va, uint64_t size, const struct vmm_access *access,
                   size_t count)
{
    memcpy(mock.access, access, count * sizeof(*access));
    mock.access_count = count;
    return with_range(va, size);
}

int vmm_get_access(struct vmm *vmm, uint64_t va, uint32_t device, uint32_t *prot)
{
    mock.va = va;
    mock.device = device;
    *prot = VMM_PROT_READ;
    return answer();
}

int vmm_export(struct vmm *vmm, vmm_handle handle, int *fd)
{
    mock.handle = handle;
    *fd = 9;
    return answer();
}

int vmm_export_range(struct vmm *vmm, uint64_t va, uint64_t size, int *fd, uint64_t *offset)
{
    *fd = 9;
    return with_range(va, size);
}

int vmm_import(struct vmm *vmm, int fd, const uint32_t tag[4], vmm_handle *handle)
{
    mock.fd = fd;
    memcpy(mock.tag, tag, sizeof(mock.tag));
    *handle = 79;
    return answer();
}

int vmm_query(struct vmm *vmm, uint64_t va, struct vmm_range *out)
{
    *out = mock.range;
    return 0;
}

bool vmm_holds(struct vmm *vmm, uint64_t va, uint64_t size)
{
    return mock.range.kind != VMM_KIND_NONE && mock.range.kind != VMM_KIND_REGISTERED;
}

int vmm_cpu_walk(struct vmm *vmm, uint64_t va, uint64_t size, uint32_t need,
                 int (*each)(void *arg, void *cpu, uint64_t size), void *arg)
{
    return with_range(va, size);
}
