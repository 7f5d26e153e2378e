/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_PATH "/bin:/usr/bin"
/* Exit codes, as a shell has them. */
#define CANNOT_START 126
#define NOT_FOUND 127

/* A program's file in memory. */
struct image {
    const char *bytes;
    size_t size;
};

static bool is_program(const char *path, int *err)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return false;
    if (S_ISREG(st.st_mode) && access(path, X_OK) == 0)
        return true;
    *err = EACCES;
    return false;
}

static int find(const char *name, char *path)
{
    const char *dirs = getenv("PATH");
    int err = ENOENT;

    if (strchr(name, '/') != NULL) {
        snprintf(path, PATH_MAX, "%s", name);
        if (is_program(path, &err))
            return 0;
        return err == EACCES || access(name, F_OK) == 0 ? EACCES : errno;
    }
    for (const char *dir = dirs != NULL ? dirs : DEFAULT_PATH; name[0] != '\0'; dir++) {
        size_t len = strcspn(dir, ":");

        snprintf(path, PATH_MAX, "%.*s%s%s", (int)len, dir, len > 0 ? "/" : "", name);
        if (is_program(path, &err))
            return 0;
        dir += len;
        if (*dir == '\0')
            break;
    }
    return err;
}

/* A part of the image, if it is all there. */
static const void *part(const struct image *image, uint64_t at, uint64_t size)
{
    return at <= image->size && size <= image->size - at ? image->bytes + at : NULL;
}

static const ElfW(Phdr) *
    segment(const struct image *image, const ElfW(Ehdr) * head, uint32_t type, uint64_t address)
{
    for (uint32_t i = 0; i < head->e_phnum; i++) {
        const ElfW(Phdr) *p = part(image, head->e_phoff + i * sizeof(*p), sizeof(*p));

        if (p != NULL && p->p_type == type &&
            (type != PT_LOAD || (address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz)))
            return p;
    }
    return NULL;
}

/* The name at an offset of the table of names, which the program knows by address. */
static const char *name_at(const struct image *image, const ElfW(Ehdr) * head, uint64_t table,
                           uint64_t offset)
{
    const ElfW(Phdr) *load = segment(image, head, PT_LOAD, table);
    uint64_t at = load != NULL ? table - load->p_vaddr + load->p_offset + offset : image->size;

    return at < image->size && memchr(image->bytes + at, 0, image->size - at) != NULL
               ? image->bytes + at
               : "";
}

static void find_runtime(const struct image *image, const ElfW(Ehdr) * head, struct program *out)
{
    const ElfW(Phdr) *dynamic = segment(image, head, PT_DYNAMIC, 0);
    const ElfW(Dyn) *d = dynamic != NULL ? part(image, dynamic->p_offset, dynamic->p_filesz) : NULL;
    size_t n = d != NULL ? dynamic->p_filesz / sizeof(*d) : 0;
    uint64_t table = 0;

    for (size_t i = 0; i < n && d[i].d_tag != DT_NULL; i++) {
        if (d[i].d_tag == DT_STRTAB)
            table = d[i].d_un.d_ptr;
    }
    for (size_t i = 0; i < n && d[i].d_tag != DT_NULL; i++) {
        const char *name =
            d[i].d_tag == DT_NEEDED ? name_at(image, head, table, d[i].d_un.d_val) : "";

        if (strncmp(name, "libasan.so", 10) == 0)
            snprintf(out->runtime, sizeof(out->runtime), "%s", name);
    }
}

static void look_at_elf(const struct image *image, struct program *out)
{
    const ElfW(Ehdr) *head = part(image, 0, sizeof(*head));
    Elf64_Half machine = EM_NONE;

#ifdef __x86_64__
    machine = EM_X86_64;
#elif defined(__aarch64__)
    machine = EM_AARCH64;
#endif
    if (head == NULL ||
        head->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        (machine != EM_NONE && head->e_machine != machine))
        out->closed = "it is for another kind of machine";
    else if (segment(image, head, PT_INTERP, 0) == NULL)
        out->closed = "it is statically linked";
    else
        find_runtime(image, head, out);
}

static int look(const char *path, struct program *out, int depth);

static int look_at_script(const struct image *image, struct program *out, int depth)
{
    char interpreter[PATH_MAX];
    size_t at = 2, len;

    while (at < image->size && (image->bytes[at] == ' ' || image->bytes[at] == '\t'))
        at++;
    for (len = 0; at + len < image->size && len < sizeof(interpreter) - 1 &&
                  strchr(" \t\n", image->bytes[at + len]) == NULL;
         len++)
        interpreter[len] = image->bytes[at + len];
    interpreter[len] = '\0';
    return depth < 4 ? look(interpreter, out, depth + 1) : ELOOP;
}

static int look(const char *path, struct program *out, int depth)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
    struct image image;
    struct stat st;
    void *map;

    if (fd < 0) /* it may be run all the same, or the interpreter is missing: execve tells */
        return 0;
    if (fstat(fd, &st) != 0 || st.st_size == 0) {
        close(fd);
        return 0;
    }
    image.size = (size_t)st.st_size;
    map = mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return errno;
    image.bytes = map;
    if (image.size > 4 && memcmp(map, ELFMAG, SELFMAG) == 0)
        look_at_elf(&image, out);
    else if (image.size > 2 && memcmp(map, "#!", 2) == 0)
        err = look_at_script(&image, out, depth);
    munmap(map, image.size);
    if (((st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
         (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != getegid())) &&
        err == 0)
        out->closed = "it is set-user-ID or set-group-ID";
    return err;
}

int program_look(const char *name, struct program *out)
{
    int err;

    memset(out, 0, sizeof(*out));
    err = find(name, out->path);
    return err != 0 ? err : look(out->path, out, 0);
}

bool program_library(const char *name, const char *built, char *out)
{
    const char *const places[] = {built, KFDIRECT_PRELOAD_FROM_BIN};
    char self[PATH_MAX], path[PATH_MAX + 128];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    if (n <= 0)
        return false;
    self[n] = '\0';
    slash = strrchr(self, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s/%s", self, places[i], name);
        if (realpath(path, out) != NULL)
            return true;
    }
    return false;
}

/* First of all that is preloaded, so that nothing else sees a device open; but a sanitizer's
 * runtime must be before it. */
static int set_preload(const char *library, const struct program *program)
{
    const char *others = getenv("LD_PRELOAD");
    size_t len = strlen(library);
    char *all;
    int err;

    if (others == NULL)
        others = "";
    if (strncmp(others, library, len) == 0 && (others[len] == ':' || others[len] == '\0'))
        others += others[len] == ':' ? len + 1 : len;
    if (asprintf(&all, "%s%s%s%s%s", program->runtime, program->runtime[0] ? ":" : "", library,
                 others[0] ? ":" : "", others) < 0)
        return -1;
    err = setenv("LD_PRELOAD", all, 1);
    free(all);
    return err;
}

int program_start(char **argv, const char *library, const char *loss)
{
    struct program program;
    int err = program_look(argv[0], &program);

    if (err == 0 && program.closed != NULL) {
        fprintf(stderr, "kfdirect: %s: %s, so no library can be put under it: %s\n", program.path,
                program.closed, loss);
        return CANNOT_START;
    }
    if (err == 0 && library[0] != '\0' && set_preload(library, &program) != 0)
        err = errno;
    if (err == 0) {
        execvp(argv[0], argv);
        err = errno;
    }
    fprintf(stderr, "kfdirect: %s: %s\n", argv[0], strerror(err));
    return err == ENOENT ? NOT_FOUND : CANNOT_START;
}
