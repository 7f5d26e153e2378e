/* SPDX-License-Identifier: MIT */
#include "hip_api/state.h"

#include <pthread.h>
#include <stdlib.h>

#include "hip_api/object.h"
#include "hip_api/thread.h"
#include "kfd/error.h"

/* Rank 10: held over the whole start, never inside another lock. */
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static _Atomic(struct hip_state *) current;
/* In a forked child: the parent's state. Its locks may be held by threads that do not exist here,
 * so it is never used again but to close its descriptors. */
static struct hip_state *inherited;

/* Runs in a child before any other code: nobody else can be in a call. */
static void forget_parent(void)
{
    struct hip_state *parent = atomic_exchange(&current, NULL);

    if (parent)
        inherited = parent;
    pthread_mutex_init(&start_lock, NULL);
    hip_object_forget();
    hip_thread_reset();
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_parent);
}

/* What a failed kfd_open means: running out of descriptors or memory is no statement about GPUs. */
static hipError_t from_open(int err)
{
    return kfd_error_is_shortage(err) ? hip_from_errno(err) : hipErrorNoDevice;
}

static hipError_t fail_no_device(const struct kfd *kfd)
{
    char reasons[400] = "";
    size_t used = 0;
    const char *reason;

    for (uint32_t i = 0; (reason = kfd_skipped(kfd, i)) != NULL; i++) {
        int n = snprintf(reasons + used, sizeof(reasons) - used, "; %s", reason);

        if (n < 0 || (size_t)n >= sizeof(reasons) - used)
            break;
        used += (size_t)n;
    }
    return hip_fail(hipErrorNoDevice, "no usable GPU%s", used ? reasons : ": the driver has none");
}

/* An APU draws from system memory where the driver lets it, and then has more to give than its
 * carve-out; the driver's word at the start is the total, so that it does not change later. */
static void learn_memory(struct hip_state *state)
{
    for (uint32_t i = 0; i < state->devices; i++) {
        struct kfd_device *device = kfd_device_at(state->kfd, i);
        const struct kfd_device_info *info = kfd_device_info(device);
        uint64_t available;

        state->memory[i] = info->vram_size;
        if (info->apu && kfd_mem_available(device, &available) == 0 && available > state->memory[i])
            state->memory[i] = available;
    }
}

static hipError_t open_state(struct hip_state *state)
{
    struct vmm_options options = {.size = sizeof(options)};
    hipError_t code;
    int err;

    if (vmm_options_from_env(&options) != 0)
        return hipErrorNotInitialized;
    err = kfd_open(NULL, &state->kfd);
    if (err)
        return from_open(err);
    state->devices = kfd_device_count(state->kfd);
    if (state->devices == 0) {
        code = fail_no_device(state->kfd);
        goto close_kfd;
    }
    err = vmm_open(state->kfd, &options, &state->vmm);
    if (err) {
        code = hip_from_errno(err);
        goto close_kfd;
    }
    learn_memory(state);
    return hipSuccess;

close_kfd:
    kfd_close(state->kfd);
    return code;
}

static void close_inherited(void)
{
    if (inherited && inherited->kfd) {
        kfd_close(inherited->kfd);
        inherited->kfd = NULL;
    }
}

static hipError_t start(struct hip_state **out)
{
    struct hip_state *state = calloc(1, sizeof(*state));
    hipError_t code;

    if (!state)
        return hip_fail(hipErrorOutOfMemory, "no memory to start");
    close_inherited();
    code = open_state(state);
    if (code != hipSuccess) {
        free(state);
        return code;
    }
    *out = state;
    return hipSuccess;
}

hipError_t hip_start(struct hip_state **out)
{
    struct hip_state *state = atomic_load_explicit(&current, memory_order_acquire);
    hipError_t code = hipSuccess;

    if (state) {
        *out = state;
        return hipSuccess;
    }
    /* Before the lock, so that no child can inherit it locked. */
    pthread_once(&fork_once, watch_forks);
    pthread_mutex_lock(&start_lock);
    state = atomic_load_explicit(&current, memory_order_relaxed);
    if (!state) {
        code = start(&state);
        if (code == hipSuccess)
            atomic_store_explicit(&current, state, memory_order_release);
    }
    pthread_mutex_unlock(&start_lock);
    if (code == hipSuccess)
        *out = state;
    return code;
}

hipError_t hip_start_vmm(struct hip_state **out)
{
    hipError_t code = hip_start(out);

    if (code == hipSuccess && vmm_engine((*out)->vmm) == VMM_ENGINE_NONE)
        return hip_fail(hipErrorNotSupported, "no virtual memory management here: %s",
                        vmm_engine_reason((*out)->vmm));
    return code;
}

hipError_t hipxReset(void)
{
    struct hip_state *state;

    pthread_mutex_lock(&start_lock);
    state = atomic_exchange(&current, NULL);
    if (state) {
        vmm_close(state->vmm);
        kfd_close(state->kfd);
        free(state);
    }
    /* The next start may come when the system it belongs to is gone. */
    close_inherited();
    hip_object_clear();
    hip_thread_reset_all();
    hip_error_reset();
    pthread_mutex_unlock(&start_lock);
    return hipSuccess;
}

hipError_t hip_check_device(const struct hip_state *state, int device, hipError_t code)
{
    const char *skipped;

    if (device >= 0 && (uint32_t)device < state->devices)
        return hipSuccess;
    skipped = kfd_skipped(state->kfd, 0);
    return hip_fail(code, "device %d: there are %u%s%s", device, state->devices,
                    skipped ? "; left out: " : "", skipped ? skipped : "");
}

hipError_t hipInit(unsigned int flags)
{
    struct hip_state *state;

    if (flags != 0)
        HIP_RETURN(hip_fail(hipErrorInvalidValue, "flags is 0x%x, not 0", flags));
    HIP_RETURN(hip_start(&state));
}

static hipError_t get_version(int *version)
{
    if (!version)
        return hip_null("version");
    *version = HIP_VERSION;
    return hipSuccess;
}

hipError_t hipDriverGetVersion(int *version)
{
    HIP_RETURN(get_version(version));
}

hipError_t hipRuntimeGetVersion(int *version)
{
    HIP_RETURN(get_version(version));
}
