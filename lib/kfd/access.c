/* SPDX-License-Identifier: MIT */
#include "kfd/access.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kfd/error.h"
#include "kfd/poison.h"

static bool in_group(gid_t gid)
{
    bool found = getegid() == gid;
    int n = getgroups(0, NULL);
    gid_t *groups = n > 0 ? malloc((size_t)n * sizeof(*groups)) : NULL;

    n = groups ? getgroups(n, groups) : 0;
    for (int i = 0; i < n; i++)
        found = found || groups[i] == gid;
    free(groups);
    return found;
}

static void group_name(gid_t gid, char *buf, size_t size)
{
    char space[1024];
    struct group entry, *found = NULL;

    if (getgrgid_r(gid, &entry, space, sizeof(space), &found) == 0 && found)
        snprintf(buf, size, "%s", found->gr_name);
    else
        snprintf(buf, size, "%u", gid);
}

int kfd_access_explain(struct kfd_sys *sys, const char *path, int err)
{
    const char *name = kfd_errno_name(err);
    struct kfd_sys_stat st;
    char group[64];

    if ((err != -EACCES && err != -EPERM) || !sys->ops->stat_path ||
        sys->ops->stat_path(sys, path, &st) < 0)
        return kfd_fail(err, "%s: %s", path, name);
    group_name(st.gid, group, sizeof(group));
    return kfd_fail(err, "%s: %s, mode %04o, group %s, %s", path, name, st.mode & 07777u, group,
                    in_group(st.gid)
                        ? "which this process is in (a container's device rules may forbid it)"
                        : "which this process is not in");
}
