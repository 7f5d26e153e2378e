/* SPDX-License-Identifier: MIT */
/* Doing a saved log again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fake/log_file.h"
#include "kfd/decode.h"
#include "kfd/error.h"
#include "kfd/uapi.h"

#define MAX_ARG 512u

/* A line of the log, and what stands for its addresses and descriptors now. */
struct line {
    struct fake_log_record head;
    uint32_t number;
    uint64_t in[MAX_ARG / 8], out[MAX_ARG / 8], now[MAX_ARG / 8];
    uint32_t ids[FAKE_LOG_MAX_IDS];
    char text[256];
};

/* A descriptor of this run for an object of the recorded one. */
struct stand_in {
    int fd;
};

struct replay {
    struct fake *fake;
    struct kfd_sys *sys;
    pid_t pid;                 /* whose operations are done again; 0: whose comes first */
    pid_t others[16];          /* some of the processes that are left out */
    struct fake_map by_object; /* struct stand_in * */
    struct fake_map last_line; /* that names an object, as a number */
    FILE *report;              /* or NULL */
    struct fake_replay *result;
};

static int parse_hex(const char **text, void *to, uint32_t room, uint32_t *size)
{
    uint8_t *bytes = to;
    unsigned int byte;

    *size = 0;
    while (**text == ' ')
        (*text)++;
    if (**text == '-') {
        (*text)++;
        return 0;
    }
    for (; sscanf(*text, "%2x", &byte) == 1 && **text != ' '; *text += 2) {
        if (*size == room || (*text)[1] == ' ' || (*text)[1] == '\0')
            return -EINVAL;
        bytes[(*size)++] = (uint8_t)byte;
    }
    return **text == ' ' ? 0 : -EINVAL;
}

static int parse(const char *text, struct line *l)
{
    unsigned long long sequence, object;
    int pid, kind, file_kind, gpu, used = 0;
    struct fake_log_record *h = &l->head;
    size_t len;

    memset(h, 0, sizeof(*h));
    memset(l->in, 0, sizeof(l->in));
    memset(l->out, 0, sizeof(l->out));
    if (sscanf(text, "%d %llu %d %d %u %d %lx %d %llx%n", &pid, &sequence, &kind, &file_kind,
               &h->node, &gpu, &h->request, &h->result, &object, &used) != 9)
        return -EINVAL;
    h->pid = pid;
    h->sequence = sequence;
    h->kind = kind;
    h->file_kind = file_kind;
    h->gpu = (uint32_t)gpu;
    h->object = object;
    text += used;
    if (kind < FAKE_LOG_OPEN || kind > FAKE_LOG_MAP ||
        parse_hex(&text, l->in, MAX_ARG, &h->in) != 0 ||
        parse_hex(&text, l->out, MAX_ARG, &h->out) != 0 ||
        parse_hex(&text, l->ids, sizeof(l->ids), &h->ids) != 0)
        return -EINVAL;
    text = strstr(text, "# ");
    len = text != NULL ? strcspn(text + 2, "\n") : 0;
    snprintf(l->text, sizeof(l->text), "%.*s", (int)len, text != NULL ? text + 2 : "");
    return 0;
}

static int fd_for(const struct replay *r, uint64_t object)
{
    const struct stand_in *s = fake_map_get(&r->by_object, object);

    return s != NULL ? s->fd : -1;
}

static int add_stand_in(struct replay *r, uint64_t object, int fd)
{
    struct stand_in *s = fake_map_get(&r->by_object, object);

    if (s != NULL) {
        /* One descriptor stands for all of an object. */
        r->sys->ops->close_fd(r->sys, fd);
        return 0;
    }
    s = malloc(sizeof(*s));
    if (s == NULL || fake_map_put(&r->by_object, object, s) != 0) {
        free(s);
        return -ENOMEM;
    }
    *s = (struct stand_in){.fd = fd};
    return 0;
}

/* Descriptors are copied without a line in the log, so an object that is named again is not gone.
 */
