/* SPDX-License-Identifier: MIT */
#include "fake/smi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kfd/uapi.h"

struct fake_smi {
    int fd; /* our end */
    uint32_t gpu;
    uint64_t mask; /* bit event - 1 */
    struct fake_smi *next;
};

/* Takes the masks written since, the last one counting. False when the other end is closed. */
static bool read_mask(struct fake_smi *s)
{
    uint64_t mask;
    ssize_t n;

    while ((n = recv(s->fd, &mask, sizeof(mask), MSG_DONTWAIT)) > 0) {
        if (n == (ssize_t)sizeof(mask))
            s->mask = mask;
    }
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Reads every mask and drops descriptors that were closed. */
static void sweep(struct fake_process *p)
{
    struct fake_smi **link = &p->smi;

    while (*link != NULL) {
        struct fake_smi *s = *link;

        if (read_mask(s)) {
            link = &s->next;
            continue;
        }
        *link = s->next;
        close(s->fd);
        fake_free(s);
    }
}

int fake_kfd_smi_events(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_smi_events_args *a = arg;
    int gpu = fake_gpu_of_id(call->fake, a->gpuid), ends[2];
    struct fake_smi *s;

    if (gpu < 0)
        return -EINVAL;
    sweep(call->process);
    s = fake_calloc(sizeof(*s));
    if (s == NULL)
        return -ENOMEM;
    /* Messages keep their borders, so that a reader gets whole lines. */
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
        fake_free(s);
        return -errno;
    }
    /* The program's end survives exec, as the kernel's file does. */
    fcntl(ends[1], F_SETFD, 0);
    s->fd = ends[0];
    s->gpu = (uint32_t)gpu;
    s->next = call->process->smi;
    call->process->smi = s;
    a->anon_fd = (uint32_t)ends[1];
    return 0;
}

void fake_smi_send(struct fake_process *p, uint32_t gpu, enum fake_smi_event event,
                   const char *text)
{
    char line[128];
    int n = snprintf(line, sizeof(line), "%x %s\n", event, text);

    sweep(p);
    for (struct fake_smi *s = p->smi; s != NULL; s = s->next) {
        /* A reader that does not read loses events, as it would in the kernel. */
        if (s->gpu == gpu && s->mask >> (event - 1) & 1)
            (void)!send(s->fd, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1,
                        MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

void fake_smi_destroy(struct fake_process *p)
{
    while (p->smi != NULL) {
        struct fake_smi *s = p->smi;

        p->smi = s->next;
        close(s->fd);
        fake_free(s);
    }
}
