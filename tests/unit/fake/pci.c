/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "fake/pci.h"

static struct fake_profile *load(const char *machine)
{
    struct fake_profile *p = NULL;

    assert_int_equal(fake_profile_load(machine, NULL, &p), 0);
    return p;
}

static uint64_t get(const unsigned char *config, unsigned int at, unsigned int size)
{
    uint64_t value = 0;

    for (unsigned int i = size; i-- > 0;)
        value = value << 8 | config[at + i];
    return value;
}

static const unsigned char *config_of(const struct fake_profile *p, const char *path)
{
    static char buf[4096];

    assert_int_equal(fake_sysfs_read(p, path, buf, sizeof(buf)), FAKE_PCI_CONFIG_SIZE);
    return (const unsigned char *)buf;
}

static void test_the_head_of_the_configuration_names_the_card(void **state)
{
    struct fake_profile *p = load("mi210:2");
    const unsigned char *c = config_of(p, "/sys/class/drm/card1/device/config");

    assert_int_equal(get(c, 0, 2), 0x1002);
    assert_int_equal(get(c, 2, 2), 0x740f);
    assert_int_equal(get(c, 9, 3), 0x120000);
    assert_int_equal(get(c, 0x2c, 2), 0x1002);
    assert_int_equal(get(c, 0x2e, 2), p->gpus[1].subsystem_device);
    fake_profile_free(p);
    p = load("navi31");
    assert_int_equal(get(config_of(p, "/sys/class/drm/card0/device/config"), 9, 3), 0x030000);
    fake_profile_free(p);
}

/* Regions are powers of two, lie on a multiple of it, do not overlap, and the registers say so. */
static void test_regions_are_those_of_the_registers_and_apart(void **state)
{
    static const char *const machines[] = {"mi300x:8", "cpx64", "navi31-smallbar:2", "apu"};

    for (size_t m = 0; m < sizeof(machines) / sizeof(machines[0]); m++) {
        struct fake_profile *p = load(machines[m]);
        unsigned long long seen[64 * 3][2];
        size_t n = 0;

        for (uint32_t g = 0; g < p->gpu_count; g++) {
            char resource[1024] = "", bytes[512];
            struct fake_text text = {resource, sizeof(resource), 0},
                             config = {bytes, sizeof(bytes), 0};
            const char *line = resource;

            fake_pci_resource(p, g, &text);
            fake_pci_config(p, g, &config);
            for (unsigned int i = 0; i < 6; i++, line = strchr(line, '\n') + 1) {
                unsigned long long base, end, flags;
                uint64_t bar;

                assert_int_equal(sscanf(line, "%llx %llx %llx", &base, &end, &flags), 3);
                if (end == 0)
                    continue;
                bar = get((unsigned char *)bytes, 0x10 + 4 * i, flags & 0x100000 ? 8 : 4);
                assert_int_equal(bar & ~0xfull, base);
                assert_int_equal((end + 1 - base) & (end - base), 0);
                assert_int_equal(base & (end - base), 0);
                assert_true(i != 0 ||
                            end + 1 - base >= p->gpus[g].visible_vram * p->gpus[g].partitions);
                for (size_t k = 0; k < n; k++)
                    assert_true(end < seen[k][0] || base > seen[k][1]);
                seen[n][0] = base;
                seen[n++][1] = end;
            }
        }
        fake_profile_free(p);
    }
}

static void test_the_alias_is_what_drivers_are_found_by(void **state)
{
    struct fake_profile *p = load("mi210:1");
    char buf[4096], uevent[4096];

    assert_true(fake_sysfs_read(p, "/sys/class/drm/card0/device/modalias", buf, sizeof(buf)) > 0);
    assert_string_equal(buf, "pci:v00001002d0000740Fsv00001002sd00000C34bc12sc00i00\n");
    assert_true(fake_sysfs_read(p, "/sys/class/drm/card0/device/uevent", uevent, sizeof(uevent)) >
                0);
    assert_non_null(strstr(uevent, "\nMODALIAS=pci:v00001002d"));
    fake_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_head_of_the_configuration_names_the_card),
        cmocka_unit_test(test_regions_are_those_of_the_registers_and_apart),
        cmocka_unit_test(test_the_alias_is_what_drivers_are_found_by),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
