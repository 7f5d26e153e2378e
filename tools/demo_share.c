/* SPDX-License-Identifier: MIT */
/*
 * One handle for two processes: the parent exports it and sends the descriptor over a socket; the
 * child imports it, maps it at an address of its own, checks the bytes, writes an answer into the
 * memory and reports back.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "demo.h"

#define ANSWER_WORDS 512u      /* the first page */
#define BLOCK_WORDS (1u << 16) /* what the child reads at a time */

struct request {
    uint64_t size, pattern, answer;
};

struct reply {
    uint64_t checked; /* bytes found as written */
    uint64_t ioctls;
    bool answered, gpu_agrees, clean;
    bool unseen;    /* the CPU cannot see the memory: nothing could be checked */
    char text[256]; /* what went wrong; "" if nothing */
};

static bool send_fd(int sock, const struct request *request, int fd)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec data = {.iov_base = (void *)request, .iov_len = sizeof(*request)};
    struct msghdr msg = {.msg_iov = &data,
                         .msg_iovlen = 1,
                         .msg_control = control,
                         .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&msg);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    return sendmsg(sock, &msg, MSG_NOSIGNAL) == (ssize_t)sizeof(*request);
}

static int receive_fd(int sock, struct request *request)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec data = {.iov_base = request, .iov_len = sizeof(*request)};
    struct msghdr msg = {.msg_iov = &data,
                         .msg_iovlen = 1,
                         .msg_control = control,
                         .msg_controllen = sizeof(control)};
    struct cmsghdr *header;
    int fd;

    if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(*request))
        return -1;
    header = CMSG_FIRSTHDR(&msg);
    if (!header || header->cmsg_type != SCM_RIGHTS)
        return -1;
    memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    return fd;
}

static bool failed(struct reply *reply, const char *what, hipError_t err)
{
    if (err == hipSuccess)
        return false;
    snprintf(reply->text, sizeof(reply->text), "%s: %s: %s", what, hipGetErrorName(err),
             kfd_error_text());
    return true;
}

/* Checks and answers; the memory is mapped at va. */
static void child_look(struct demo *demo, const struct request *request, void *va,
                       struct reply *reply)
{
    static uint64_t words[BLOCK_WORDS];

    for (uint64_t done = 0; done < request->size; done += sizeof(words)) {
        int err = demo_copy(demo, 0, (char *)va + done, words, sizeof(words), false);

        reply->unseen = err == -EOPNOTSUPP;
        if (reply->unseen)
            return;
        if (err) {
            snprintf(reply->text, sizeof(reply->text), "reading: %s", kfd_error_text());
            return;
        }
        for (size_t i = 0; i < BLOCK_WORDS; i++) {
            if (words[i] != demo_word(request->pattern, done / 8 + i)) {
                snprintf(reply->text, sizeof(reply->text), "other bytes at +0x%llx",
                         (unsigned long long)(done + i * 8));
                return;
            }
        }
        reply->checked += sizeof(words);
    }
    reply->gpu_agrees =
        !demo->machine.fake ||
        (fake_gpu_read(demo->machine.fake, 0, (uintptr_t)va, words, sizeof(words), NULL) == 0 &&
         words[0] == demo_word(request->pattern, 0) &&
         words[BLOCK_WORDS - 1] == demo_word(request->pattern, BLOCK_WORDS - 1));
    demo_fill(request->answer, 0, words, ANSWER_WORDS);
    reply->answered = demo_copy(demo, 0, va, words, ANSWER_WORDS * 8, true) == 0;
}

static void child_work(struct demo *demo, int sock)
{
    hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
    hipMemGenericAllocationHandle_t handle;
    struct request request;
    struct reply reply = {0};
    int fd = receive_fd(sock, &request);
    bool mapped = false;
    void *va;

    kfd_sys_count_reset(demo->counter);
    if (fd < 0) {
        snprintf(reply.text, sizeof(reply.text), "no descriptor arrived");
        goto out;
    }
    if (failed(&reply, "hipSetDevice", hipSetDevice(0)) ||
        failed(&reply, "hipMemImportFromShareableHandle",
               hipMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
                                               hipMemHandleTypePosixFileDescriptor))) {
        close(fd);
        goto out;
    }
    close(fd);
    if (!failed(&reply, "hipMemAddressReserve",
                hipMemAddressReserve(&va, request.size, 0, NULL, 0))) {
        mapped = !failed(&reply, "hipMemMap", hipMemMap(va, request.size, 0, handle, 0));
        if (mapped &&
            !failed(&reply, "hipMemSetAccess", hipMemSetAccess(va, request.size, &access, 1)))
            child_look(demo, &request, va, &reply);
        reply.clean = (!mapped || hipMemUnmap(va, request.size) == hipSuccess) &&
                      hipMemAddressFree(va, request.size) == hipSuccess;
    }
    reply.clean &= hipMemRelease(handle) == hipSuccess;
