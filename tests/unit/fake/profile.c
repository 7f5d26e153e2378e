/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kfdirect/kfd.h>

#include "fake/profile.h"
#include "fake/sysfs.h"

#define TOPOLOGY "/sys/class/kfd/kfd/topology/nodes/"

static struct fake_profile *load(const char *machine, const char *kernel)
{
    struct fake_profile *p = NULL;
    int err = fake_profile_load(machine, kernel, &p);

    if (err != 0)
        print_error("%s: %s\n", machine, kfd_error_text());
    assert_int_equal(err, 0);
    return p;
}

static void test_every_builtin_loads_and_ids_are_unique(void **state)
{
    for (size_t i = 0; i < fake_builtin_count; i++) {
        const char *dot = strrchr(fake_builtins[i].name, '.');
        char name[64];
        struct fake_profile *p;

        snprintf(name, sizeof(name), "%.*s", (int)(dot - fake_builtins[i].name),
                 fake_builtins[i].name);
        if (strcmp(dot, ".machine") == 0)
            p = load(name, "6.12");
        else
            p = load("mi210:4", name);
        for (uint32_t g = 0; g < p->gpu_count; g++) {
            assert_in_range(p->gpus[g].gpu_id, 1, 0xffff);
            assert_int_equal(fake_profile_gpu_by_id(p, p->gpus[g].gpu_id), g);
            assert_int_equal(fake_profile_gpu_by_minor(p, p->gpus[g].render_minor), g);
        }
        fake_profile_free(p);
    }
}

static void test_count_makes_cards_at_different_places(void **state)
{
    struct fake_profile *p = load("mi300x:8", NULL);

    assert_int_equal(p->gpu_count, 8);
    assert_int_equal(p->cpu_count, 2);
    assert_string_equal(p->kernel.name, "6.12");
    assert_int_equal(p->gpus[0].location_id, 0x0500);
    assert_int_equal(p->gpus[7].location_id, 0xe500);
    assert_int_equal(p->gpus[3].cpu_node, 0);
    assert_int_equal(p->gpus[4].cpu_node, 1);
    assert_int_equal(p->gpus[7].render_minor, 135);
    assert_true(p->gpus[7].unique_id == p->gpus[0].unique_id + 7);
    assert_true(p->gpus[7].hive_id == p->gpus[0].hive_id);
    fake_profile_free(p);
}

static void test_bridged_cards_form_hives_of_four(void **state)
{
    struct fake_profile *p = load("mi210:8", NULL);

    assert_true(fake_profile_peer(p, 0, 3, true));
    assert_false(fake_profile_peer(p, 0, 4, true));
    assert_true(fake_profile_peer(p, 7, 4, true));
    /* A hive carries memory, not doorbells. */
    assert_false(fake_profile_peer(p, 0, 3, false));
    assert_true(fake_profile_peer(p, 2, 2, true));
    assert_int_equal(fake_profile_link(p, 2, 5, false)->type, FAKE_LINK_XGMI);
    assert_int_equal(fake_profile_link(p, 2, 5, false)->weight, 15);
    assert_null(fake_profile_link(p, 2, 6, false));
    fake_profile_free(p);
}

static void test_pcie_peers_need_the_switch_and_a_large_bar(void **state)
{
    struct fake_profile *p = load("navi31:2", "6.12");

    assert_false(fake_profile_peer(p, 0, 1, true));
    fake_profile_free(p);
    p = load("navi31:2", "6.12+p2p");
    assert_true(p->kernel.move_notify);
    assert_true(fake_profile_peer(p, 0, 1, true));
    assert_true(fake_profile_peer(p, 0, 1, false));
    assert_int_equal(fake_profile_link(p, 1, 2, true)->weight, 40);
    fake_profile_free(p);
    p = load("navi31-smallbar:2", "current");
    assert_false(fake_profile_peer(p, 0, 1, true));
    assert_false(fake_gpu_large_bar(&p->gpus[0]));
    assert_null(fake_profile_link(p, 0, 1, false));
    assert_non_null(fake_profile_link(p, 1, 0, false));
    fake_profile_free(p);
    p = load("navi31:2", "current+no-move_notify");
    assert_false(p->kernel.p2p);
    fake_profile_free(p);
}