static void drop_stand_in(struct replay *r, const struct line *l)
{
    struct stand_in *s = fake_map_get(&r->by_object, l->head.object);

    if (s == NULL || (uintptr_t)fake_map_get(&r->last_line, l->head.object) > l->number)
        return;
    r->sys->ops->close_fd(r->sys, s->fd);
    fake_map_take(&r->by_object, l->head.object);
    free(s);
}

static uint32_t type_of(const struct line *l)
{
    return l->head.file_kind == FAKE_FILE_KFD ? KFD_UAPI_TYPE_KFD : KFD_UAPI_TYPE_DRM;
}

/* Requests whose arguments hold no address but those that are put right here. */
static bool can_replay(const struct line *l)
{
    static const uint8_t kfd[] = {KFD_NR_GET_VERSION,        KFD_NR_GET_PROCESS_APERTURES_NEW,
                                  KFD_NR_ACQUIRE_VM,         KFD_NR_ALLOC_MEMORY_OF_GPU,
                                  KFD_NR_FREE_MEMORY_OF_GPU, KFD_NR_MAP_MEMORY_TO_GPU,
                                  KFD_NR_AVAILABLE_MEMORY,   KFD_NR_UNMAP_MEMORY_FROM_GPU,
                                  KFD_NR_GET_DMABUF_INFO,    KFD_NR_IMPORT_DMABUF,
                                  KFD_NR_EXPORT_DMABUF,      KFD_NR_SET_MEMORY_POLICY};
    static const uint8_t drm[] = {
        DRM_NR_GEM_CLOSE,      DRM_NR_PRIME_HANDLE_TO_FD, DRM_NR_PRIME_FD_TO_HANDLE,
        DRM_NR_GEM_CREATE,     DRM_NR_GEM_MMAP,           DRM_NR_GEM_VA,
        DRM_NR_SYNCOBJ_CREATE, DRM_NR_SYNCOBJ_DESTROY,    DRM_NR_GET_CAP};
    bool is_kfd = type_of(l) == KFD_UAPI_TYPE_KFD;
    const uint8_t *list = is_kfd ? kfd : drm;
    size_t n = is_kfd ? sizeof(kfd) : sizeof(drm);

    for (size_t i = 0; i < n; i++)
        if (list[i] == _IOC_NR(l->head.request))
            return true;
    return false;
}

/* Memory that stands for what the recorded process gave; it lives to the end of the program. */
static uint64_t some_memory(uint64_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p != MAP_FAILED ? (uintptr_t)p : 0;
}

/* Puts addresses of this run into l->now. */
static void fit_in(struct line *l)
{
    static struct kfd_process_device_apertures apertures[KFD_MAX_DEVICES];
    void *arg = l->now;
    struct kfd_ioctl_map_memory_to_gpu_args *map = arg;
    struct kfd_ioctl_get_process_apertures_new_args *get = arg;
    struct kfd_ioctl_alloc_memory_of_gpu_args *alloc = arg;

    if (type_of(l) != KFD_UAPI_TYPE_KFD)
        return;
    switch (_IOC_NR(l->head.request)) {
    case KFD_NR_MAP_MEMORY_TO_GPU:
    case KFD_NR_UNMAP_MEMORY_FROM_GPU:
        map->device_ids_array_ptr = l->head.ids != 0 ? (uintptr_t)l->ids : 0;
        break;
    case KFD_NR_GET_PROCESS_APERTURES_NEW:
        get->kfd_process_device_apertures_ptr = (uintptr_t)apertures;
        break;
    case KFD_NR_ALLOC_MEMORY_OF_GPU:
        if (alloc->flags & KFD_MEM_USERPTR && alloc->mmap_offset != 0 && l->head.result == 0)
            alloc->mmap_offset = some_memory(alloc->size);
        break;
    default:
        break;
    }
}