out:
    reply.ioctls = demo_ioctls(demo);
    if (write(sock, &reply, sizeof(reply)) != (ssize_t)sizeof(reply))
        _exit(1);
    _exit(0);
}

/* Whether the child's answer is what the parent reads at its own address. */
static bool answer_arrived(struct demo *demo, const struct demo_piece *piece, uint64_t answer)
{
    uint64_t words[ANSWER_WORDS];
    bool same =
        demo_copy(demo, piece->owner, demo->base + piece->offset, words, sizeof(words), false) == 0;

    for (size_t i = 0; same && i < ANSWER_WORDS; i++)
        same = words[i] == demo_word(answer, i);
    return same;
}

static bool judge(struct demo *demo, const struct demo_piece *piece, const struct request *request,
                  const struct reply *reply)
{
    bool all = true;
    char text[24];

    if (reply->text[0])
        all = demo_check(demo, false, "the child says: %s", reply->text);
    if (reply->unseen) {
        demo_not_checked(demo, "the bytes: the CPU cannot see the memory");
    } else {
        all &= demo_check(demo, reply->checked == request->size,
                          "the child found %s as the parent wrote them",
                          tool_size(reply->checked, text));
        all &= demo_check(demo, reply->answered && answer_arrived(demo, piece, request->answer),
                          "the parent reads the child's answer in the same memory");
    }
    if (demo->machine.fake)
        all &= demo_check(demo, reply->gpu_agrees, "GPU 0 reads the same at the child's address");
    else
        demo_not_checked(demo, "the child's GPU view: nothing here executes on a GPU");
    all &= demo_check(demo, reply->clean, "the child unmapped and released its view");
    return all;
}

bool demo_share(struct demo *demo)
{
    struct demo_piece wanted = {.offset = demo->end, .size = demo->small, .reader = -1};
    hipMemGenericAllocationHandle_t handle;
    struct request request;
    struct reply reply = {0};
    struct demo_piece *piece;
    int socks[2], fd = -1, status = 0;
    bool good = false;
    pid_t child;

    if (!demo_add(demo, wanted, &handle))
        return false;
    piece = demo_find(demo, wanted.offset);
    if (!demo_rewrite(demo, piece))
        goto release;
    if (!demo_call(
            demo,
            hipMemExportToShareableHandle(&fd, handle, hipMemHandleTypePosixFileDescriptor, 0),
            "hipMemExportToShareableHandle"))
        goto release;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks)) {
        demo_check(demo, false, "socketpair: %s", strerror(errno));
        goto release;
    }
    fflush(NULL);
    child = fork();
    if (child == 0) {
        close(socks[0]);
        close(fd);
        child_work(demo, socks[1]);
    }
    close(socks[1]);
    request = (struct request){piece->size, piece->pattern, demo->next_pattern++};
    if (child < 0 || !send_fd(socks[0], &request, fd) ||
        read(socks[0], &reply, sizeof(reply)) != (ssize_t)sizeof(reply)) {
        demo_check(demo, false, "the child gave no answer");
    } else {
        demo_say(demo, "handle of the piece at +%zu MiB sent to process %d as a descriptor",
                 piece->offset / DEMO_MIB, (int)child);
        demo_say(demo, "the child made %" PRIu64 " ioctls, opening the driver included",
                 reply.ioctls);
        good = judge(demo, piece, &request, &reply);
    }
    close(socks[0]);
    if (child > 0)
        waitpid(child, &status, 0);
    good = demo_check(demo, WIFEXITED(status) && WEXITSTATUS(status) == 0,
                      "the child ended in good order") &&
           good;
    if (good)
        good = demo_rewrite(demo, piece);
release:
    if (fd >= 0)
        close(fd);
    return demo_call(demo, hipMemRelease(handle), "hipMemRelease") && good;
}
