/* SPDX-License-Identifier: MIT */
/* The one way to the kernel's ioctls. */
#ifndef KFD_REQUEST_H
#define KFD_REQUEST_H

#include <kfdirect/kfd.h>

/*
 * Sends a request on a descriptor of kfd and repeats it on EINTR and EAGAIN with the same argument
 * block, which keeps n_success of MAP and UNMAP as the kernel left it. FREE is sent once, with all
 * signals blocked: interrupted it leaves a half-detached object that a second FREE would corrupt;
 * it then answers -EIO. A kernel that refuses to get on is -EAGAIN after KFD_REQUEST_TRIES.
 * In a forked child: -EBADF without a call, since the descriptors belong to the parent's memory.
 * On failure the error text is the decoded request and the errno's name.
 */
int kfd_request(struct kfd *kfd, int fd, unsigned long request, void *arg);

#define KFD_REQUEST_TRIES 1000000u

/* Moves a descriptor off 0, 1 and 2, which programs close and redirect. Takes and returns a
 * descriptor or -errno; on failure fd is closed. */
int kfd_fd_lift(struct kfd_sys *sys, int fd);

/* Closes the descriptor of the device node at path, unless it leads elsewhere by now: the program
 * may have closed it under the library, as daemons and forked children do with all they find, and
 * have opened a file of its own under the number. */
void kfd_fd_close_node(struct kfd_sys *sys, int fd, const char *path);

#endif