static void test_partitions_share_a_card(void **state)
{
    struct fake_profile *p = load("cpx64", NULL);

    assert_int_equal(p->gpu_count, 64);
    assert_int_equal(p->gpus[63].card, 7);
    assert_int_equal(p->gpus[63].partition, 7);
    assert_int_equal(p->gpus[8].location_id, 0x2500);
    assert_int_equal(fake_profile_link(p, 2, 9, false)->weight, 13);
    assert_int_equal(fake_profile_link(p, 2, 10, false)->weight, 41);
    assert_int_equal(p->gpus[1].simd_id_base, 2147487744u + 38);
    fake_profile_free(p);
}

static void test_limits_follow_the_kernel(void **state)
{
    struct fake_profile *p = load("mi300x:8", "6.12");

    assert_true(fake_profile_page_table_reserve(p) == 196592ull * 8 * 1048576 / 16384);
    assert_true(fake_profile_ttm_limit(p) == 1024ull << 30);
    assert_true(fake_profile_system_limit(p) == (2048ull << 30) / 64 * 63 - (1536ull << 20));
    fake_profile_free(p);
    p = load("vega10-hollow", "6.12");
    assert_true(fake_profile_page_table_reserve(p) == 8ull << 20);
    /* Below 3 GiB half is kept. */
    assert_true(fake_profile_system_limit(p) == (1536ull << 20) / 64 * 63 / 2);
    fake_profile_free(p);
}

static void test_kernel_without_driver_for_the_chip_says_so(void **state)
{
    struct fake_profile *p;

    assert_int_equal(fake_profile_load("mi300x", "6.1", &p), -EINVAL);
    assert_string_equal(kfd_error_text(),
                        "kernel 6.1 has no driver for gfx942, the GPU of machine 'mi300x'");
}

static void check_bad(const char *machine, const char *kernel, int err, const char *text)
{
    struct fake_profile *p = NULL;

    assert_int_equal(fake_profile_load(machine, kernel, &p), err);
    assert_null(p);
    assert_non_null(strstr(kfd_error_text(), text));
}

static void test_bad_names_and_counts_are_refused(void **state)
{
    check_bad("mi300", NULL, -EINVAL, "machine 'mi300' is not known");
    check_bad("mi300x:0", NULL, -EINVAL, "expected a count of 1 to 64");
    check_bad("mi300x:65", NULL, -EINVAL, "expected a count of 1 to 64");
    check_bad("mi300x:", NULL, -EINVAL, "expected a count of 1 to 64");
    check_bad("cpx64:9", NULL, -EINVAL, "more than 64 GPU nodes");
    check_bad("", NULL, -EINVAL, "expected a name or path");
    check_bad(NULL, NULL, -EINVAL, "expected a name or a path");
    check_bad("none", "6.13", -EINVAL, "kernel '6.13' is not known");
    check_bad("none", "6.12+fast", -EINVAL, "kernel switch 'fast'");
    check_bad("./no/such.machine", NULL, -ENOENT, "./no/such.machine: No such file");
}

