/* SPDX-License-Identifier: MIT */
/* Devices: how many, which is current, what they are called, and who reaches whom. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hip_api/object.h"
#include "hip_api/state.h"
#include "hip_api/thread.h"

static const struct kfd_device_info *info_of(const struct hip_state *state, int device)
{
    return kfd_device_info(kfd_device_at(state->kfd, (uint32_t)device));
}

/* Starts and checks the index. */
static hipError_t start_with_device(int device, struct hip_state **state)
{
    hipError_t code = hip_start(state);

    return code == hipSuccess ? hip_check_device(*state, device, hipErrorInvalidDevice) : code;
}

hipError_t hipGetDeviceCount(int *count)
{
    struct hip_state *state;
    hipError_t code;

    if (!count)
        HIP_RETURN(hip_null("count"));
    code = hip_start(&state);
    *count = code == hipSuccess ? (int)state->devices : 0;
    HIP_RETURN(code);
}

hipError_t hipSetDevice(int device)
{
    struct hip_state *state;
    hipError_t code = start_with_device(device, &state);

    if (code == hipSuccess)
        hip_thread()->device = device;
    HIP_RETURN(code);
}

hipError_t hipGetDevice(int *device)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess && !device)
        code = hip_null("device");
    if (code == hipSuccess)
        *device = hip_thread()->device;
    HIP_RETURN(code);
}

/* How threads wait for a GPU: accepted and kept nowhere, as no call leaves work behind. */
hipError_t hipSetDeviceFlags(unsigned int flags)
{
    const unsigned known = hipDeviceScheduleMask | hipDeviceMapHost | hipDeviceLmemResizeToMax;
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess && (flags & ~known) != 0)
        code = hip_fail(hipErrorInvalidValue,
                        "flags is 0x%x, which has bits that are not known here", flags);
    HIP_RETURN(code);
}

hipError_t hipGetDeviceFlags(unsigned int *flags)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess && !flags)
        code = hip_null("flags");
    if (code == hipSuccess)
        *flags = hipDeviceScheduleAuto;
    HIP_RETURN(code);
}

hipError_t hipDeviceGet(hipDevice_t *device, int ordinal)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess && !device)
        code = hip_null("device");
    if (code == hipSuccess)
        code = hip_check_device(state, ordinal, hipErrorInvalidDevice);
    if (code == hipSuccess)
        *device = ordinal;
    HIP_RETURN(code);
}

hipError_t hipDeviceGetName(char *name, int size, hipDevice_t device)
{
    struct hip_state *state;
    hipError_t code = start_with_device(device, &state);

    if (code == hipSuccess && (!name || size <= 0))
        code = hip_fail(hipErrorInvalidValue, name ? "size is %d" : "name is NULL", size);
    if (code == hipSuccess)
        snprintf(name, (size_t)size, "%s", info_of(state, device)->product);
    HIP_RETURN(code);
}

hipError_t hipDeviceGetUuid(hipUUID *uuid, hipDevice_t device)
{
    struct hip_state *state;
    hipError_t code = start_with_device(device, &state);
    char digits[17];

    if (code == hipSuccess && !uuid)
        code = hip_null("uuid");
    if (code == hipSuccess) {
        snprintf(digits, sizeof(digits), "%016llx",
                 (unsigned long long)info_of(state, device)->unique_id);
        memcpy(uuid->bytes, digits, sizeof(uuid->bytes));
    }
    HIP_RETURN(code);
}

hipError_t hipDeviceComputeCapability(int *major, int *minor, hipDevice_t device)
{
    struct hip_state *state;
    hipError_t code = start_with_device(device, &state);

    if (code == hipSuccess && (!major || !minor))
        code = hip_null(major ? "minor" : "major");
    if (code == hipSuccess) {
        *major = (int)(info_of(state, device)->gfx_version / 10000);
        *minor = (int)(info_of(state, device)->gfx_version / 100 % 100);
    }
    HIP_RETURN(code);
}

