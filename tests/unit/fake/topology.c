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

#include "fake/sysfs.h"

#define TOPOLOGY "/sys/class/kfd/kfd/topology/"

static struct fake_profile *load(const char *machine, const char *kernel)
{
    struct fake_profile *p = NULL;

    assert_int_equal(fake_profile_load(machine, kernel, &p), 0);
    return p;
}

static const char *text_of(const struct fake_profile *p, const char *path)
{
    static char buf[4096];
    char full[256];

    snprintf(full, sizeof(full), TOPOLOGY "%s", path);
    assert_true(fake_sysfs_read(p, full, buf, sizeof(buf)) >= 0);
    return buf;
}

static unsigned long long value(const struct fake_profile *p, const char *path, const char *key)
{
    const char *text = text_of(p, path);
    size_t len = strlen(key);

    for (const char *at = text; at != NULL && *at; at = strchr(at, '\n') + 1) {
        if (strncmp(at, key, len) == 0 && at[len] == ' ')
            return strtoull(at + len + 1, NULL, 10);
    }
    fail_msg("%s: no %s", path, key);
    return 0;
}

static void test_gpu_properties_come_in_the_kernels_order(void **state)
{
    struct fake_profile *p = load("mi300x:8", "6.12");

    assert_string_equal(
        text_of(p, "nodes/2/properties"),
        "cpu_cores_count 0\nsimd_count 1216\nmem_banks_count 1\ncaches_count 474\n"
        "io_links_count 8\np2p_links_count 1\ncpu_core_id_base 0\nsimd_id_base 2147487744\n"
        "max_waves_per_simd 8\nlds_size_in_kb 64\ngds_size_in_kb 0\nnum_gws 64\n"
        "wave_front_size 64\narray_count 32\nsimd_arrays_per_engine 1\ncu_per_simd_array 10\n"
        "simd_per_cu 4\nmax_slots_scratch_cu 32\ngfx_target_version 90402\nvendor_id 4098\n"
        "device_id 29857\nlocation_id 1280\ndomain 0\ndrm_render_minor 128\n"
        "hive_id 9007199254740996096\nnum_sdma_engines 2\nnum_sdma_xgmi_engines 14\n"
        "num_sdma_queues_per_engine 8\nnum_cp_queues 24\ncwsr_size 23203840\n"
        "ctl_stack_size 12288\nmax_engine_clk_fcompute 2100\nlocal_mem_size 0\nfw_version 166\n"
        "capability 611820160\ndebug_prop 1511\nsdma_fw_version 19\n"
        "unique_id 6489968538017595648\nnum_xcc 8\nmax_engine_clk_ccompute 3700\n");
    fake_profile_free(p);
}

static void test_cpu_node_leaves_out_the_gpu_keys(void **state)
{
    struct fake_profile *p = load("mi300x:8", "6.12");
    const char *text = text_of(p, "nodes/1/properties");

    assert_null(strstr(text, "num_xcc"));
    assert_null(strstr(text, "capability"));
    assert_non_null(strstr(text, "cwsr_size 0\n"));
    assert_true(value(p, "nodes/1/properties", "cpu_core_id_base") == 96);
    assert_true(value(p, "nodes/1/properties", "io_links_count") == 5);
    assert_string_equal(text_of(p, "nodes/1/name"), "\n");
    assert_string_equal(text_of(p, "nodes/1/gpu_id"), "0\n");
    fake_profile_free(p);
}

static void test_older_kernel_prints_fewer_keys(void **state)
{
    struct fake_profile *p = load("mi210:2", "6.1");
    const char *text = text_of(p, "nodes/2/properties");

    assert_null(strstr(text, "num_xcc"));
    assert_null(strstr(text, "cwsr_size"));
    assert_null(strstr(text, "debug_prop"));
    assert_non_null(strstr(text, "sdma_fw_version"));
    assert_null(strstr(text_of(p, "nodes/2/io_links/0/properties"), "recommended_sdma"));
    fake_profile_free(p);
}

static void test_svm_bit_follows_the_switch(void **state)
{
    struct fake_profile *p = load("mi210", "6.12+svm");

    assert_true(value(p, "nodes/2/properties", "capability") & 0x08000000);
    fake_profile_free(p);
    p = load("mi210", "6.12");
    assert_false(value(p, "nodes/2/properties", "capability") & 0x08000000);
    fake_profile_free(p);
}

