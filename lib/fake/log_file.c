/* SPDX-License-Identifier: MIT */
#include "fake/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kfd/decode.h"

void fake_log_describe(const struct fake_log_record *r, char *text, size_t size)
{
    struct fake_log_mapping m;
    int len;

    switch (r->kind) {
    case FAKE_LOG_OPEN:
        if (r->file_kind == FAKE_FILE_KFD)
            snprintf(text, size, "OPEN kfd = %d", r->result < 0 ? r->result : r->fd);
        else
            snprintf(text, size, "OPEN %s gpu=%u = %d",
                     r->file_kind == FAKE_FILE_RENDER ? "render" : "primary", r->gpu,
                     r->result < 0 ? r->result : r->fd);
        return;
    case FAKE_LOG_CLOSE:
        snprintf(text, size, "CLOSE %s fd=%d", r->object >> 63 ? "node" : "dmabuf", r->fd);
        return;
    case FAKE_LOG_MAP:
        memcpy(&m, r->bytes, sizeof(m));
        snprintf(text, size,
                 "MMAP %s fd=%d addr=0x%llx size=0x%llx prot=%d flags=0x%x offset=0x%llx "
                 "-> 0x%llx = %d",
                 r->object >> 63 ? "node" : "dmabuf", r->fd, (unsigned long long)m.addr,
                 (unsigned long long)m.size, m.prot, (unsigned int)m.flags,
                 (unsigned long long)m.offset, (unsigned long long)m.out, r->result);
        return;
    default:
        len = kfd_decode_call(r->request, r->in != 0 ? r->bytes : NULL,
                              r->out != 0 ? r->bytes + r->in : NULL, text, size);
        if (len >= 0 && (size_t)len < size)
            snprintf(text + len, size - (size_t)len, " = %d", r->result);
    }
}

static void print_hex(FILE *out, const uint8_t *bytes, uint32_t n)
{
    fputc(' ', out);
    if (n == 0)
        fputc('-', out);
    for (uint32_t i = 0; i < n; i++)
        fprintf(out, "%02x", bytes[i]);
}

void fake_log_print_header(const struct fake *fake, FILE *out)
{
    fprintf(out, FAKE_LOG_MAGIC "\t%s\t%s\n", fake->machine_text, fake->kernel_text);
}

void fake_log_print(const struct fake_log_record *r, FILE *out)
{
    char text[512];

    fake_log_describe(r, text, sizeof(text));
    fprintf(out, "%d %llu %d %d %u %d %lx %d %llx", (int)r->pid, (unsigned long long)r->sequence,
            (int)r->kind, (int)r->file_kind, r->node, (int)r->gpu, r->request, r->result,
            (unsigned long long)r->object);
    print_hex(out, r->bytes, r->in);
    print_hex(out, r->bytes + r->in, r->out);
    print_hex(out, r->bytes + r->in + r->out, r->ids);
    fprintf(out, " # %s\n", text);
}

/* No descriptor is kept: a program may close all that it does not know. */
static int open_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

    return fd >= 0 ? fd : -errno;
}

static void write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, text, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        text += n;
        size -= (size_t)n;
    }
}

int fake_log_file_begin(const struct fake *fake, const char *path)
{
    int fd = open_file(path), saved = errno;
    char *text = NULL;
    size_t size = 0;
    struct stat st;
    FILE *out;

    if (fd < 0)
        return fd;
    out = open_memstream(&text, &size);
    if (out == NULL) {
        close(fd);
        return -ENOMEM;
    }
    fake_log_print_header(fake, out);
    fclose(out);
    /* Of several that begin at once, one writes it. */
    flock(fd, LOCK_EX);
    if (fstat(fd, &st) == 0 && (st.st_size == 0 || !S_ISREG(st.st_mode)))
        write_all(fd, text, size);
    close(fd);
    free(text);
    errno = saved;
    return 0;
}

void fake_log_file_add(const char *path, const struct fake_log_record *record)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    int fd;

    if (out == NULL)
        return;
    fake_log_print(record, out);
    fclose(out);
    fd = text != NULL ? open_file(path) : -1;
    if (fd >= 0) {
        write_all(fd, text, size);
        close(fd);
    }
    free(text);
}