/* Takes out of a result what a kernel is free to choose, and what it says of itself. */
static void fit_out(const struct line *l, void *arg)
{
    uint32_t nr = _IOC_NR(l->head.request), type = type_of(l);
    struct kfd_ioctl_map_memory_to_gpu_args *map = arg;
    struct kfd_ioctl_get_process_apertures_new_args *get = arg;
    struct kfd_ioctl_alloc_memory_of_gpu_args *alloc = arg;
    int *in = fake_log_fd_in(type, nr, arg), *out = fake_log_fd_out(type, nr, arg);

    if (in != NULL)
        *in = 0;
    if (out != NULL)
        *out = 0;
    if (type != KFD_UAPI_TYPE_KFD) {
        if (nr == DRM_NR_GEM_MMAP)
            memset(arg, 0, sizeof(union drm_amdgpu_gem_mmap));
        return;
    }
    if (nr == KFD_NR_GET_VERSION)
        memset(arg, 0, sizeof(struct kfd_ioctl_get_version_args));
    if (nr == KFD_NR_MAP_MEMORY_TO_GPU || nr == KFD_NR_UNMAP_MEMORY_FROM_GPU)
        map->device_ids_array_ptr = 0;
    if (nr == KFD_NR_GET_PROCESS_APERTURES_NEW)
        get->kfd_process_device_apertures_ptr = 0;
    if (nr == KFD_NR_ALLOC_MEMORY_OF_GPU)
        alloc->mmap_offset = 0;
}

static void differs(struct replay *r, const struct line *l, const char *now)
{
    struct fake_replay *out = r->result;

    if (out->differing++ == 0)
        snprintf(out->text, sizeof(out->text), "line %u: %s; now %s", l->number, l->text, now);
    if (r->report != NULL)
        fprintf(r->report, "line %u: %s\n    now %s\n", l->number, l->text, now);
}

static void compare(struct replay *r, struct line *l, const uint64_t *answer, int ret)
{
    char now[256], result[24];

    snprintf(result, sizeof(result), "= %d", ret);
    if (memcmp(l->now, l->out, l->head.out) == 0) {
        if (ret != l->head.result)
            differs(r, l, result);
        return;
    }
    kfd_decode_call(l->head.request, l->in, answer, now, sizeof(now) - sizeof(result));
    strcat(strcat(now, " "), result);
    differs(r, l, now);
}

static int replay_request(struct replay *r, struct line *l)
{
    uint64_t answer[MAX_ARG / 8];
    uint32_t nr = _IOC_NR(l->head.request);
    int fd = fd_for(r, 1ull << 63 | l->head.node), ret, *in, *out;

    if (!can_replay(l) || fd < 0 || _IOC_SIZE(l->head.request) > MAX_ARG) {
        r->result->skipped++;
        return 0;
    }
    r->result->replayed++;
    memcpy(l->now, l->in, sizeof(l->now));
    in = fake_log_fd_in(type_of(l), nr, l->now);
    if (in != NULL)
        *in = fd_for(r, l->head.object);
    fit_in(l);
    ret = r->sys->ops->request(r->sys, fd, l->head.request, l->now);
    out = fake_log_fd_out(type_of(l), nr, l->now);
    if (out != NULL && ret >= 0 && add_stand_in(r, l->head.object, *out) != 0)
        return -ENOMEM;
    memcpy(answer, l->now, sizeof(answer));
    fit_out(l, l->out);
    fit_out(l, l->now);
    compare(r, l, answer, ret);
    return 0;
}

static int replay_open(struct replay *r, struct line *l)
{
    char path[64] = "/dev/kfd";
    int fd;

    if (l->head.file_kind != FAKE_FILE_KFD) {
        uint32_t minor = l->head.gpu < r->fake->profile->gpu_count
                             ? r->fake->profile->gpus[l->head.gpu].render_minor
                             : UINT32_MAX;

        if (l->head.file_kind == FAKE_FILE_RENDER)
            snprintf(path, sizeof(path), "/dev/dri/renderD%u", minor);
        else
            snprintf(path, sizeof(path), "/dev/dri/card%u", minor - 128);
    }
    r->result->replayed++;
    fd = r->sys->ops->open_path(r->sys, path, O_RDWR | O_CLOEXEC);
    compare(r, l, l->out, fd < 0 ? fd : 0);
    return fd < 0 ? 0 : add_stand_in(r, 1ull << 63 | l->head.node, fd);
}

