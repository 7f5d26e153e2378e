/* SPDX-License-Identifier: MIT */
#include "hold.h"

#include <time.h>
#include <sys/wait.h>

#define SWITCH "/sys/module/hollow/parameters/hold"

static pid_t child;

static void wait_ms(unsigned ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    nanosleep(&t, NULL);
}

int hold_start(unsigned ms)
{
    int fd = open(SWITCH, O_RDWR | O_CLOEXEC);

    if (fd < 0 || write(fd, "1", 1) != 1)
        return -ENOSYS;
    child = fork();
    if (child == 0) {
        wait_ms(ms);
        _exit(pwrite(fd, "0", 1, 0) != 1);
    }
    close(fd);
    return child < 0 ? -EAGAIN : 0;
}

bool hold_on(void)
{
    int fd = open(SWITCH, O_RDONLY | O_CLOEXEC);
    char v = 'N';
    bool on = read(fd, &v, 1) == 1 && v == 'Y';

    close(fd);
    return on;
}

void hold_end(void)
{
    if (child > 0)
        waitpid(child, NULL, 0);
    child = 0;
    wait_ms(50); /* what was waiting for them */
}
