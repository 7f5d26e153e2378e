/* SPDX-License-Identifier: MIT */
/* The fake behind the preload. */
#include "fake/preload/preload.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kfd/error.h"

#define SAID_VARIABLE "KFDIRECT_FAKE_SAID"

const int kfdirect_fake_preloaded = 1;

__thread int preload_depth __attribute__((tls_model("initial-exec")));

static pthread_once_t fake_once = PTHREAD_ONCE_INIT;
static struct fake *_Atomic fake;
static struct kfd_sys *sys;
static atomic_bool said, failed;
static atomic_int self; /* the process; a child of vfork does not change it */

/* Once for a program and all that it starts, and for those next to it on the machine. */
void preload_announce(void)
{
    struct fake *made;
    int saved = errno;

    if (atomic_load_explicit(&said, memory_order_relaxed) || atomic_exchange(&said, true))
        return;
    made = preload_fake();
    preload_enter();
    if (made != NULL && getenv(SAID_VARIABLE) == NULL &&
        (!made->of_tree || fake_machine_speaks_first(&made->machine))) {
        fprintf(stderr,
                "kfdirect: the fake machine %s on kernel %s stands in for the real device\n",
                made->machine_text, made->profile->kernel.name);
        setenv(SAID_VARIABLE, "1", 1);
    }
    preload_leave();
    errno = saved;
}

static void make_fake(void)
{
    const char *spec = secure_getenv("KFDIRECT_FAKE");
    struct fake *made;

    /* Empty is how a program started from here asks for the host. */
    if (spec == NULL || spec[0] == '\0')
        return;
    if (fake_create_from_spec(spec, &made) != 0) {
        fprintf(stderr, "kfdirect: KFDIRECT_FAKE=%s: %s\n", spec, kfd_error_text());
        atomic_store(&failed, true);
        return;
    }
    made->speaks = true;
    sys = fake_sys(made);
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

bool preload_failed(void)
{
    return atomic_load(&failed);
}

struct fake *preload_fake_if_made(void)
{
    return atomic_load_explicit(&fake, memory_order_acquire);
}

struct kfd_sys *preload_sys(void)
{
    return preload_fake() != NULL ? sys : NULL;
}

static void in_child(void)
{
    atomic_store(&self, getpid());
}

__attribute__((constructor)) static void begin(void)
{
    in_child();
    pthread_atfork(NULL, NULL, in_child);
}

/* Before the constructor there is no child yet. */
bool preload_is_self(void)
{
    pid_t pid = atomic_load(&self);

    return pid == 0 || pid == getpid();
}

bool preload_is_own_process(struct fake *f)
{
    return atomic_load(&f->process)->pid == getpid();
}
