/* SPDX-License-Identifier: MIT */
/* The fake as the environment variable KFDIRECT_FAKE asks for it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "fake/log.h"
#include "fake/process.h"
#include "kfd/error.h"

#define SPEC_SIZE 256u
#define NAME_SIZE 96u
/* Names the machine for the processes that this one starts. */
#define TREE_VARIABLE "KFDIRECT_FAKE_TREE"
#define LOG_VARIABLE "KFDIRECT_FAKE_LOG"

struct spec {
    char text[SPEC_SIZE];
    const char *machine, *kernel, *join;
    uint32_t flags;
};

static int parse_word(struct spec *s, char *word)
{
    if (strncmp(word, "kernel=", 7) == 0)
        s->kernel = word + 7;
    else if (strncmp(word, "join=", 5) == 0)
        s->join = word + 5;
    else if (strcmp(word, "strict") == 0)
        s->flags |= FAKE_STRICT;
    else
        return kfd_fail(-EINVAL, "'%s' is none of kernel=V, strict, join=NAME", word);
    if (word[strlen(word) - 1] == '=')
        return kfd_fail(-EINVAL, "'%s': expected a value after '='", word);
    return 0;
}

static int parse(const char *text, struct spec *s)
{
    char *rest, *word;
    int err = 0;

    memset(s, 0, sizeof(*s));
    if (strlen(text) >= sizeof(s->text))
        return kfd_fail(-ENAMETOOLONG, "the fake machine's description is too long");
    strcpy(s->text, text);
    rest = s->text;
    s->machine = strsep(&rest, ",");
    while (err == 0 && (word = strsep(&rest, ",")) != NULL)
        err = parse_word(s, word);
    if (s->kernel == NULL)
        s->kernel = secure_getenv("KFDIRECT_FAKE_KERNEL");
    if (s->kernel != NULL && s->kernel[0] == '\0')
        s->kernel = NULL;
    return err;
}

/* Processes started from here that ask for the same machine find it by this name. */
static int tree_name(char *name)
{
    const char *known = secure_getenv(TREE_VARIABLE);
    uint32_t random = 0;

    if (known != NULL) {
        if ((size_t)snprintf(name, NAME_SIZE, "%s", known) >= NAME_SIZE)
            return kfd_fail(-ENAMETOOLONG, TREE_VARIABLE " is too long");
        return 0;
    }
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return -errno;
    snprintf(name, NAME_SIZE, "tree-%d-%08x", getpid(), random);
    return setenv(TREE_VARIABLE, name, 1) == 0 ? 0 : -errno;
}

/* FNV-1a: a tree may use several machines. */
static uint32_t hash(uint32_t h, const char *text)
{
    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return (h ^ ',') * 16777619u;
}

static pthread_mutex_t at_exit_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake *at_exit; /* the first of the list */

/* Files of the machine would outlive the program; its objects stay, as other threads may still
 * call. A destructor and no handler of atexit: the program's own handlers come before it, and free
 * what they hold. */
__attribute__((destructor)) static void leave_machines(void)
{
    pthread_mutex_lock(&at_exit_lock);
    for (struct fake *fake = at_exit; fake != NULL; fake = fake->next_at_exit)
        fake_process_exit(fake);
    pthread_mutex_unlock(&at_exit_lock);
}

static void leave_at_exit(struct fake *fake)
{
    pthread_mutex_lock(&at_exit_lock);
    fake->next_at_exit = at_exit;
    at_exit = fake;
    pthread_mutex_unlock(&at_exit_lock);
}

void fake_env_forget(const struct fake *fake)
{
    pthread_mutex_lock(&at_exit_lock);
    for (struct fake **link = &at_exit; *link != NULL; link = &(*link)->next_at_exit) {
        if (*link == fake) {
            *link = fake->next_at_exit;
            break;
        }
    }
    pthread_mutex_unlock(&at_exit_lock);
}

int fake_create_from_spec(const char *text, struct fake **out)
{
    struct fake_options options = {.size = sizeof(options)};
    char name[NAME_SIZE + 16];
    const char *log;
    struct fake *fake;
    bool of_tree;
    struct spec s;
    int err = parse(text, &s);

    if (err != 0)
        return err;
    options.machine = s.machine;
    options.kernel = s.kernel;
    options.flags = s.flags;
    of_tree = s.join == NULL;
    if (of_tree) {
        err = tree_name(name);
        if (err != 0)
            return err;
        snprintf(name + strlen(name), 16, "-%08x",
                 hash(hash(2166136261u, s.machine), s.kernel != NULL ? s.kernel : ""));
        s.join = name;
    }
    err = fake_create_named(&options, s.join, &fake);
    if (err != 0)
        return err;
    log = secure_getenv(LOG_VARIABLE);
    err = log != NULL && log[0] != '\0' ? fake_log_to_file(fake, log) : 0;
    if (err != 0) {
        fake_destroy(fake);
        return err;
    }
    fake->of_tree = of_tree;
    leave_at_exit(fake);
    *out = fake;
    return 0;
}

int fake_sys_from_env(const char *text, struct kfd_sys **out)
{
    struct fake *fake;
    int err = fake_create_from_spec(text, &fake);

    if (err != 0)
        return err;
    fake->speaks = true;
    *out = fake_sys(fake);
    return 0;
}
