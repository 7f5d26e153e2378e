/* SPDX-License-Identifier: MIT */
/*
 * What the client, bug, oracle and scale programs share. Each is one process that uses the HIP
 * calls on one machine: a fake one (named by argv[1], by KFDIRECT_MACHINE, or by the program), or
 * with KFDIRECT_REAL=1 whatever driver this computer has. Every case begins and ends with the same
 * memory, mappings and descriptors in use, or it fails.
 *
 * The gpu_* helpers act as the GPU would, through the fake's page tables. On a real driver without
 * a way to run code on the GPU their contents are checked through a CPU view instead, and what only
 * a GPU can tell (faults and rights) is counted and reported as not checked; a case that is about
 * nothing else starts with need_gpu_side() and is skipped.
 */
#ifndef CLIENTS_COMMON_H
#define CLIENTS_COMMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <cmocka.h>

#include <hip/hip_runtime_api.h>
#include <kfdirect/fake.h>
#include <kfdirect/kfd.h>

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)
#define TIB(n) ((uint64_t)(n) << 40)

/*
 * Sizes and numbers of a client, divided by KFDIRECT_SCALE where that is set, so that the same
 * sequence fits a small card: a size stays at least one huge page and a multiple of it, a number at
 * least 2.
 */
uint64_t scaled(uint64_t size);
unsigned scaled_count(unsigned count);

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The machine under the program; fake is NULL on a real driver. */
struct machine {
    struct fake *fake;
    const char *name;
    int devices;
};
extern struct machine machine;

/* Runs the cases on the machine; the whole of main(). */
#define RUN_CASES(argc, argv, default_machine, cases) \
    (machine_choose(argc, argv, default_machine), run_cases(cases, COUNT_OF(cases)))
int run_cases(const struct CMUnitTest *cases, size_t count);
#define CASE(function) cmocka_unit_test_setup_teardown(function, case_setup, case_teardown)
/* For cases that leave something behind on purpose, or see to their own beginning. */
#define RAW_CASE(function) cmocka_unit_test(function)

void machine_choose(int argc, char **argv, const char *fallback);
/* Makes another fake machine the default system; only before the process's first HIP call. */
void machine_use(const char *name, const char *kernel, uint32_t flags);
int case_setup(void **state);
int case_teardown(void **state);

