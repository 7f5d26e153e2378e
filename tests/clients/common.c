/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct machine machine;

/* What was in use when the case began. */
static struct {
    struct fake_usage usage;
    unsigned descriptors;
    uint64_t free[KFD_MAX_DEVICES];
    unsigned unchecked;
} before;

void machine_use(const char *name, const char *kernel, uint32_t flags)
{
    struct fake_options options = {
        .size = sizeof(options), .machine = name, .kernel = kernel, .flags = flags};

    kfd_sys_set_default(NULL);
    fake_destroy(machine.fake);
    if (fake_create(&options, &machine.fake) != 0) {
        printf("Bail out! machine %s: %s\n", name, fake_error_text());
        exit(1);
    }
    machine.name = name;
    kfd_sys_set_default(fake_sys(machine.fake));
}

void machine_choose(int argc, char **argv, const char *fallback)
{
    const char *real = getenv("KFDIRECT_REAL");
    const char *name = argc > 1 ? argv[1] : getenv("KFDIRECT_MACHINE");

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (real && strcmp(real, "1") == 0) {
        machine.name = "the real driver";
        if (access("/dev/kfd", R_OK | W_OK) != 0) {
            printf("1..0 # SKIP /dev/kfd: %s\n", strerror(errno));
            exit(0);
        }
        return;
    }
    machine_use(name ? name : fallback, getenv("KFDIRECT_KERNEL"), 0);
}

static int machine_down(void **state)
{
    kfd_sys_set_default(NULL);
    fake_destroy(machine.fake);
    machine.fake = NULL;
    return 0;
}

int run_cases(const struct CMUnitTest *cases, size_t count)
{
    return _cmocka_run_group_tests(program_invocation_short_name, cases, count, NULL, machine_down);
}

static void record_usage(void)
{
    memset(&before, 0, sizeof(before));
    before.descriptors = open_descriptors();
    for (int i = 0; i < machine.devices; i++)
        before.free[i] = free_bytes(i);
    if (machine.fake)
        assert_int_equal(fake_get_usage(machine.fake, &before.usage), 0);
}

int case_setup(void **state)
{
    HIP_OK(hipGetDeviceCount(&machine.devices));
    HIP_OK(hipSetDevice(0));
    record_usage();
    return 0;
}

static bool same(const char *what, uint64_t was, uint64_t now)
{
    if (was != now)
        print_error("# left behind: %s was %llu, is %llu\n", what, (unsigned long long)was,
                    (unsigned long long)now);
    return was == now;
}

int case_teardown(void **state)
{
    struct fake_usage usage;
    bool clean = same("descriptors", before.descriptors, open_descriptors());

    for (int i = 0; i < machine.devices; i++)
        clean &= same("free memory", before.free[i], free_bytes(i));
    if (machine.fake) {
        assert_int_equal(fake_get_usage(machine.fake, &usage), 0);
        clean &= same("buffer objects", before.usage.objects, usage.objects);
        clean &= same("KFD handles", before.usage.kfd_handles, usage.kfd_handles);
        clean &= same("GEM handles", before.usage.gem_handles, usage.gem_handles);
        clean &= same("GPU mappings", before.usage.mappings, usage.mappings);
        clean &= same("system memory", before.usage.gtt_used, usage.gtt_used);
    }
    if (before.unchecked)
        print_message("# %u checks of rights not made: no GPU side on %s\n", before.unchecked,
                      machine.name);
    (void)hipGetLastError();
    return clean ? 0 : -1;
}

