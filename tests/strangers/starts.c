/* SPDX-License-Identifier: MIT */
/* Programs that start others on a fake machine: the children are on it as well, whatever
 * environment they get, and nothing of what they do reaches back into the parent. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/kfd_ioctl.h>

#define GPU_ID "/sys/class/kfd/kfd/topology/nodes/0/gpu_id"

static char self[4096], word_look[] = "look", word_input[] = "input", word_free[] = "free";

/* What a child finds: 0 the fake, 1 nothing. */
static int look(void)
{
    struct kfd_ioctl_get_version_args version;
    int fd = open("/dev/kfd", O_RDWR);

    return fd >= 0 && ioctl(fd, AMDKFD_IOC_GET_VERSION, &version) == 0 ? 0 : 1;
}

static int end_of(pid_t pid)
{
    int status = 0;

    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

enum way {
    EXECVE,
    EXECV,
    EXECVP,
    EXECL,
    EXECLE,
    EXECLP,
    EXECVPE,
    FEXECVE,
    EXECVEAT,
    WAYS
};

int execveat(int dirfd, const char *path, char *const argv[], char *const env[], int flags);

static void start(enum way way, char *const env[])
{
    char *argv[] = {self, word_look, NULL};
    int fd = open(self, O_RDONLY | O_CLOEXEC);

    switch (way) {
    case EXECVE:
        execve(self, argv, env);
        break;
    case EXECV:
        execv(self, argv);
        break;
    case EXECVP:
        execvp(self, argv);
        break;
    case EXECL:
        execl(self, self, "look", (char *)NULL);
        break;
    case EXECLE:
        execle(self, self, "look", (char *)NULL, env);
        break;
    case EXECLP:
        execlp(self, self, "look", (char *)NULL);
        break;
    case EXECVPE:
        execvpe(self, argv, env);
        break;
    case FEXECVE:
        fexecve(fd, argv, env);
        break;
    default:
        execveat(AT_FDCWD, self, argv, env, 0);
        break;
    }
    _exit(99);
}

static void test_children_with_an_empty_environment_are_on_the_machine(void **state)
{
    char *empty[] = {NULL};

    for (int way = 0; way < WAYS; way++) {
        pid_t pid = fork();

        if (pid == 0) {
            clearenv();
            start(way, empty);
        }
        if (end_of(pid) != 0)
            fail_msg("way %d", way);
    }
}

static void test_an_environment_can_say_that_the_host_is_meant(void **state)
{
    char nothing[] = "KFDIRECT_FAKE=", *host[] = {nothing, NULL}, *argv[] = {self, word_free, NULL};
    pid_t pid = fork();

    if (pid == 0) {
        execve(self, argv, host);
        _exit(99);
    }
    assert_int_equal(end_of(pid), 0);
}

static void test_spawned_children(void **state)
{
    char *argv[] = {self, word_input, NULL}, *empty[] = {NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    assert_int_equal(posix_spawn_file_actions_addopen(&actions, 0, GPU_ID, O_RDONLY, 0), 0);
    assert_int_equal(posix_spawn_file_actions_addchdir_np(&actions, "/dev/dri"), 0);
    /* The kernel would open it in the child; here it is refused and does not reach the host's. */
    assert_int_equal(posix_spawn_file_actions_addopen(&actions, 5, "/dev/kfd", O_RDWR, 0), ENOTSUP);
    assert_int_equal(posix_spawn(&pid, self, &actions, NULL, argv, empty), 0);
    assert_int_equal(end_of(pid), 0);
    assert_int_equal(posix_spawnp(&pid, self, &actions, NULL, argv, NULL), 0);
    assert_int_equal(end_of(pid), 0);
    posix_spawn_file_actions_destroy(&actions);
}

/* As a child that was spawned so sees it. */
static int input(void)
{
    char text[16] = "", here[64] = "";

    return read(0, text, sizeof(text)) == 2 && strcmp(text, "0\n") == 0 &&
                   getcwd(here, sizeof(here)) != NULL && strcmp(here, "/dev/dri") == 0 &&
                   access("renderD128", F_OK) == 0
               ? look()
               : 2;
}

static void test_what_a_vfork_child_does_stays_its_own(void **state)
{
    struct kfd_ioctl_get_version_args version;
    int kfd = open("/dev/kfd", O_RDWR), sys = open("/sys", O_RDONLY | O_DIRECTORY);
    char before[4096], after[4096];
    char *argv[] = {self, word_look, NULL}, *empty[] = {NULL};
    pid_t pid;

    assert_non_null(getcwd(before, sizeof(before)));
    pid = vfork();
    if (pid == 0) {
        if (chdir("/sys/class") != 0 || access("kfd", F_OK) != 0 ||
            ioctl(kfd, AMDKFD_IOC_GET_VERSION, &version) != -1 || errno != EBADF)
            _exit(3);
        close(kfd);
        close(sys);
        close_range(3, ~0u, 0);
        execve(self, argv, empty);
        _exit(4);
    }
    assert_int_equal(end_of(pid), 0);
    assert_non_null(getcwd(after, sizeof(after)));
    assert_string_equal(after, before);
    assert_int_equal(ioctl(kfd, AMDKFD_IOC_GET_VERSION, &version), 0);
    assert_int_equal(faccessat(sys, "class/kfd/kfd", F_OK, 0), 0);
    close(kfd);
    close(sys);
}

static void test_a_node_sent_to_itself_is_the_node(void **state)
{
    struct kfd_ioctl_get_version_args version;
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    char byte = 0;
    struct iovec data = {&byte, 1};
    struct msghdr m = {.msg_iov = &data,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    int pair[2], kfd = open("/dev/kfd", O_RDWR), copy;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    control.head.cmsg_len = CMSG_LEN(sizeof(int));
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    memcpy(CMSG_DATA(&control.head), &kfd, sizeof(kfd));
    assert_int_equal(sendmsg(pair[0], &m, 0), 1);
    close(kfd);
    assert_int_equal(recvmsg(pair[1], &m, 0), 1);
    memcpy(&copy, CMSG_DATA(&control.head), sizeof(copy));
    assert_int_equal(ioctl(copy, AMDKFD_IOC_GET_VERSION, &version), 0);
    assert_int_equal(read(copy, &byte, 1), -1);
    assert_int_equal(errno, EINVAL);
    close(copy);
    close(pair[0]);
    close(pair[1]);
}

static int processes(void)
{
    DIR *dir = opendir("/sys/class/kfd/kfd/proc");
    struct dirent *e;
    int n = 0;

    assert_non_null(dir);
    while ((e = readdir(dir)) != NULL)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* A child that has /dev/kfd open until it is told to end. */
static int hold(int begun, int end)
{
    char byte = 0;

    return look() == 0 && write(begun, &byte, 1) == 1 && read(end, &byte, 1) == 0 ? 0 : 1;
}

static void test_kfd_tells_of_its_processes_as_they_come_and_go(void **state)
{
    int kfd = open("/dev/kfd", O_RDWR), before = processes(), begun[2], end[2];
    char name[64], byte;
    pid_t pid;

    snprintf(name, sizeof(name), "/sys/class/kfd/kfd/proc/%d/pasid", getpid());
    assert_int_equal(access(name, R_OK), 0);
    assert_int_equal(pipe(begun), 0);
    assert_int_equal(pipe(end), 0);
    pid = fork();
    if (pid == 0) {
        close(end[1]);
        _exit(hold(begun[1], end[0]));
    }
    assert_int_equal(read(begun[0], &byte, 1), 1);
    assert_int_equal(processes(), before + 1);
    snprintf(name, sizeof(name), "/sys/class/kfd/kfd/proc/%d/pasid", pid);
    assert_int_equal(access(name, R_OK), 0);
    close(end[1]);
    assert_int_equal(end_of(pid), 0);
    assert_int_equal(processes(), before);
    assert_int_equal(access(name, R_OK), -1);
    close(kfd);
    close(end[0]);
    close(begun[0]);
    close(begun[1]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_children_with_an_empty_environment_are_on_the_machine),
        cmocka_unit_test(test_an_environment_can_say_that_the_host_is_meant),
        cmocka_unit_test(test_spawned_children),
        cmocka_unit_test(test_what_a_vfork_child_does_stays_its_own),
        cmocka_unit_test(test_a_node_sent_to_itself_is_the_node),
        cmocka_unit_test(test_kfd_tells_of_its_processes_as_they_come_and_go),
    };

    if (argc == 2 && strcmp(argv[1], word_free) == 0)
        return getenv("LD_PRELOAD") == NULL ? 0 : 1;
    if (argc == 2)
        return strcmp(argv[1], "input") == 0 ? input() : look();
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0)
        return 99;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
