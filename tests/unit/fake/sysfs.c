/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake/sysfs.h"

static struct fake_profile *load(const char *machine)
{
    struct fake_profile *p = NULL;

    assert_int_equal(fake_profile_load(machine, NULL, &p), 0);
    return p;
}

static int collect(void *arg, const char *name)
{
    strcat(arg, name);
    strcat(arg, " ");
    return 0;
}

static const char *list(const struct fake_profile *p, const char *path)
{
    static char names[4096];

    names[0] = '\0';
    assert_int_equal(fake_sysfs_list(p, path, collect, names), 0);
    return names;
}

static const char *read_text(const struct fake_profile *p, const char *path)
{
    static char buf[4096];

    assert_true(fake_sysfs_read(p, path, buf, sizeof(buf)) >= 0);
    return buf;
}

static void test_both_paths_to_the_topology_give_the_same(void **state)
{
    struct fake_profile *p = load("mi210:2");
    char first[4096];

    strcpy(first, read_text(p, "/sys/class/kfd/kfd/topology/nodes/3/properties"));
    assert_string_equal(first,
                        read_text(p, "/sys/devices/virtual/kfd/kfd/topology/nodes/3/properties"));
    assert_string_equal(list(p, "/sys/class/kfd/kfd/topology/nodes"), "0 1 2 3 ");
    assert_string_equal(list(p, "/sys/class/kfd/kfd/topology/"),
                        "generation_id system_properties nodes ");
    fake_profile_free(p);
}

static void test_device_numbers_lead_to_the_pci_function(void **state)
{
    struct fake_profile *p = load("mi300x:2");
    char buf[256];

    assert_string_equal(list(p, "/sys/dev/char/226:129/device/drm"), "card1 renderD129 ");
    assert_string_equal(read_text(p, "/sys/dev/char/226:129/device/device"), "0x74a1\n");
    assert_non_null(strstr(read_text(p, "/sys/dev/char/226:129/device/uevent"),
                           "PCI_SLOT_NAME=0000:25:00.0\n"));
    assert_true(fake_sysfs_readlink(p, "/sys/dev/char/226:129", buf, sizeof(buf)) > 0);
    assert_string_equal(buf, "../../devices/pci0000:25/0000:25:00.0/drm/renderD129");
    assert_true(fake_sysfs_readlink(p, "/sys/class/drm/card1/device", buf, sizeof(buf)) > 0);
    assert_string_equal(buf, "../../../0000:25:00.0");
    assert_string_equal(read_text(p, "/sys/class/drm/renderD129/dev"), "226:129\n");
    assert_string_equal(list(p, "/dev/dri"), "card0 renderD128 card1 renderD129 ");
    fake_profile_free(p);
}

static void test_partitions_are_platform_devices(void **state)
{
    struct fake_profile *p = load("cpx64:1");
    char buf[256];

    assert_true(fake_sysfs_readlink(p, "/sys/dev/char/226:130", buf, sizeof(buf)) > 0);
    assert_string_equal(buf, "../../devices/platform/amdgpu_xcp_1/drm/renderD130");
    assert_string_equal(list(p, "/sys/dev/char/226:130/device/drm"), "card2 renderD130 ");
    fake_profile_free(p);
}

static void test_wrong_paths_answer_as_a_file_system_does(void **state)
{
    struct fake_profile *p = load("mi210:2");
    char buf[16];

    assert_int_equal(fake_sysfs_read(p, "/sys/class/kfd/kfd/topology/nodes/4/gpu_id", buf, 16),
                     -ENOENT);
    assert_int_equal(fake_sysfs_read(p, "/sys/class/kfd/kfd/topology/nodes/03/gpu_id", buf, 16),
                     -ENOENT);
    assert_int_equal(fake_sysfs_read(p, "/sys/class/kfd/kfd/topology/nodes", buf, 16), -EISDIR);
    assert_int_equal(fake_sysfs_read(p, "/sys/class/kfd/kfd/topology/nodes/2/properties", buf, 16),
                     -EFBIG);
    assert_int_equal(fake_sysfs_list(p, "/sys/class/kfd/kfd/topology/generation_id", collect, buf),
                     -ENOTDIR);
    assert_int_equal(fake_sysfs_list(p, "/sys/class/net", collect, buf), -ENOENT);
    assert_int_equal(fake_sysfs_readlink(p, "/sys/class/kfd", buf, 16), -EINVAL);
    fake_profile_free(p);
}