static char *write_file(const char *text)
{
    static char path[64];
    int fd;

    strcpy(path, "/tmp/fake-profile-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    return path;
}

static void test_own_machine_may_start_from_a_builtin_one(void **state)
{
    char *path = write_file("[cpu]\nram = 8 GiB\n[gpu]\nlike = navi31\ncount = 3\nvram = 1 GiB\n"
                            "[link]\nfrom = gpu0\nto = gpu2\ntype = xgmi\nweight = 15\n"
                            "[link]\nfrom = gpu0\nto = gpu1\ntype = pcie\nboth = no\n");
    struct fake_profile *p = load(path, "6.12");

    assert_int_equal(p->gpu_count, 3);
    assert_true(p->gpus[1].vram == 1ull << 30);
    assert_true(fake_gpu_large_bar(&p->gpus[1]));
    assert_int_equal(p->gpus[1].gfx_target_version, 110000);
    assert_true(fake_profile_peer(p, 2, 0, true));
    assert_true(fake_profile_peer(p, 0, 1, true));
    assert_false(fake_profile_peer(p, 1, 0, true));
    fake_profile_free(p);
    unlink(path);
}

static void test_malformed_files_name_line_and_expectation(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"[cpu]\nram = 8 GiB\n[gpu]\nlike = nothing\n", ":4: 'like': machine 'nothing'"},
        {"[cpu]\n[gpu]\nlike = none\n", ":3: 'like': machine 'none' has no GPU"},
        {"[gpu]\nlike = navi31\n", ": no [cpu], expected one or more"},
        {"[cpu]\n[gpu]\nlike = navi31\nvram = 5 B\n",
         ":2: [gpu] with vram of 5 bytes, expected a multiple of 4096"},
        {"[cpu]\n[gpu]\nlike = navi31\nvram = 1024 TiB\n", "expected a multiple of 4096 below"},
        {"[cpu]\n[gpu]\nlike = navi31\nvram = 1 GiB\nvisible_vram = 2 GiB\n",
         ":2: [gpu] with visible_vram of 2147483648 bytes, expected at most the 1073741824 of"},
        {"[cpu]\n[gpu]\nlike = navi31\ncount = 2\nbus_step = 0\n",
         ":2: [gpu] puts card 1 at the PCI place of card 0, expected a bus_step or slot_step"},
        {"[cpu]\n\n[gpu]\nvram = 1 GiB\n", ":3: [gpu] with device_id 0, expected 1 to 65535"},
        {"[cpu]\n[gpu]\nlike = navi31\nva_bits = 64\n",
         ":2: [gpu] with va_bits 64, expected 32 to"},
        {"[cpu]\n[gpu]\nlike = navi31\npartitions = 0\n",
         ":2: [gpu] with partitions 0, expected 1"},
        {"[cpu]\n[gpu]\nlike = navi31\nnum_sdma_engines = 40\n",
         "num_sdma_engines 40, expected 0 to"},
        {"[cpu]\n[gpu]\nlike = navi31\nrender_minor = 5\n", "render_minor 5, expected 128 to 255"},
        {"[cpu]\n[gpu]\nlike = navi31\narray_count = 500\n",
         "expected a unit or more for each array"},
        {"[cpu]\n[gpu]\nlike = navi31\ncount = 65\n", ":2: [gpu] makes more than 64 GPU nodes"},
        {"[cpu]\n[cpu]\ncount = 16\n", ":2: [cpu] makes more than 16 CPU nodes"},
        {"[cpu]\n[gpu]\nlike = navi31\ncache = 1 2 3\n", ":4: 'cache': expected five numbers"},
        {"[cpu]\n[gpu]\nlike = navi31\ncache = 1 2 3 4 0\n", ":4: 'cache': expected five numbers"},
        {"[cpu]\n[gpu]\nlike = navi31\ntile_modes = x\n", ":4: 'tile_modes': expected the number"},
        {"[cpu]\n[gpu]\nlike = navi31\nrender_node = no\n", ":4: 'render_node': 'no' is none of"},
        {"[cpu]\n[link]\nfrom = gpu0\nto = cpu0\n",
         ":2: [link] names gpu0, expected a node of the machine: cpu0 to cpu0"},
        {"[cpu]\n[gpu]\nlike = navi31\n[link]\nfrom = gpu1\nto = cpu0\n",
         ":4: [link] names gpu1, expected a node of the machine: cpu0 to cpu0 or gpu0 to gpu0"},
        {"[cpu]\n[link]\nfrom = disk\n", ":3: 'from': 'disk' is neither cpuN nor gpuN"},
        {"[cpu]\n[link]\nfrom = cpu0\nto = cpu0\n",
         ":2: [link] from a node to itself, expected two"},
        {"[machine]\nname = x\n[cpu]\n[link]\nfrom = cpu0\nto = cpu0\n", "/tmp/fake-profile-"},
        {"[cpu]\n[link]\ntype = wire\n", ":3: 'type': 'wire' is none of none, pcie, xgmi"},
        {"[machine]\nkfd_node = gone\n", ":2: 'kfd_node': 'gone' is none of present"},
        {"[machine]\nname = a name that is longer than any name may be\n",
         ":2: 'name': more than 31"},
        {"[board]\n", ":1: '[board]': expected [machine], [cpu], [gpu] or [link]"},
        {"[cpu]\ncolour = red\n", ":2: 'colour': no such key in this section"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *path = write_file(cases[i].text);

        check_bad(path, NULL, -EINVAL, cases[i].message);
        unlink(path);
    }
}