void skip_case(const char *fmt, ...)
{
    char text[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    print_message("# skipped: %s\n", text);
    skip();
    abort();
}

void need_gpu_side(void)
{
    if (!machine.fake)
        skip_case("the case looks through the GPU's page tables, which needs the fake kernel");
}

void need_devices(int count)
{
    if (machine.devices < count)
        skip_case("needs %d devices, %s has %d", count, machine.name, machine.devices);
}

static unsigned scale(void)
{
    const char *text = getenv("KFDIRECT_SCALE");
    unsigned long value = text ? strtoul(text, NULL, 10) : 1;

    return value > 0 && value < 4096 ? (unsigned)value : 1;
}

uint64_t scaled(uint64_t size)
{
    return scale() == 1 ? size : round_up(size / scale(), MIB(2));
}

unsigned scaled_count(unsigned count)
{
    return count / scale() > 2 ? count / scale() : 2;
}

void need_free(uint64_t bytes)
{
    if (free_bytes(0) < bytes)
        skip_case("needs %llu MiB of device memory", (unsigned long long)(bytes >> 20));
}

bool all_peers(void)
{
    int count = 0, can = 1;

    if (hipGetDeviceCount(&count) != hipSuccess)
        return false;
    for (int i = 0; i < count * count && can; i++) {
        if (i / count != i % count &&
            hipDeviceCanAccessPeer(&can, i / count, i % count) != hipSuccess)
            can = 0;
    }
    return can;
}

bool cpu_sees_memory(int device)
{
    int large_bar = 0, integrated = 0;

    (void)hipDeviceGetAttribute(&large_bar, hipDeviceAttributeIsLargeBar, device);
    (void)hipDeviceGetAttribute(&integrated, hipDeviceAttributeIntegrated, device);
    return large_bar || integrated;
}

void need_peers(void)
{
    if (!all_peers())
        skip_case("not every device of %s reaches every other's memory", machine.name);
}

void need_cpu_view(void)
{
    if (!cpu_sees_memory(0))
        skip_case("the CPU does not see the device's memory on %s", machine.name);
}

void need_vmm(void)
{
    int supported = 0;

    HIP_OK(
        hipDeviceGetAttribute(&supported, hipDeviceAttributeVirtualMemoryManagementSupported, 0));
    if (!supported)
        skip_case("no VMM on %s", machine.name);
}

void hip_check(hipError_t got, hipError_t want, const char *call, const char *file, int line)
{
    if (got == want)
        return;
    print_error("%s:%d: %s\n  gave %s (%d), wanted %s (%d); text: %s\n", file, line, call,
                hipGetErrorName(got), (int)got, hipGetErrorName(want), (int)want, kfd_error_text());
    _fail(file, line);
}

hipMemAllocationProp device_prop(int device)
{
    hipMemAllocationProp prop;

    memset(&prop, 0, sizeof(prop));
    prop.type = hipMemAllocationTypePinned;
    prop.location.type = hipMemLocationTypeDevice;
    prop.location.id = device;
    return prop;
}

hipMemAllocationProp shareable_prop(int device)
{
    hipMemAllocationProp prop = device_prop(device);

    prop.requestedHandleType = hipMemHandleTypePosixFileDescriptor;
    return prop;
}

hipMemAccessDesc device_access(int device, hipMemAccessFlags flags)
{
    hipMemAccessDesc desc;

    memset(&desc, 0, sizeof(desc));
    desc.location.type = hipMemLocationTypeDevice;
    desc.location.id = device;
    desc.flags = flags;
    return desc;
}

hipMemAccessDesc host_access(hipMemAccessFlags flags)
{
    hipMemAccessDesc desc = device_access(0, flags);

    desc.location.type = hipMemLocationTypeHost;
    return desc;
}

hipError_t set_access(void *va, uint64_t size, int device, hipMemAccessFlags flags)
{
    hipMemAccessDesc desc = device_access(device, flags);

    return hipMemSetAccess(va, size, &desc, 1);
}

uint64_t get_access(void *va, int device)
{
    hipMemAccessDesc desc = device_access(device, hipMemAccessFlagsProtNone);
    unsigned long long flags = 99;

    HIP_OK(hipMemGetAccess(&flags, &desc.location, va));
    return flags;
}

uint64_t granularity(int device, hipMemAllocationGranularity_flags option)
{
    hipMemAllocationProp prop = device_prop(device);
    size_t value = 0;

    HIP_OK(hipMemGetAllocationGranularity(&value, &prop, option));
    assert_true(value != 0 && (value & (value - 1)) == 0);
    return value;
}

static void memory_info(int device, size_t *left, size_t *total)
{
    int current = 0;

    HIP_OK(hipGetDevice(&current));
    HIP_OK(hipSetDevice(device));
    HIP_OK(hipMemGetInfo(left, total));
    HIP_OK(hipSetDevice(current));
}

uint64_t free_bytes(int device)
{
    size_t left = 0, total = 0;

    memory_info(device, &left, &total);
    return left;
}

uint64_t total_bytes(int device)
{
    size_t left = 0, total = 0;

    memory_info(device, &left, &total);
    return total;
}

uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

#define STAMPS 3

static uint64_t stamp_offset(uint64_t size, unsigned i)
{
    const uint64_t word = sizeof(uint64_t);

    return i == 0 ? 0 : i == 1 ? size / 2 / word * word : size - word;
}

static uint64_t stamp_word(uint64_t seed, unsigned i)
{
    uint64_t x = seed * STAMPS + i + 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void cpu_stamp(void *va, uint64_t size, uint64_t seed)
{
    for (unsigned i = 0; i < STAMPS; i++) {
        uint64_t word = stamp_word(seed, i);

        HIP_OK(
            hipMemcpy(at(va, stamp_offset(size, i)), &word, sizeof(word), hipMemcpyHostToDevice));
    }
}

/* STAMPS: all there; else the first that differs. */
static unsigned cpu_compare(void *va, uint64_t size, uint64_t seed)
{
    for (unsigned i = 0; i < STAMPS; i++) {
        uint64_t word = 0;

        if (hipMemcpy(&word, at(va, stamp_offset(size, i)), sizeof(word), hipMemcpyDeviceToHost) !=
                hipSuccess ||
            word != stamp_word(seed, i))
            return i;
    }
    return STAMPS;
}

bool cpu_matches(void *va, uint64_t size, uint64_t seed)
{
    return cpu_compare(va, size, seed) == STAMPS;
}

void cpu_expect(void *va, uint64_t size, uint64_t seed)
{
    unsigned i = cpu_compare(va, size, seed);

    if (i < STAMPS)
        fail_msg("CPU view: wrong bytes at %p+0x%llx; text: %s", va,
                 (unsigned long long)stamp_offset(size, i), kfd_error_text());
}

void host_stamp(void *va, uint64_t size, uint64_t seed)
{
    for (unsigned i = 0; i < STAMPS; i++)
        *(volatile uint64_t *)at(va, stamp_offset(size, i)) = stamp_word(seed, i);
}

bool host_matches(const void *va, uint64_t size, uint64_t seed)
{
    for (unsigned i = 0; i < STAMPS; i++) {
        if (*(const volatile uint64_t *)((const char *)va + stamp_offset(size, i)) !=
            stamp_word(seed, i))
            return false;
    }
    return true;
}

void gpu_stamp(int device, void *va, uint64_t size, uint64_t seed)
{
    if (!machine.fake) {
        cpu_stamp(va, size, seed);
        return;
    }
    for (unsigned i = 0; i < STAMPS; i++) {
        uint64_t word = stamp_word(seed, i);
        uint64_t where = (uint64_t)(uintptr_t)va + stamp_offset(size, i);
        struct fake_translation fault;

        if (fake_gpu_write(machine.fake, (uint32_t)device, where, &word, sizeof(word), &fault) != 0)
            fail_msg("GPU %d cannot write 0x%llx: %s", device, (unsigned long long)where,
                     fault.text);
    }
}

void gpu_expect(int device, void *va, uint64_t size, uint64_t seed)
{
    if (!machine.fake) {
        cpu_expect(va, size, seed);
        return;
    }
    for (unsigned i = 0; i < STAMPS; i++) {
        uint64_t word = 0, where = (uint64_t)(uintptr_t)va + stamp_offset(size, i);
        struct fake_translation fault;

        if (fake_gpu_read(machine.fake, (uint32_t)device, where, &word, sizeof(word), &fault) != 0)
            fail_msg("GPU %d cannot read 0x%llx: %s", device, (unsigned long long)where,
                     fault.text);
        if (word != stamp_word(seed, i))
            fail_msg("GPU %d: wrong bytes at 0x%llx", device, (unsigned long long)where);
    }
}

void gpu_fault(int device, void *va, enum fake_access access, enum fake_fault_reason reason)
{
    struct fake_translation result;
    int err;

    if (!machine.fake) {
        before.unchecked++;
        return;
    }
    err = fake_gpu_translate(machine.fake, (uint32_t)device, (uint64_t)(uintptr_t)va, access,
                             &result);
    if (result.reason != reason || (err == 0) != (reason == FAKE_FAULT_NONE))
        fail_msg("GPU %d at %p, access %d: reason %d (%s), wanted %d", device, va, (int)access,
                 (int)result.reason, result.text, (int)reason);
}

void gpu_same_memory(int device_a, void *a, int device_b, void *b)
{
    struct fake_translation first, second;

    if (!machine.fake) {
        before.unchecked++;
        return;
    }
    assert_int_equal(fake_gpu_translate(machine.fake, (uint32_t)device_a, (uint64_t)(uintptr_t)a,
                                        FAKE_READ, &first),
                     0);
    assert_int_equal(fake_gpu_translate(machine.fake, (uint32_t)device_b, (uint64_t)(uintptr_t)b,
                                        FAKE_READ, &second),
                     0);
    assert_true(first.object == second.object && first.offset == second.offset);
}

static sigjmp_buf touch_failed;

static void on_touch_signal(int sig)
{
    siglongjmp(touch_failed, 1);
}

static bool touch(volatile unsigned char *va, bool write)
{
    struct sigaction action = {.sa_handler = on_touch_signal}, segv, bus;
    volatile bool fine = false;

    sigaction(SIGSEGV, &action, &segv);
    sigaction(SIGBUS, &action, &bus);
    if (sigsetjmp(touch_failed, 1) == 0) {
        unsigned char byte = *va;

        if (write)
            *va = byte;
        fine = true;
    }
    sigaction(SIGSEGV, &segv, NULL);
    sigaction(SIGBUS, &bus, NULL);
    return fine;
}

bool cpu_can_read(const void *va)
{
    return touch((volatile unsigned char *)(uintptr_t)va, false);
}

bool cpu_can_write(void *va)
{
    return touch(va, true);
}

unsigned open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 3; /* ".", ".." and the directory itself */
}

struct map_lines count_map_lines(uint64_t low, uint64_t high)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    struct map_lines lines = {0, 0};
    char line[512];

    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps)) {
        unsigned long long start, end, inode = 0;

        if (sscanf(line, "%llx-%llx %*s %*s %*s %llu", &start, &end, &inode) != 3)
            continue;
        if (end <= low || start >= high)
            continue;
        lines.all++;
        if (inode != 0)
            lines.backed++;
    }
    fclose(maps);
    return lines;
}

