/* SPDX-License-Identifier: MIT */
/*
 * Starting programs. One that is started with an environment of its own, or an empty one, would see
 * the host's devices all of a sudden: what makes the fake is put back. An empty KFDIRECT_FAKE says
 * that this is meant.
 */
#include "fake/preload/preload.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake/preload/path.h"
#include "fake/preload/real.h"

#define SIZE 4096u

static const char *const names[] = {"LD_PRELOAD",           "KFDIRECT_FAKE",
                                    "KFDIRECT_FAKE_KERNEL", "KFDIRECT_FAKE_TREE",
                                    "KFDIRECT_FAKE_LOG",    "KFDIRECT_FAKE_SAID"};
#define NAMES (sizeof(names) / sizeof(names[0]))

/* "NAME=value" as this program was started, "" without it. */
static char before[NAMES][SIZE];
/* Where this library is, among those of LD_PRELOAD. */
static char library[SIZE];

static const char *find(char *const *env, const char *name)
{
    size_t len = strlen(name);

    for (; env != NULL && *env != NULL; env++) {
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env;
    }
    return NULL;
}

static void find_library(const char *list)
{
    while (*list != '\0') {
        size_t len = strcspn(list, ": ");

        if (memmem(list, len, "kfdirect-fake-preload", 21) != NULL)
            snprintf(library, sizeof(library), "%.*s", (int)len, list);
        list += len + strspn(list + len, ": ");
    }
}

__attribute__((constructor)) static void begin(void)
{
    for (size_t i = 0; i < NAMES; i++) {
        const char *value = secure_getenv(names[i]);

        if (value != NULL && strlen(names[i]) + strlen(value) + 2 <= SIZE)
            snprintf(before[i], SIZE, "%s=%s", names[i], value);
    }
    if (before[0][0] != '\0')
        find_library(before[0] + sizeof("LD_PRELOAD"));
}

/* The environment of a new program, into room for NAMES more; preload has SIZE bytes. */
static char *const *complete(char *const *env, char **room, char *preload)
{
    const char *fake = find(env, "KFDIRECT_FAKE"), *list = find(env, "LD_PRELOAD");
    size_t n = 0;

    if (library[0] == '\0' || before[1][0] == '\0' ||
        (fake != NULL && (fake[14] == '\0' || (list != NULL && strstr(list, library) != NULL))))
        return env;
    snprintf(preload, SIZE, "LD_PRELOAD=%s%s%s", library, list != NULL ? ":" : "",
             list != NULL ? list + 11 : "");
    room[n++] = preload;
    for (; env != NULL && *env != NULL; env++) {
        if (*env != list)
            room[n++] = *env;
    }
    for (size_t i = 1; fake == NULL && i < NAMES; i++) {
        const char *now = find(environ, names[i]);

        if (find(room, names[i]) == NULL && (now != NULL || before[i][0] != '\0'))
            room[n++] = now != NULL ? (char *)(uintptr_t)now : before[i];
        room[n] = NULL;
    }
    room[n] = NULL;
    return room;
}

static size_t length(char *const *env)
{
    size_t n = 0;

    while (env != NULL && env[n] != NULL)
        n++;
    return n;
}

/* On the stack: a child of vfork must leave nothing on the parent's heap. */
#define COMPLETE(env)                                                          \
    char preload[SIZE];                                                        \
    char **room = __builtin_alloca((length(env) + NAMES + 2) * sizeof(*room)); \
                                                                               \
    memset(room, 0, (length(env) + NAMES + 2) * sizeof(*room));                \
    env = complete(env, room, preload)

PRELOAD_API int execve(const char *path, char *const argv[], char *const env[])
{
    COMPLETE(env);
    return preload_real()->execve(path, argv, env);
}

PRELOAD_API int execvpe(const char *file, char *const argv[], char *const env[])
{
    COMPLETE(env);
    return preload_real()->execvpe(file, argv, env);
}

PRELOAD_API int fexecve(int fd, char *const argv[], char *const env[])
{
    COMPLETE(env);
    return preload_real()->fexecve(fd, argv, env);
}

PRELOAD_API int execveat(int dirfd, const char *path, char *const argv[], char *const env[],
                         int flags)
{
    COMPLETE(env);
    return preload_real()->execveat(dirfd, path, argv, env, flags);
}

PRELOAD_API int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

PRELOAD_API int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

/* Collects a list of arguments into argv; an environment may come behind it. */
#define LIST(first)                                   \
    va_list args;                                     \
    size_t n = 1;                                     \
    char **argv;                                      \
                                                      \
    va_start(args, first);                            \
    while (va_arg(args, char *) != NULL)              \
        n++;                                          \
    va_end(args);                                     \
    argv = __builtin_alloca((n + 1) * sizeof(*argv)); \
    argv[0] = (char *)(uintptr_t)first;               \
    va_start(args, first);                            \
    for (size_t i = 1; i <= n; i++)                   \
    argv[i] = va_arg(args, char *)

PRELOAD_API int execl(const char *path, const char *first, ...)
{
    LIST(first);
    va_end(args);
    return execve(path, argv, environ);
}

PRELOAD_API int execlp(const char *file, const char *first, ...)
{
    LIST(first);
    va_end(args);
    return execvpe(file, argv, environ);
}

PRELOAD_API int execle(const char *path, const char *first, ...)
{
    char *const *env;

    LIST(first);
    env = va_arg(args, char *const *);
    va_end(args);
    return execve(path, argv, env);
}

PRELOAD_API int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                            const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
    COMPLETE(env);
    return preload_real()->posix_spawn(pid, path, actions, attr, argv, env);
}

PRELOAD_API int posix_spawnp(pid_t *pid, const char *file,
                             const posix_spawn_file_actions_t *actions,
                             const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
    COMPLETE(env);
    return preload_real()->posix_spawnp(pid, file, actions, attr, argv, env);
}

/* What libc does in the child can't be seen from here: a file of the tree it finds by its real
 * name, but a node can't be opened there. */
PRELOAD_API int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *actions, int fd,
                                                 const char *path, int flags, mode_t mode)
{
    struct preload_place at;

    if (preload_find(AT_FDCWD, path, &at) == PRELOAD_NODE)
        return ENOTSUP;
    return preload_real()->posix_spawn_file_actions_addopen(actions, fd, at.name, flags, mode);
}

PRELOAD_API int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *actions,
                                                     const char *path)
{
    struct preload_place at;

    if (preload_find(AT_FDCWD, path, &at) == PRELOAD_NODE)
        return ENOTDIR;
    return preload_real()->posix_spawn_file_actions_addchdir_np(actions, at.name);
}