/* Skips the case, with the reason in the output. */
void skip_case(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void need_gpu_side(void);
void need_devices(int count);
void need_free(uint64_t bytes);
/* Every device reaches every other's memory. */
void need_peers(void);
/* The CPU sees the memory of device 0. */
void need_cpu_view(void);
/* Skips where hipDeviceAttributeVirtualMemoryManagementSupported is 0. */
void need_vmm(void);

/* Fails the case unless the call gives the code; the message has call, codes and error text. */
#define HIP_IS(code, call) hip_check(call, code, #call, __FILE__, __LINE__)
#define HIP_OK(call) HIP_IS(hipSuccess, call)
#define HIP_INVALID(call) HIP_IS(hipErrorInvalidValue, call)
void hip_check(hipError_t got, hipError_t want, const char *call, const char *file, int line);

/* For code in child processes, where cmocka's failures mean nothing: report and leave. */
#define CHILD_OK(call)                                                                      \
    do {                                                                                    \
        hipError_t child_result = (call);                                                   \
        if (child_result != hipSuccess) {                                                   \
            fprintf(stderr, "child: %s: %s (%s)\n", #call, hipGetErrorString(child_result), \
                    kfd_error_text());                                                      \
            return 1;                                                                       \
        }                                                                                   \
    } while (0)
#define CHILD_TRUE(condition)                                                      \
    do {                                                                           \
        if (!(condition)) {                                                        \
            fprintf(stderr, "child: line %d: not so: %s\n", __LINE__, #condition); \
            return 1;                                                              \
        }                                                                          \
    } while (0)

bool all_peers(void);
bool cpu_sees_memory(int device);
/* In a child: the machine lacks what the case is about. */
#define CHILD_NEEDS(condition) \
    do {                       \
        if (!(condition))      \
            return 77;         \
    } while (0)

hipMemAllocationProp device_prop(int device);
hipMemAllocationProp shareable_prop(int device);
hipMemAccessDesc device_access(int device, hipMemAccessFlags flags);
hipMemAccessDesc host_access(hipMemAccessFlags flags);
/* Sets one device's rights. */
hipError_t set_access(void *va, uint64_t size, int device, hipMemAccessFlags flags);
uint64_t get_access(void *va, int device);

static inline void *at(void *base, uint64_t offset)
{
    return (char *)base + offset;
}

/* One create-map unit of a client. */
struct piece {
    void *va;
    uint64_t size;
    hipMemGenericAllocationHandle_t handle;
};

uint64_t granularity(int device, hipMemAllocationGranularity_flags option);
uint64_t free_bytes(int device);
uint64_t total_bytes(int device);
uint64_t round_up(uint64_t value, uint64_t unit);

/*
 * Stamps: words that depend on seed and position, written at the start, in the middle and at the
 * end of a range, so that gigabytes are checked by touching three pages. The cpu_ ones go through
 * hipMemcpy.
 */
void gpu_stamp(int device, void *va, uint64_t size, uint64_t seed);
void gpu_expect(int device, void *va, uint64_t size, uint64_t seed);
void cpu_stamp(void *va, uint64_t size, uint64_t seed);
void cpu_expect(void *va, uint64_t size, uint64_t seed);
/* The same through plain loads and stores, for memory with host access; false: bytes differ. */
void host_stamp(void *va, uint64_t size, uint64_t seed);
bool host_matches(const void *va, uint64_t size, uint64_t seed);
/* True when the stamps are there, by hipMemcpy; for child processes. */
bool cpu_matches(void *va, uint64_t size, uint64_t seed);

/* The GPU's access at va must fault for this reason; FAKE_FAULT_NONE: must work. */
void gpu_fault(int device, void *va, enum fake_access access, enum fake_fault_reason reason);
#define gpu_unmapped(device, va) gpu_fault(device, va, FAKE_READ, FAKE_FAULT_NOT_MAPPED)
#define gpu_read_only(device, va)                       \
    (gpu_fault(device, va, FAKE_READ, FAKE_FAULT_NONE), \
     gpu_fault(device, va, FAKE_WRITE, FAKE_FAULT_READ_ONLY))
/* Two addresses of the GPU lead to the same byte of the same memory. */
void gpu_same_memory(int device_a, void *a, int device_b, void *b);

/* The CPU's own access: true when a load (or store) at va does not raise SIGSEGV or SIGBUS. */
bool cpu_can_read(const void *va);
bool cpu_can_write(void *va);

unsigned open_descriptors(void);
/* Lines of /proc/self/maps, and those of them that name a device or a memory file. */
struct map_lines {
    unsigned all, backed;
};
struct map_lines count_map_lines(uint64_t low, uint64_t high);

/*
 * A process beside this one on the same machine. It must be started before the first HIP call of
 * this process, since a KFD process cannot be inherited.
 */
struct peer {
    pid_t pid;
    int socket;
};
/* The child runs body(socket, arg) and exits with its result. */
void peer_start(struct peer *peer, int (*body)(int socket, int arg), int arg);
/* Its exit status; -1 when it was killed. */
int peer_wait(struct peer *peer);
/* For a child that did not answer: skips the case when the children lack what they need. */
void children_gone(struct peer *peers, unsigned count) __attribute__((noreturn));
int send_message(int socket, const void *data, size_t size, const int *fds, unsigned count);
/* Reads exactly size bytes and count descriptors. */
int receive_message(int socket, void *data, size_t size, int *fds, unsigned count);
int descriptor_of_process(pid_t pid, int fd);

#endif