static void test_malformed_kernels_name_line_and_expectation(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"[kernel]\nname = x\n", ": no kfd_last_request, expected one in [kernel]"},
        {"[kernel]\nlike = 2.4\n", ":2: 'like': kernel '2.4' is not known: expected a path"},
        {"[kernel]\nlike = 6.12\nkfd_hole = 64\n", ":3: 'kfd_hole': '64' is not a request number"},
        {"[kernel]\nlike = 6.12\nresidency = never\n", ":3: 'residency': 'never' is none of"},
        {"[kernel]\nlike = 6.12\nsystem_limit = half\n", ":3: 'system_limit': 'half' is not a fr"},
        {"[machine]\n", ":1: '[machine]': expected [kernel]"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *path = write_file(cases[i].text);

        check_bad("none", path, -EINVAL, cases[i].message);
        unlink(path);
    }
}

static int count_name(void *arg, const char *name)
{
    ++*(unsigned int *)arg;
    return 0;
}

/* Reads all of sysfs, so that a value that anything divides by or shifts by is met. */
static void use(const struct fake_profile *p)
{
    char path[128], text[4096];
    unsigned int n;

    for (uint32_t node = 0; node < fake_profile_node_count(p); node++) {
        static const char *const folders[] = {"caches", "io_links", "p2p_links", "mem_banks"};

        for (size_t i = 0; i < 4; i++) {
            snprintf(path, sizeof(path), TOPOLOGY "%u/%s", node, folders[i]);
            n = 0;
            fake_sysfs_list(p, path, count_name, &n);
            for (unsigned int k = 0; k < n && k < 40; k++) {
                snprintf(path, sizeof(path), TOPOLOGY "%u/%s/%u/properties", node, folders[i], k);
                fake_sysfs_read(p, path, text, sizeof(text));
            }
        }
        snprintf(path, sizeof(path), TOPOLOGY "%u/properties", node);
        fake_sysfs_read(p, path, text, sizeof(text));
    }
    for (uint32_t g = 0; g + 1 < p->gpu_count; g++)
        fake_profile_peer(p, g, g + 1, true);
    (void)fake_profile_page_table_reserve(p);
    (void)fake_profile_system_limit(p);
    (void)fake_profile_ttm_limit(p);
}

