/* SPDX-License-Identifier: MIT */
/*
 * Ends with everything alive, and so does a child of it that HIP was reset in: a search for leaks
 * finds all of it by the pointers that lead there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hip/hip_runtime_api.h>

#define TRY(call)                                                                  \
    do {                                                                           \
        if ((call) != hipSuccess)                                                  \
            exit((fprintf(stderr, "%s: %s\n", #call, hipxGetLastErrorText()), 1)); \
    } while (0)

#define CHUNK ((size_t)2 << 20)

static void map_some(void)
{
    hipMemAllocationProp prop = {.type = hipMemAllocationTypePinned,
                                 .requestedHandleTypes = hipMemHandleTypePosixFileDescriptor,
                                 .location = {.type = hipMemLocationTypeDevice}};
    hipMemAccessDesc access[] = {{{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite},
                                 {{hipMemLocationTypeDevice, 1}, hipMemAccessFlagsProtRead}};
    hipMemGenericAllocationHandle_t handle, second;
    void *base;
    int fd;

    TRY(hipMemAddressReserve(&base, 64 * CHUNK, 0, NULL, 0));
    for (size_t i = 0; i < 20; i++) {
        char *at = (char *)base + i * CHUNK;

        TRY(hipMemCreate(&handle, CHUNK, &prop, 0));
        TRY(hipMemMap(at, CHUNK, 0, handle, 0));
        TRY(hipMemSetAccess(at, CHUNK, access, 2));
    }
    TRY(hipMemExportToShareableHandle(&fd, handle, hipMemHandleTypePosixFileDescriptor, 0));
    TRY(hipMemImportFromShareableHandle(&second, &fd, hipMemHandleTypePosixFileDescriptor));
    close(fd);
}

int main(void)
{
    hipStream_t stream;
    hipEvent_t event;
    void *p;
    int status;

    for (int i = 0; i < 5; i++)
        map_some();
    TRY(hipMalloc(&p, 3 * CHUNK));
    TRY(hipHostMalloc(&p, CHUNK, 0));
    p = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TRY(hipHostRegister(p, CHUNK, 0));
    TRY(hipStreamCreate(&stream));
    TRY(hipEventCreate(&event));
    if (fork() == 0) {
        TRY(hipxReset());
        exit(0);
    }
    if (wait(&status) < 0 || status != 0)
        return 1;
    if (fork() == 0) {
        map_some();
        exit(0);
    }
    return wait(&status) < 0 || status != 0;
}
