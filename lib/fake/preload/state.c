/* SPDX-License-Identifier: MIT */
#include "fake/preload/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake/file.h"
#include "fake/sysfs.h"
#include "kfd/error.h"

/* The folder of the written-out tree in the machine's directory. */
#define FAKE_TREE_NAME "tree"
/* Descriptors from here on are looked at each time. */
#define MARKS 65536u
#define HOST_PCI "/sys/bus/pci/devices"
#define SAID_VARIABLE "KFDIRECT_FAKE_SAID"

const int kfdirect_fake_preloaded = 1;

static __thread int inside __attribute__((tls_model("initial-exec")));

static pthread_once_t fake_once = PTHREAD_ONCE_INIT;
static pthread_once_t root_once = PTHREAD_ONCE_INIT;
static struct fake *_Atomic fake;
static struct kfd_sys *sys;
static char root[FAKE_PATH_SIZE + 32];
static _Atomic uint64_t marks[MARKS / 64];

bool preload_inside(void)
{
    return inside != 0;
}

void preload_enter(void)
{
    inside++;
}

void preload_leave(void)
{
    inside--;
}

/* Once for a program and all that it starts. */
static void announce(const char *spec, const struct fake *made)
{
    if (getenv(SAID_VARIABLE) != NULL)
        return;
    fprintf(stderr, "kfdirect: the fake machine %s on kernel %s stands in for the real device\n",
            spec, made->profile->kernel.name);
    setenv(SAID_VARIABLE, "1", 1);
}

static void make_fake(void)
{
    const char *spec = secure_getenv("KFDIRECT_FAKE");
    struct fake *made;

    if (spec == NULL)
        return;
    if (fake_create_from_spec(spec, &made) != 0) {
        fprintf(stderr, "kfdirect: KFDIRECT_FAKE=%s: %s\n", spec, kfd_error_text());
        return;
    }
    made->speaks = true;
    sys = fake_sys(made);
    announce(spec, made);
    atomic_store(&fake, made);
}

struct fake *preload_fake(void)
{
    struct fake *made = atomic_load_explicit(&fake, memory_order_acquire);
    int saved = errno;

    if (made != NULL)
        return made;
    preload_enter();
    pthread_once(&fake_once, make_fake);
    preload_leave();
    errno = saved;
    return atomic_load(&fake);
}

struct fake *preload_fake_if_made(void)
{
    return atomic_load_explicit(&fake, memory_order_acquire);
}

struct kfd_sys *preload_sys(void)
{
    return preload_fake() != NULL ? sys : NULL;
}

bool preload_is_own_process(struct fake *f)
{
    return atomic_load(&f->process)->pid == getpid();
}

/* The CPU of the host that begins a node of the machine. */
static unsigned int first_cpu(uint32_t node)
{
    char path[64];
    unsigned int cpu = node;
    FILE *f;

    snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", node);
    f = fopen(path, "re");
    if (f == NULL)
        return node;
    if (fscanf(f, "%u", &cpu) != 1)
        cpu = node;
    fclose(f);
    return cpu;
}

/* The host's CPUs, those that begin a node with the APIC ids the topology gives them. */
static int write_cpus(const struct fake_profile *profile, const char *dir)
{
    char path[sizeof(root) + 32], line[4096];
    unsigned int first[FAKE_MAX_CPUS], cpu = 0;
    FILE *in = fopen("/proc/cpuinfo", "re"), *out;

    for (uint32_t n = 0; n < profile->cpu_count; n++)
        first[n] = first_cpu(n);
    snprintf(path, sizeof(path), "%s/proc/cpuinfo", dir);
    out = fopen(path, "we");
    while (in != NULL && out != NULL && fgets(line, sizeof(line), in) != NULL) {
        uint32_t n = 0;

        sscanf(line, "processor : %u", &cpu);
        while (n < profile->cpu_count && first[n] != cpu)
            n++;
        if (strncmp(line, "apicid", 6) == 0 && n < profile->cpu_count)
            fprintf(out, "apicid\t\t: %u\n", profile->cpus[n].apic_base);
        else
            fputs(line, out);
    }
    if (in != NULL)
        fclose(in);
    return out != NULL && fclose(out) == 0 ? 0 : -errno;
}

/* The host's modules and one more. */
static int write_modules(const char *dir)
{
    char path[sizeof(root) + 32], line[512];
    FILE *in, *out;
    int err = 0;

    snprintf(path, sizeof(path), "%s/proc", dir);
    if (mkdir(path, 0755) != 0)
        return -errno;
    snprintf(path, sizeof(path), "%s/proc/modules", dir);
    out = fopen(path, "we");
    if (out == NULL)
        return -errno;
    fprintf(out, "amdgpu 12582912 0 - Live 0x0000000000000000\n");
    in = fopen("/proc/modules", "re");
    while (in != NULL && fgets(line, sizeof(line), in) != NULL) {
        if (strncmp(line, "amdgpu ", 7) != 0)
            fputs(line, out);
    }
    if (in != NULL)
        fclose(in);
    if (fclose(out) != 0)
        err = -errno;
    return err;
}