static void format_pci(const struct kfd_device_info *info, char *text, size_t size)
{
    snprintf(text, size, "%04x:%02x:%02x.%x", info->domain, info->location_id >> 8 & 0xff,
             info->location_id >> 3 & 0x1f, info->location_id & 7);
}

hipError_t hipDeviceGetPCIBusId(char *pci, int size, int device)
{
    struct hip_state *state;
    hipError_t code = start_with_device(device, &state);
    char text[32];

    if (code == hipSuccess && (!pci || size <= 0))
        code = hip_fail(hipErrorInvalidValue, pci ? "size is %d" : "pci is NULL", size);
    if (code == hipSuccess) {
        format_pci(info_of(state, device), text, sizeof(text));
        if (strlen(text) >= (size_t)size)
            code = hip_fail(hipErrorInvalidValue, "size %d is too small for %s", size, text);
        else
            memcpy(pci, text, strlen(text) + 1);
    }
    HIP_RETURN(code);
}

/* Reads a number in hexadecimal and what must follow it; '\0' stands for the end of the text. */
static bool read_hex(const char **text, char then, uint32_t *value)
{
    char *end;
    unsigned long number;

    if (!isxdigit((unsigned char)**text))
        return false;
    number = strtoul(*text, &end, 16);
    if (number > UINT32_MAX || *end != then)
        return false;
    *value = (uint32_t)number;
    *text = then ? end + 1 : end;
    return true;
}

/* "domain:bus:device.function" in hexadecimal; the domain and the function may be left out. */
static bool parse_pci(const char *text, uint32_t *domain, uint32_t *location)
{
    const char *colon = strchr(text, ':');
    uint32_t bus, device, function = 0;

    *domain = 0;
    if (colon && strchr(colon + 1, ':') && !read_hex(&text, ':', domain))
        return false;
    if (!read_hex(&text, ':', &bus))
        return false;
    if (strchr(text, '.')) {
        if (!read_hex(&text, '.', &device) || !read_hex(&text, '\0', &function))
            return false;
    } else if (!read_hex(&text, '\0', &device)) {
        return false;
    }
    *location = bus << 8 | device << 3 | function;
    return bus <= 0xff && device <= 0x1f && function <= 7;
}

hipError_t hipDeviceGetByPCIBusId(int *device, const char *pci)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);
    uint32_t domain = 0, location = 0;

    if (code == hipSuccess && (!device || !pci))
        code = hip_null(device ? "pci" : "device");
    if (code == hipSuccess && !parse_pci(pci, &domain, &location))
        code = hip_fail(hipErrorInvalidValue, "\"%s\" is no PCI address", pci);
    if (code != hipSuccess)
        HIP_RETURN(code);
    for (int i = 0; (uint32_t)i < state->devices; i++) {
        const struct kfd_device_info *info = info_of(state, i);

        if (info->domain == domain && info->location_id == location) {
            *device = i;
            HIP_RETURN(hipSuccess);
        }
    }
    HIP_RETURN(hip_fail(hipErrorInvalidDevice, "no device at %s", pci));
}

/* Whether the memory of peer can be mapped for device. */
static bool reaches(const struct hip_state *state, int device, int peer)
{
    return kfd_can_access(kfd_device_at(state->kfd, (uint32_t)device),
                          kfd_device_at(state->kfd, (uint32_t)peer));
}

hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer)
{
    struct hip_state *state;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess && !can)
        code = hip_null("can");
    if (code == hipSuccess)
        code = hip_check_device(state, device, hipErrorInvalidDevice);
    if (code == hipSuccess)
        code = hip_check_device(state, peer, hipErrorInvalidDevice);
    if (code == hipSuccess)
        *can = device != peer && reaches(state, device, peer);
    HIP_RETURN(code);
}

static hipError_t check_peer(struct hip_state *state, int device, int peer)
{
    hipError_t code = hip_check_device(state, peer, hipErrorInvalidDevice);

    if (code == hipSuccess && peer == device)
        code = hip_fail(hipErrorInvalidDevice, "device %d is its own peer", peer);
    return code;
}

