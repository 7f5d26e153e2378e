/* SPDX-License-Identifier: MIT */
/* Which system a kfd_open(NULL, ...) gets. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kfdirect/kfd.h>
#include "kfd/error.h"
#include "kfd/process.h"
#include "kfd/poison.h"

#define FAKE_LIBRARY "libkfdirect-fake.so.0"

typedef int fake_from_env_fn(const char *spec, struct kfd_sys **out);
typedef const char *fake_error_text_fn(void);

/* Both under the opening lock, which no forked child inherits locked. */
static struct kfd_sys *chosen; /* by kfd_sys_set_default */
static struct kfd_sys *fake;   /* by KFDIRECT_FAKE, kept for the life of the process */

void kfd_sys_set_default(struct kfd_sys *sys)
{
    kfd_process_lock();
    chosen = sys;
    kfd_process_unlock();
}

/* By the loader's rules, else from the folder this library itself lies in. */
static void *load_fake_library(void)
{
    void *lib = dlopen(FAKE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    char path[1024];
    const char *slash;
    Dl_info self;

    if (lib || !dladdr((void *)kfd_sys_set_default, &self) || !self.dli_fname)
        return lib;
    slash = strrchr(self.dli_fname, '/');
    if (!slash)
        return NULL;
    snprintf(path, sizeof(path), "%.*s/" FAKE_LIBRARY, (int)(slash - self.dli_fname),
             self.dli_fname);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static int make_fake(const char *spec, struct kfd_sys **out)
{
    void *lib = load_fake_library();
    fake_error_text_fn *error_text;
    fake_from_env_fn *from_env;
    int ret;

    if (!lib)
        return kfd_fail(-ENOENT, "KFDIRECT_FAKE=%s: %s", spec, dlerror());
    *(void **)&from_env = dlsym(lib, "fake_sys_from_env");
    *(void **)&error_text = dlsym(lib, "fake_error_text");
    if (!from_env) {
        dlclose(lib);
        return kfd_fail(-ENOENT, "KFDIRECT_FAKE=%s: %s has no fake_sys_from_env", spec,
                        FAKE_LIBRARY);
    }
    ret = from_env(spec, out);
    if (ret < 0) {
        kfd_fail(-ENOENT, "KFDIRECT_FAKE=%s: %s", spec,
                 error_text ? error_text() : kfd_errno_name(ret));
        dlclose(lib);
        return -ENOENT;
    }
    fprintf(stderr, "kfdirect: using the fake machine '%s' (KFDIRECT_FAKE), no real GPU\n", spec);
    return 0;
}

/* The preload library already puts its fake under every system call of the process: a second one
 * here would be another machine, or the same one twice. */
static bool is_preloaded(void)
{
    return dlsym(RTLD_DEFAULT, "kfdirect_fake_preloaded") != NULL;
}

int kfd_sys_default(struct kfd_sys **out)
{
    const char *spec = is_preloaded() ? NULL : secure_getenv("KFDIRECT_FAKE");
    int ret = 0, cancel;

    /* Making a fake opens files and writes a line. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    kfd_process_lock();
    if (chosen) {
        *out = chosen;
    } else if (!spec || !*spec) {
        *out = kfd_sys_linux();
    } else {
        if (!fake)
            ret = make_fake(spec, &fake);
        if (ret == 0)
            *out = fake;
    }
    kfd_process_unlock();
    pthread_setcancelstate(cancel, NULL);
    return ret;
}

void kfd_sys_destroy(struct kfd_sys *sys)
{
    if (sys && sys->ops->destroy)
        sys->ops->destroy(sys);
}
