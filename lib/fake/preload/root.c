/* SPDX-License-Identifier: MIT */
/* The tree of the machine's files, written out below a folder. */
#include "fake/preload/preload.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake/sysfs.h"

/* The folder's name in the machine's directory. */
#define FAKE_TREE_NAME "tree"

static pthread_once_t root_once = PTHREAD_ONCE_INIT;
static char root[FAKE_PATH_SIZE + 32];

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

/* Written aside and put in place as a whole: another process may want it at the same time. */
static void make_root(void)
{
    struct fake *f = preload_fake();
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