/* The calls only keep the record: one-step memory is mapped for every device that reaches it, and
 * VMM memory for those that were given access. */
hipError_t hipDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    struct hip_state *state;
    int device = hip_thread()->device;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess && flags != 0)
        code = hip_fail(hipErrorInvalidValue, "flags is 0x%x, not 0", flags);
    if (code == hipSuccess)
        code = check_peer(state, device, peer);
    if (code == hipSuccess && !reaches(state, device, peer))
        code = hip_fail(hipErrorPeerAccessUnsupported, "no path from device %d to device %d",
                        device, peer);
    if (code == hipSuccess &&
        (atomic_fetch_or(&state->peers[device], UINT64_C(1) << peer) >> peer & 1) != 0)
        code = hip_fail(hipErrorPeerAccessAlreadyEnabled,
                        "device %d has access to device %d already", device, peer);
    HIP_RETURN(code);
}

hipError_t hipDeviceDisablePeerAccess(int peer)
{
    struct hip_state *state;
    int device = hip_thread()->device;
    hipError_t code = hip_start(&state);

    if (code == hipSuccess)
        code = check_peer(state, device, peer);
    if (code == hipSuccess &&
        (atomic_fetch_and(&state->peers[device], ~(UINT64_C(1) << peer)) >> peer & 1) == 0)
        code = hip_fail(hipErrorPeerAccessNotEnabled, "device %d was not given access to device %d",
                        device, peer);
    HIP_RETURN(code);
}

static bool linked_by_xgmi(const struct hip_state *state, int device, int peer)
{
    for (uint32_t i = 0; i < kfd_link_count(state->kfd); i++) {
        struct kfd_link_info link;

        kfd_link_info(state->kfd, i, &link);
        if (link.node_from == info_of(state, device)->node &&
            link.node_to == info_of(state, peer)->node && link.type == KFD_LINK_XGMI)
            return true;
    }
    return false;
}

static hipError_t p2p_attribute(int *value, hipDeviceP2PAttr attribute, int device, int peer)
{
    struct hip_state *state;
    hipError_t code = start_with_device(device, &state);

    if (code == hipSuccess && !value)
        code = hip_null("value");
    if (code == hipSuccess)
        code = check_peer(state, device, peer);
    if (code != hipSuccess)
        return code;
    switch (attribute) {
    case hipDevP2PAttrPerformanceRank:
        *value = linked_by_xgmi(state, device, peer) ? 0 : 1;
        return hipSuccess;
    case hipDevP2PAttrAccessSupported:
        *value = reaches(state, device, peer);
        return hipSuccess;
    case hipDevP2PAttrNativeAtomicSupported:
        *value = linked_by_xgmi(state, device, peer);
        return hipSuccess;
    case hipDevP2PAttrHipArrayAccessSupported:
        *value = 0;
        return hipSuccess;
    default:
        return hip_fail(hipErrorInvalidValue, "attribute %d is not known here", (int)attribute);
    }
}

hipError_t hipDeviceGetP2PAttribute(int *value, hipDeviceP2PAttr attribute, int device, int peer)
{
    HIP_RETURN(p2p_attribute(value, attribute, device, peer));
}

/* No call leaves work behind. */
hipError_t hipDeviceSynchronize(void)
{
    struct hip_state *state;

    HIP_RETURN(hip_start(&state));
}

/* What was made for the thread's device goes: one-step memory, streams, events, access to peers.
 * Reservations, handles and registered memory are the process's and stay. */
hipError_t hipDeviceReset(void)
{
    struct hip_state *state;
    int device = hip_thread()->device;
    hipError_t code = hip_start(&state);

    if (code != hipSuccess)
        HIP_RETURN(code);
    hip_object_delete_of(device);
    atomic_store(&state->peers[device], 0);
    HIP_RETURN(hip_from_errno(vmm_free_all(state->vmm, (uint32_t)device)));
}
