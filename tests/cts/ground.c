/* SPDX-License-Identifier: MIT */
/* Where the cases run: the fake or a driver, what GPUs are there, and a case's way in. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "cts.h"

#define NODES "/sys/devices/virtual/kfd/kfd/topology/nodes"

int cts_ground_init(struct cts *c, const char *machine, const char *kernel)
{
    struct fake_options options = {.size = sizeof options,
                                   .machine = machine,
                                   .kernel = kernel,
                                   .flags = FAKE_QUIRK_T1 | FAKE_QUIRK_T5};
    int ret;

    if (!machine) {
        c->sys = kfd_sys_linux();
        return 0;
    }
    ret = fake_create(&options, &c->fake);
    if (ret < 0) {
        printf("# fake %s: %s\n", machine, fake_error_text());
        return ret;
    }
    c->sys = fake_sys(c->fake);
    return 0;
}

void cts_log(const char *text)
{
    int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    /* one write is one line; the log is no more than a help */
    if (write(fd, text, strlen(text)) < 0)
        errno = 0;
    close(fd);
}

void cts_expect_report(struct cts *c, const char *regex)
{
    if (!c->fake)
        cts_log(cts_text("kfdirect-expect: %s", regex));
}

void cts_crashes(struct cts *c)
{
    const char *wanted = getenv("KFDIRECT_CTS_CRASH");

    if (!wanted || strcmp(wanted, c->name))
        cts_skip(c, "may stop the kernel; KFDIRECT_CTS_CRASH=%s runs it", c->name);
}

static uint64_t property(const char *text, const char *key)
{
    size_t n = strlen(key);

    for (const char *p = text; p && *p; p = strchr(p, '\n'), p += p != NULL)
        if (!strncmp(p, key, n) && p[n] == ' ')
            return strtoull(p + n, NULL, 10);
    return 0;
}

static int read_node(struct cts *c, uint32_t node, const char *file, char *buf, size_t size)
{
    return c->sys->ops->read_file(c->sys, cts_text(NODES "/%u/%s", node, file), buf, size);
}

int cts_ground_scan(struct cts *c)
{
    char buf[4096];

    c->nodes = c->gpus = 0;
    for (;; c->nodes++) {
        struct cts_gpu *g = &c->gpu[c->gpus];

        if (read_node(c, c->nodes, "gpu_id", buf, sizeof buf) < 0)
            break;
        memset(g, 0, sizeof *g);
        g->id = (uint32_t)strtoul(buf, NULL, 10);
        if (!g->id || c->gpus == CTS_MAX_GPUS - 1)
            continue;
        g->drm = -1;
        g->node = c->nodes;
        if (read_node(c, c->nodes, "properties", buf, sizeof buf) < 0)
            continue;
        g->minor = (uint32_t)property(buf, "drm_render_minor");
        if (read_node(c, c->nodes, "mem_banks/0/properties", buf, sizeof buf) >= 0) {
            g->vram = property(buf, "size_in_bytes");
            g->large_bar = property(buf, "heap_type") == 1;
        }
        c->gpus++;
    }
    return 0;
}

int cts_open_render(struct cts *c, uint32_t gpu)
{
    return c->sys->ops->open_path(c->sys, cts_text("/dev/dri/renderD%u", c->gpu[gpu].minor),
                                  O_RDWR | O_CLOEXEC);
}

void cts_open(struct cts *c)
{
    struct kfd_ioctl_get_version_args version = {0};
    struct kfd_process_device_apertures apertures[CTS_MAX_GPUS];
    struct kfd_ioctl_get_process_apertures_new_args a = {
        .kfd_process_device_apertures_ptr = (uintptr_t)apertures,
    };

    c->kfd = c->sys->ops->open_path(c->sys, "/dev/kfd", O_RDWR | O_CLOEXEC);
    if (c->kfd < 0)
        cts_skip(c, "/dev/kfd: %s", strerror(-c->kfd));
    cts_request(c, c->kfd, KFD_CODE_GET_VERSION, &version);
    c->minor = version.minor_version;
    cts_request(c, c->kfd, KFD_CODE_GET_PROCESS_APERTURES_NEW, &a);
    if (a.num_of_nodes > CTS_MAX_GPUS)
        a.num_of_nodes = CTS_MAX_GPUS;
    if (a.num_of_nodes)
        cts_request(c, c->kfd, KFD_CODE_GET_PROCESS_APERTURES_NEW, &a);
    for (uint32_t i = 0; i < c->gpus; i++) {
        struct drm_version v = {0};

        for (uint32_t k = 0; k < a.num_of_nodes; k++)
            if (apertures[k].gpu_id == c->gpu[i].id)
                c->gpu[i].va_limit = apertures[k].gpuvm_limit;
        c->gpu[i].drm = cts_open_render(c, i);
        if (c->gpu[i].drm >= 0 && cts_request(c, c->gpu[i].drm, DRM_CODE_VERSION, &v) >= 0)
            c->drm_minor = (uint32_t)v.version_minor;
    }
    c->va = c->gpus && c->gpu[0].va_limit >> 40 == 0 ? UINT64_C(0x7000000000)
                                                     : UINT64_C(0x7e0000000000);
}

void cts_start(struct cts *c)
{
    cts_open(c);
    for (uint32_t i = 0; i < c->gpus; i++) {
        struct kfd_ioctl_acquire_vm_args a = {.drm_fd = (uint32_t)c->gpu[i].drm,
                                              .gpu_id = c->gpu[i].id};

        if (cts_request(c, c->kfd, KFD_CODE_ACQUIRE_VM, &a) < 0)
            cts_skip(c, "the VM of GPU %u cannot be acquired", i);
    }
}

void cts_fork(struct cts *c, void (*fn)(struct cts *c, void *arg), void *arg)
{
    int status = 0;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        fn(c, arg);
        fflush(stdout);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status)
        cts_row(c, "the forked child", 0, -ECHILD, "status 0x%x", status);
}