static void test_bank_type_tells_the_bar(void **state)
{
    struct fake_profile *p = load("navi31", NULL);

    assert_true(value(p, "nodes/0/mem_banks/0/properties", "heap_type") == 0);
    assert_true(value(p, "nodes/1/mem_banks/0/properties", "heap_type") == 1);
    assert_true(value(p, "nodes/1/mem_banks/0/properties", "size_in_bytes") == 25753026560ull);
    fake_profile_free(p);
    p = load("navi31-smallbar", NULL);
    assert_true(value(p, "nodes/1/mem_banks/0/properties", "heap_type") == 2);
    assert_true(value(p, "nodes/1/mem_banks/0/properties", "size_in_bytes") == 25753026560ull);
    assert_true(value(p, "nodes/0/properties", "io_links_count") == 0);
    fake_profile_free(p);
}

static void test_first_link_of_a_gpu_leads_to_its_cpu(void **state)
{
    struct fake_profile *p = load("mi300x:8", NULL);

    assert_true(value(p, "nodes/9/io_links/0/properties", "node_to") == 1);
    assert_true(value(p, "nodes/9/io_links/0/properties", "type") == 2);
    assert_true(value(p, "nodes/9/io_links/1/properties", "type") == 11);
    assert_true(value(p, "nodes/9/p2p_links/0/properties", "node_to") == 0);
    assert_true(value(p, "nodes/9/p2p_links/0/properties", "weight") == 52);
    fake_profile_free(p);
}

static void test_counted_entries_exist_and_no_more(void **state)
{
    struct fake_profile *p = load("cpx64", NULL);

    for (uint32_t node = 0; node < fake_profile_node_count(p); node++) {
        static const char *const kinds[][2] = {{"caches_count", "caches"},
                                               {"io_links_count", "io_links"},
                                               {"p2p_links_count", "p2p_links"}};
        char path[128];

        for (size_t k = 0; k < 3; k++) {
            unsigned long long n;

            snprintf(path, sizeof(path), "nodes/%u/properties", node);
            n = value(p, path, kinds[k][0]);
            snprintf(path, sizeof(path), TOPOLOGY "nodes/%u/%s/%llu", node, kinds[k][1], n);
            assert_int_equal(fake_sysfs_lookup(p, path), FAKE_SYSFS_NONE);
            if (n == 0)
                continue;
            snprintf(path, sizeof(path), "nodes/%u/%s/%llu/properties", node, kinds[k][1], n - 1);
            assert_true(strlen(text_of(p, path)) > 0);
        }
    }
    assert_true(value(p, "nodes/65/properties", "location_id") == (0xe500 | 7));
    fake_profile_free(p);
}

static void test_gpu_hidden_by_the_cgroup_is_listed_but_not_readable(void **state)
{
    char path[] = "/tmp/fake-hidden-XXXXXX", buf[4096];
    const char text[] = "[cpu]\n[gpu]\nlike=mi210\nhive_size=2\n"
                        "[gpu]\nlike=mi210\nhive_size=2\nhidden=yes\n";
    int fd = mkstemp(path);
    struct fake_profile *p;

    assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    close(fd);
    p = load(path, NULL);
    unlink(path);
    assert_int_equal(fake_sysfs_lookup(p, TOPOLOGY "nodes/2"), FAKE_SYSFS_DIR);
    assert_int_equal(fake_sysfs_read(p, TOPOLOGY "nodes/2/properties", buf, sizeof(buf)), -EPERM);
    assert_int_equal(fake_sysfs_read(p, TOPOLOGY "nodes/2/gpu_id", buf, sizeof(buf)), -EPERM);
    assert_true(value(p, "nodes/1/properties", "io_links_count") == 2);
    assert_int_equal(fake_sysfs_read(p, TOPOLOGY "nodes/1/io_links/1/properties", buf, sizeof(buf)),
                     -EPERM);
    fake_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpu_properties_come_in_the_kernels_order),
        cmocka_unit_test(test_cpu_node_leaves_out_the_gpu_keys),
        cmocka_unit_test(test_older_kernel_prints_fewer_keys),
        cmocka_unit_test(test_svm_bit_follows_the_switch),
        cmocka_unit_test(test_bank_type_tells_the_bar),
        cmocka_unit_test(test_first_link_of_a_gpu_leads_to_its_cpu),
        cmocka_unit_test(test_counted_entries_exist_and_no_more),
        cmocka_unit_test(test_gpu_hidden_by_the_cgroup_is_listed_but_not_readable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