static void leave_out(struct replay *r, pid_t pid)
{
    size_t room = sizeof(r->others) / sizeof(r->others[0]), i = 0;

    r->result->others++;
    while (i < room && r->others[i] != 0 && r->others[i] != pid)
        i++;
    if (i < room)
        r->others[i] = pid;
}

/* Nothing was done for the process that was asked for. */
static int no_process(const struct replay *r)
{
    char list[256] = "";
    size_t room = sizeof(r->others) / sizeof(r->others[0]), used = 0;

    for (size_t i = 0; i < room && r->others[i] != 0; i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, " %d", (int)r->others[i]);
    return kfd_fail(-ESRCH, "fake_log_replay: the log has no operation of process %d, but of%s",
                    (int)r->pid, used != 0 ? list : " none");
}

static int replay_line(struct replay *r, struct line *l)
{
    if (l->head.pid != r->pid) {
        leave_out(r, l->head.pid);
        return 0;
    }
    switch (l->head.kind) {
    case FAKE_LOG_OPEN:
        return replay_open(r, l);
    case FAKE_LOG_MAP:
        r->result->skipped++;
        return 0;
    case FAKE_LOG_CLOSE:
        r->result->replayed++;
        drop_stand_in(r, l);
        return 0;
    default:
        return replay_request(r, l);
    }
}

static void close_rest(struct replay *r)
{
    for (uint64_t i = 0; i < r->by_object.capacity; i++) {
        struct stand_in *s = r->by_object.slots[i].value;

        if (s == NULL)
            continue;
        r->sys->ops->close_fd(r->sys, s->fd);
        free(s);
    }
    fake_map_clear(&r->by_object);
}

static int note_names(struct replay *r, struct line *l)
{
    void *number = (void *)(uintptr_t)l->number;
    int err;

    if (r->pid == 0)
        r->pid = l->head.pid;
    if (l->head.pid != r->pid)
        return 0;
    err = fake_map_put(&r->last_line, 1ull << 63 | l->head.node, number);

    return err == 0 && l->head.object != 0 ? fake_map_put(&r->last_line, l->head.object, number)
                                           : err;
}

/* Calls each for every line of a text but the first. */
static int each_line(struct replay *r, char *text, struct line *l,
                     int (*each)(struct replay *r, struct line *l))
{
    char *at = strchrnul(text, '\n'), *end;
    int err = 0;

    for (l->number = 2; err == 0 && at[0] != '\0' && at[1] != '\0'; l->number++, at = end) {
        char after = *(end = strchrnul(at + 1, '\n'));

        *end = '\0';
        err = parse(at + 1, l);
        *end = after;
        if (err != 0)
            return kfd_fail(err, "fake_log_replay: line %u is no operation", l->number);
        err = each(r, l);
    }
    return err;
}

int fake_log_replay(struct fake *fake, FILE *in, pid_t pid, FILE *report, struct fake_replay *out)
{
    struct replay r = {
        .fake = fake, .sys = fake_sys(fake), .pid = pid, .report = report, .result = out};
    struct line *l = calloc(1, sizeof(*l));
    char *text = NULL;
    size_t room = 0;
    int err;

    memset(out, 0, sizeof(*out));
    if (l == NULL)
        return -ENOMEM;
    if (getdelim(&text, &room, '\0', in) < 0 ||
        strncmp(text, FAKE_LOG_MAGIC "\t", sizeof(FAKE_LOG_MAGIC)) != 0)
        err = kfd_fail(-EINVAL, "fake_log_replay: this is no log");
    else
        err = each_line(&r, text, l, note_names);
    if (err == 0)
        err = each_line(&r, text, l, replay_line);
    if (err == 0 && pid != 0 && out->replayed + out->skipped == 0)
        err = no_process(&r);
    close_rest(&r);
    fake_map_clear(&r.last_line);
    free(text);
    free(l);
    return err;
}
