/* SPDX-License-Identifier: MIT */
/*
 * The files of /sys (and the list of /dev/dri) that a machine shows. Nothing is stored: every text
 * is made from the profile when it is read. In-process tests read it through fake_sysfs_read and
 * fake_sysfs_list; the preload writes it out once below a folder and redirects paths there.
 */
#ifndef FAKE_SYSFS_H
#define FAKE_SYSFS_H

#include "fake/profile.h"

enum fake_sysfs_kind {
    FAKE_SYSFS_NONE,
    FAKE_SYSFS_DIR,
    FAKE_SYSFS_FILE,
    FAKE_SYSFS_LINK,
};

/* Text under construction; what does not fit is cut at a page, as sysfs does. */
struct fake_text {
    char *buf;
    size_t size, len;
};

void fake_text_add(struct fake_text *text, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * One row for each kind of path. A '#' component stands for the names that `name` gives for
 * i = 0, 1, ... until it fails; args holds the index chosen for each '#' so far. A row with `print`
 * is a file, with `target` a link, else a folder.
 */
struct fake_sysfs_row {
    const char *pattern;
    int (*name)(const struct fake_profile *p, const uint32_t *args, uint32_t i, char *buf,
                size_t size);
    int (*print)(const struct fake_profile *p, const uint32_t *args, struct fake_text *out);
    int (*target)(const struct fake_profile *p, const uint32_t *args, struct fake_text *out);
};

/* The rows below topology/, in topology.c, and all others, in devices.c. */
extern const struct fake_sysfs_row fake_topology_rows[];
extern const size_t fake_topology_row_count;
extern const struct fake_sysfs_row fake_device_rows[];
extern const size_t fake_device_row_count;

/* Character device numbers. A primary node's minor is its render node's less 128. */
#define FAKE_KFD_MAJOR 235u
#define FAKE_DRM_MAJOR 226u

/* Copies an absolute path without repeated slashes, "." and "..", the latter by name. -ENOENT,
 * -ENAMETOOLONG. */
#define FAKE_SYSFS_PATH 512u
int fake_sysfs_normalise(const char *path, char *out);

/* Does the absolute path lie where the fake answers instead of the host? A folder that both fill
 * (/sys/dev/char) is the host's, what the fake has in it is its own. */
bool fake_sysfs_owns(const struct fake_profile *profile, const char *path);

/* What is at path, the last component's link not followed; others are. */
enum fake_sysfs_kind fake_sysfs_lookup(const struct fake_profile *profile, const char *path);

/* The file's text, NUL-terminated; its length. -ENOENT, -EISDIR, -EPERM (hidden by the cgroup),
 * -EFBIG. */
int fake_sysfs_read(const struct fake_profile *profile, const char *path, char *buf, size_t size);

/* Every entry of a folder, in order, until each returns non-zero. -ENOENT, -ENOTDIR. */
int fake_sysfs_list(const struct fake_profile *profile, const char *path,
                    int (*each)(void *arg, const char *name), void *arg);

/* The link's relative target, NUL-terminated; its length. -EINVAL not a link. */
int fake_sysfs_readlink(const struct fake_profile *profile, const char *path, char *buf,
                        size_t size);

/* Writes the whole tree below the folder root, which exists: root/sys/..., root/dev/dri/... with
 * empty files for device nodes. -errno of the failing call. */
int fake_sysfs_write_tree(const struct fake_profile *profile, const char *root);
void fake_sysfs_remove_tree(const char *root);

#endif