/* The folder of all PCI functions lists the host's as well, as links to where they are. */
static int write_pci_functions(const char *dir)
{
    char path[sizeof(root) + NAME_MAX + 32], to[NAME_MAX + 32];
    DIR *host = opendir(HOST_PCI);
    struct dirent *e;
    int err = 0;

    /* A machine without cards has no such folder. */
    for (size_t n = 4; err == 0 && n <= sizeof(HOST_PCI) - 1; n++) {
        if (HOST_PCI[n] != '/' && HOST_PCI[n] != '\0')
            continue;
        snprintf(path, sizeof(path), "%s%.*s", dir, (int)n, HOST_PCI);
        err = mkdir(path, 0755) == 0 || errno == EEXIST ? 0 : -errno;
    }
    while (host != NULL && err == 0 && (e = readdir(host)) != NULL) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(to, sizeof(to), HOST_PCI "/%s", e->d_name);
        snprintf(path, sizeof(path), "%s%s", dir, to);
        err = symlink(to, path) == 0 || errno == EEXIST ? 0 : -errno;
    }
    if (host != NULL)
        closedir(host);
    return err;
}

/* Written aside and put in place as a whole: another process may want it at the same time. */
static void make_root(void)
{
    struct fake *f = atomic_load(&fake);
    char fresh[sizeof(root)], real_dir[PATH_MAX];
    struct stat st;
    int err;

    if (realpath(f->machine.dir, real_dir) == NULL ||
        strlen(real_dir) + sizeof(FAKE_TREE_NAME) + 1 > sizeof(root))
        return;
    snprintf(root, sizeof(root), "%.*s/" FAKE_TREE_NAME, (int)FAKE_PATH_SIZE, real_dir);
    if (stat(root, &st) == 0)
        return;
    snprintf(fresh, sizeof(fresh), "%.*s/" FAKE_TREE_NAME ".%d", (int)FAKE_PATH_SIZE, real_dir,
             getpid());
    err = mkdir(fresh, 0755) == 0 ? 0 : -errno;
    if (err == 0)
        err = fake_sysfs_write_tree(f->profile, fresh);
    if (err == 0)
        err = write_pci_functions(fresh);
    if (err == 0)
        err = write_modules(fresh);
    if (err == 0)
        err = write_cpus(f->profile, fresh);
    if (err == 0 && rename(fresh, root) != 0 && errno != EEXIST && errno != ENOTEMPTY)
        err = -errno;
    if (err != 0) {
        fprintf(stderr, "kfdirect: the fake's sysfs tree in %s: %s\n", fresh, strerror(-err));
        root[0] = '\0';
    }
    if (stat(fresh, &st) == 0)
        fake_sysfs_remove_tree(fresh);
}

const char *preload_root(void)
{
    int saved = errno;

    if (preload_fake() == NULL)
        return NULL;
    preload_enter();
    pthread_once(&root_once, make_root);
    preload_leave();
    errno = saved;
    return root[0] != '\0' ? root : NULL;
}

bool preload_marked(int fd)
{
    if (fd < 0 || inside != 0)
        return false;
    if ((unsigned int)fd >= MARKS)
        return preload_fake_if_made() != NULL && preload_adopt(fd);
    return atomic_load_explicit(&marks[fd / 64], memory_order_relaxed) >> fd % 64 & 1;
}

void preload_mark(int fd, bool on)
{
    uint64_t bit = UINT64_C(1) << fd % 64;

    if (fd < 0 || (unsigned int)fd >= MARKS)
        return;
    if (on)
        atomic_fetch_or(&marks[fd / 64], bit);
    else if (atomic_load_explicit(&marks[fd / 64], memory_order_relaxed) & bit)
        atomic_fetch_and(&marks[fd / 64], ~bit);
}

/* Is it in a directory of some fake machine? Spares a process that has nothing to do with it from
 * making one. */
static bool looks_like_ours(int fd)
{
    char link[32], path[PRELOAD_PATH];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    if (n <= 0)
        return false;
    path[n] = '\0';
    return strstr(path, "/kfdirect-fake-") != NULL;
}

bool preload_adopt(int fd)
{
    enum fake_file_kind kind;
    enum fake_fd_kind what = FAKE_FD_OTHER;
    struct fake_file *file;
    struct fake_process *p;
    struct fake *f;
    int saved = errno, err;

    if (inside != 0)
        return false;
    preload_enter();
    if (looks_like_ours(fd)) {
        f = preload_fake();
        p = f != NULL ? fake_process_get(f, &err) : NULL;
        if (p != NULL) {
            fake_process_lock(p);
            what = fake_fd_look(f, p, fd, &file, &kind);
            fake_process_unlock(p);
        }
    }
    preload_leave();
    if (what != FAKE_FD_OTHER)
        preload_mark(fd, true);
    errno = saved;
    return what != FAKE_FD_OTHER;
}

int preload_result(int ret)
{
    if (ret >= 0)
        return ret;
    errno = -ret;
    return -1;
}