/* A built-in file with a few bytes or values changed is refused with a text, or serves. */
static void test_damaged_files_are_refused_or_serve(void **state)
{
    static const char *const values[] = {
        "0",   "1", "63",    "64",  "255", "65536", "4294967295", "18446744073709551615",
        "yes", "x", "1 TiB", "1/3", ""};
    const char *given = getenv("KFDIRECT_SEED");
    unsigned int seed = given != NULL ? (unsigned int)strtoul(given, NULL, 10) : 1, served = 0;
    char text[8192];

    print_message("# KFDIRECT_SEED=%u\n", seed);
    for (int round = 0; round < 1500; round++) {
        const struct fake_builtin *b = &fake_builtins[rand_r(&seed) % fake_builtin_count];
        bool machine = strstr(b->name, ".machine") != NULL;
        struct fake_profile *p = NULL;
        size_t size = b->size;
        char *path;
        int err;

        memcpy(text, b->text, size);
        text[size] = '\0';
        for (int k = rand_r(&seed) % 3; k >= 0; k--) {
            char *at = text + rand_r(&seed) % size, *equal = strstr(at, " = "), *end;

            if (equal == NULL || rand_r(&seed) % 4 == 0) {
                *at = (char)(32 + rand_r(&seed) % 95);
                continue;
            }
            end = strchr(equal, '\n');
            if (end != NULL) {
                const char *value = values[rand_r(&seed) % (sizeof(values) / sizeof(values[0]))];
                size_t len = strlen(value);

                memmove(equal + 3 + len, end, strlen(end) + 1);
                memcpy(equal + 3, value, len);
                size = strlen(text);
            }
        }
        path = write_file(text);
        err = machine ? fake_profile_load(path, NULL, &p) : fake_profile_load("mi210:2", path, &p);
        if (err == 0) {
            served++;
            use(p);
            fake_profile_free(p);
        } else {
            /* "like = 1/3" is a path. */
            assert_true(err == -EINVAL || err == -ENOENT);
            assert_true(strlen(kfd_error_text()) > 10);
        }
        unlink(path);
    }
    /* Else nothing was tried. */
    assert_in_range(served, 100, 1400);
}

static void test_builtins_are_listed_with_what_they_are(void **state)
{
    static const char *const machines[] = {
        "apu",    "cpx64",           "mi100",  "mi210", "mi300x",        "navi10-hollow",
        "navi31", "navi31-smallbar", "navi48", "none",  "vega10-hollow", "vegam-hollow"};
    static const char *const kernels[] = {"6.1", "6.12", "6.8", "current"};
    char name[32], about[FAKE_ABOUT_SIZE], last[32] = "";
    unsigned int found = 0;
    size_t n;

    for (n = 0; fake_profile_list(".machine", n, name, sizeof(name), about, sizeof(about)) == 0;
         n++) {
        assert_true(strlen(about) > 5);
        for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
            found += strcmp(name, machines[i]) == 0;
    }
    assert_int_equal(n, 12);
    assert_int_equal(found, 12);
    for (n = 0; fake_profile_list(".kernel", n, name, sizeof(name), about, sizeof(about)) == 0;
         n++) {
        assert_true(strlen(about) > 5);
        assert_true(strverscmp(last, name) < 0);
        strcpy(last, name);
        for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
            found += strcmp(name, kernels[i]) == 0;
    }
    assert_int_equal(n, 4);
    assert_int_equal(found, 16);
}

static void test_file_that_includes_itself_is_refused(void **state)
{
    char *path = write_file("");
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fprintf(f, "[kernel]\nlike = %s\n", path);
    fclose(f);
    check_bad("none", path, -EINVAL, "expected at most 4 files behind each other");
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_builtin_loads_and_ids_are_unique),
        cmocka_unit_test(test_count_makes_cards_at_different_places),
        cmocka_unit_test(test_bridged_cards_form_hives_of_four),
        cmocka_unit_test(test_pcie_peers_need_the_switch_and_a_large_bar),
        cmocka_unit_test(test_partitions_share_a_card),
        cmocka_unit_test(test_limits_follow_the_kernel),
        cmocka_unit_test(test_kernel_without_driver_for_the_chip_says_so),
        cmocka_unit_test(test_bad_names_and_counts_are_refused),
        cmocka_unit_test(test_own_machine_may_start_from_a_builtin_one),
        cmocka_unit_test(test_malformed_files_name_line_and_expectation),
        cmocka_unit_test(test_malformed_kernels_name_line_and_expectation),
        cmocka_unit_test(test_damaged_files_are_refused_or_serve),
        cmocka_unit_test(test_builtins_are_listed_with_what_they_are),
        cmocka_unit_test(test_file_that_includes_itself_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