void peer_start(struct peer *peer, int (*body)(int socket, int arg), int arg)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    fflush(NULL);
    peer->pid = fork();
    assert_true(peer->pid >= 0);
    if (peer->pid == 0) {
        close(pair[0]);
        _exit(body(pair[1], arg));
    }
    close(pair[1]);
    peer->socket = pair[0];
}

int peer_wait(struct peer *peer)
{
    int status = 0;

    close(peer->socket);
    if (waitpid(peer->pid, &status, 0) != peer->pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void children_gone(struct peer *peers, unsigned count)
{
    unsigned without = 0;

    for (unsigned i = 0; i < count; i++)
        without += peer_wait(&peers[i]) == 77;
    if (without != count)
        fail_msg("%u of %u children failed", count - without, count);
    skip_case("the devices of %s do not reach each other, or the CPU not them", machine.name);
}

#define MAX_FDS 64

int send_message(int socket, const void *data, size_t size, const int *fds, unsigned count)
{
    union {
        char room[CMSG_SPACE(sizeof(int) * MAX_FDS)];
        struct cmsghdr align;
    } control;
    struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    assert_true(count <= MAX_FDS && size > 0);
    if (count) {
        struct cmsghdr *header;

        memset(&control, 0, sizeof(control));
        message.msg_control = control.room;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -EIO;
}

int receive_message(int socket, void *data, size_t size, int *fds, unsigned count)
{
    union {
        char room[CMSG_SPACE(sizeof(int) * MAX_FDS)];
        struct cmsghdr align;
    } control;
    struct iovec part = {.iov_base = data, .iov_len = size};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof(control.room)};
    struct cmsghdr *header;

    if (recvmsg(socket, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC) != (ssize_t)size)
        return -EIO;
    if (count == 0)
        return 0;
    header = CMSG_FIRSTHDR(&message);
    if (!header || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len != CMSG_LEN(sizeof(int) * count))
        return -EIO;
    memcpy(fds, CMSG_DATA(header), sizeof(int) * count);
    return 0;
}

int descriptor_of_process(pid_t pid, int fd)
{
    int process = (int)syscall(SYS_pidfd_open, pid, 0), result;

    if (process < 0)
        return -errno;
    result = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
    if (result < 0)
        result = -errno;
    close(process);
    return result;
}