static void test_only_its_own_places_are_owned(void **state)
{
    struct fake_profile *p = load("mi300x");

    assert_true(fake_sysfs_owns(p, "/dev/kfd"));
    assert_true(fake_sysfs_owns(p, "/dev/dri/renderD200"));
    assert_true(fake_sysfs_owns(p, "/sys/class//kfd/./kfd/nothing"));
    assert_true(fake_sysfs_owns(p, "/sys/dev/char/226:128/device/none"));
    assert_true(fake_sysfs_owns(p, "/sys/devices/pci0000:05/0000:05:00.0/vendor"));
    assert_true(fake_sysfs_owns(p, "/sys/bus/pci/devices/0000:05:00.0"));
    assert_false(fake_sysfs_owns(p, "/sys/bus/pci/devices/0000:06:00.0"));
    assert_false(fake_sysfs_owns(p, "/sys/dev/char/1:3"));
    assert_false(fake_sysfs_owns(p, "/sys/dev/char"));
    assert_false(fake_sysfs_owns(p, "/dev/kfdx"));
    assert_false(fake_sysfs_owns(p, "/dev/null"));
    assert_false(fake_sysfs_owns(p, "dev/kfd"));
    fake_profile_free(p);
}

static const struct fake_profile *walked;
static size_t walked_root, walked_count;

/* Each written entry is what the fake says is there. */
static int compare(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    const char *name = path + walked_root;
    char disk[4096], fake[4096];
    ssize_t n;
    int fd;

    if (type == FTW_F && st->st_size > 0) {
        fd = open(path, O_RDONLY);
        n = read(fd, disk, sizeof(disk));
        close(fd);
        assert_int_equal(n, fake_sysfs_read(walked, name, fake, sizeof(fake)));
        assert_memory_equal(disk, fake, n);
        walked_count++;
    } else if (type == FTW_SL || type == FTW_SLN) {
        n = readlink(path, disk, sizeof(disk));
        assert_int_equal(n, fake_sysfs_readlink(walked, name, fake, sizeof(fake)));
        assert_memory_equal(disk, fake, n);
        walked_count++;
    }
    return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static void test_written_tree_equals_the_answers(void **state)
{
    char root[] = "/tmp/fake-sysfs-XXXXXX", path[256];
    struct fake_profile *p = load("mi210:2");
    struct stat st;

    assert_non_null(mkdtemp(root));
    assert_int_equal(fake_sysfs_write_tree(p, root), 0);
    walked = p;
    walked_root = strlen(root);
    walked_count = 0;
    assert_int_equal(nftw(root, compare, 16, FTW_PHYS), 0);
    assert_true(walked_count > 300);
    /* The relative links lead somewhere inside it. */
    snprintf(path, sizeof(path), "%s/sys/dev/char/226:129/device/drm/card1/dev", root);
    assert_int_equal(stat(path, &st), 0);
    snprintf(path, sizeof(path), "%s/sys/class/kfd/kfd/topology/nodes/3/gpu_id", root);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(nftw(root, remove_entry, 16, FTW_PHYS | FTW_DEPTH), 0);
    fake_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_paths_to_the_topology_give_the_same),
        cmocka_unit_test(test_device_numbers_lead_to_the_pci_function),
        cmocka_unit_test(test_partitions_are_platform_devices),
        cmocka_unit_test(test_wrong_paths_answer_as_a_file_system_does),
        cmocka_unit_test(test_only_its_own_places_are_owned),
        cmocka_unit_test(test_written_tree_equals_the_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
