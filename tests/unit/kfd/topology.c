/* SPDX-License-Identifier: MIT */
#include "kfd/topology.h"

#include <stdio.h>
#include <string.h>

#include "stub_sys.h"

struct two {
    uint32_t narrow;
    uint64_t wide;
};

static const struct kfd_topology_key two_keys[] = {
    {"narrow", offsetof(struct two, narrow), sizeof(uint32_t), true},
    {"wide", offsetof(struct two, wide), sizeof(uint64_t), false},
};

static int parse(const char *text, struct two *out)
{
    memset(out, 0, sizeof(*out));
    return kfd_topology_parse(text, two_keys, 2, out);
}

static void test_parse_takes_known_keys_in_any_order(void **state)
{
    struct two two;

    assert_int_equal(
        parse("wide 18446744073709551615\nother text of any kind\nnarrow 4294967295\n", &two), 0);
    assert_int_equal(two.narrow, UINT32_MAX);
    assert_int_equal(two.wide, UINT64_MAX);
    assert_int_equal(parse("narrow 7", &two), 0); /* no newline at the end */
    assert_int_equal(two.narrow, 7);
}

static void test_parse_does_not_take_a_prefix_for_a_key(void **state)
{
    struct two two;

    assert_int_equal(parse("narrow 1\nwide_open 5\nwid 6\n", &two), 0);
    assert_int_equal(two.wide, 0);
}

static void test_parse_refuses_malformed_values(void **state)
{
    static const char *const texts[] = {
        "narrow\n",
        "narrow \n",
        "narrow x\n",
        "narrow -1\n",
        "narrow 1 2\n",
        "narrow 0x10\n",
        "narrow  1\n",
        "narrow 1\r\n",
        "narrow 4294967296\n",
        "narrow 1\nwide 18446744073709551616\n",
        "narrow 1\nwide 99999999999999999999999\n",
    };
    struct two two;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(parse(texts[i], &two), -EINVAL);
}

static void test_parse_names_the_line_and_the_missing_key(void **state)
{
    struct two two;

    assert_int_equal(parse("a 1\nb 2\nwide oops\nnarrow 1\n", &two), -EINVAL);
    assert_non_null(strstr(kfd_error_text(), "line 3"));
    assert_int_equal(parse("wide 1\n", &two), -EINVAL);
    assert_non_null(strstr(kfd_error_text(), "narrow"));
    assert_int_equal(parse("", &two), -EINVAL);
}

static void test_a_gpu_comes_with_its_properties(void **state)
{
    struct stub *stub = stub_new(2);
    struct kfd_topology topo;
    const struct kfd_device_info *gpu;

    assert_int_equal(kfd_topology_read(&stub->base, &topo), 0);
    assert_int_equal(topo.generation, 2);
    assert_int_equal(topo.cpu_count, 1);
    assert_int_equal(topo.gpu_count, 2);
    assert_int_equal(topo.skipped.count, 0);
    gpu = &topo.gpus[1];
    assert_int_equal(gpu->node, 2);
    assert_int_equal(gpu->gpu_id, 1001);
    assert_int_equal(gpu->render_minor, 129);
    assert_int_equal(gpu->vendor_id, 0x1002);
    assert_int_equal(gpu->device_id, 0x74a1);
    assert_int_equal(gpu->domain, 1);
    assert_int_equal(gpu->location_id, 0x200);
    assert_int_equal(gpu->gfx_version, 90402);
    assert_int_equal(gpu->num_xcc, 8);
    assert_int_equal(gpu->simd_count, 1216);
    assert_int_equal(gpu->hive_id, UINT64_MAX);
    assert_int_equal(gpu->vram_size, UINT64_C(206141652992));
    assert_int_equal(gpu->mem_width_bits, 8192);
    assert_true(gpu->large_bar);
    assert_int_equal(gpu->cpu_node, 0);
    assert_string_equal(gpu->product, "ip discovery");
    assert_int_equal(topo.link_count, 2);
    kfd_topology_free(&topo);
    stub_free(stub);
}

static void test_64_nodes_and_more_come_in_node_order(void **state)
{
    struct stub *stub = stub_new(72);
    struct kfd_topology topo;

    assert_int_equal(kfd_topology_read(&stub->base, &topo), 0);
    assert_int_equal(topo.gpu_count, 72);
    for (uint32_t i = 0; i < 72; i++)
        assert_int_equal(topo.gpus[i].node, i + 1);
    kfd_topology_free(&topo);
    stub_free(stub);
}

static void test_kernels_without_partitions_have_one_xcc(void **state)
{
    struct stub *stub = stub_new(1);
    struct kfd_topology topo;

    stub_set_file(stub, "nodes/1/properties", "device_id 29772\ndrm_render_minor 128\n");
    assert_int_equal(kfd_topology_read(&stub->base, &topo), 0);
    assert_int_equal(topo.gpus[0].num_xcc, 1);
    kfd_topology_free(&topo);
    stub_free(stub);
}

static void test_a_private_bank_means_a_small_bar(void **state)
{
    struct stub *stub = stub_new(2);
    struct kfd_topology topo;

    stub_write_bank(stub, 0, 2, 1 << 30);
    stub_set_file(stub, "nodes/2/mem_banks/1/properties", "heap_type 2\nsize_in_bytes 4096\n");
    assert_int_equal(kfd_topology_read(&stub->base, &topo), 0);
    assert_false(topo.gpus[0].large_bar);
    assert_int_equal(topo.gpus[0].vram_size, 1 << 30);
    assert_false(topo.gpus[1].large_bar); /* one public, one private */
    assert_int_equal(topo.gpus[1].vram_size, UINT64_C(206141652992) + 4096);
    kfd_topology_free(&topo);
    stub_free(stub);
}

/* Reads a topology whose node 1 has been spoilt; node 2 must be there, and a reason. */
static void expect_node_1_skipped(struct stub *stub, const char *reason)
{
    struct kfd_topology topo;

    assert_int_equal(kfd_topology_read(&stub->base, &topo), 0);
    assert_int_equal(topo.gpu_count, 1);
    assert_int_equal(topo.gpus[0].node, 2);
    assert_int_equal(topo.skipped.count, 1);
    assert_non_null(strstr(topo.skipped.text[0], "node 1"));
    if (!strstr(topo.skipped.text[0], reason))
        fail_msg("'%s' lacks '%s'", topo.skipped.text[0], reason);
    kfd_topology_free(&topo);
    stub_free(stub);
}

static void test_a_node_hidden_by_the_cgroup_is_skipped(void **state)
{
    struct stub *stub = stub_new(2);

    stub_set_error(stub, "nodes/1/gpu_id", -EPERM);
    stub_set_error(stub, "nodes/1/properties", -EPERM);
    stub_set_error(stub, "nodes/1/mem_banks/0/properties", -EPERM);
    stub_set_error(stub, "nodes/1/io_links/0/properties", -EPERM);
    expect_node_1_skipped(stub, "cgroup");
}

static void test_malformed_nodes_are_skipped(void **state)
{
    static const struct {
        const char *path, *text, *reason;
    } spoilt[] = {
        {"nodes/1/gpu_id", "x\n", "not a decimal"},
        {"nodes/1/gpu_id", "4294967296\n", "32 bits"},
        {"nodes/1/properties", "", "no device_id"},
        {"nodes/1/properties", "device_id 4\n", "no drm_render_minor"},
        {"nodes/1/properties", "device_id 4\ndrm_render_minor 4294967424\n", "line 2"},
        {"nodes/1/mem_banks/0/properties", "heap_type 1\n", "no size_in_bytes"},
        {"nodes/1/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 1e9\n", "line 2"},
    };

    for (size_t i = 0; i < sizeof(spoilt) / sizeof(spoilt[0]); i++) {
        struct stub *stub = stub_new(2);

        stub_set_file(stub, spoilt[i].path, spoilt[i].text);
        expect_node_1_skipped(stub, spoilt[i].reason);
    }
}

static void test_banks_that_overflow_are_skipped(void **state)
{
    struct stub *stub = stub_new(2);

    stub_write_bank(stub, 0, 1, UINT64_MAX);
    stub_set_file(stub, "nodes/1/mem_banks/1/properties", "heap_type 1\nsize_in_bytes 4096\n");
    expect_node_1_skipped(stub, "overflow");
}

static void test_a_malformed_link_is_left_out_and_its_node_stays(void **state)
{
    struct stub *stub = stub_new(2);
    struct kfd_topology topo;

    stub_write_link(stub, 1, "p2p_links", 0, 2, 2, 1);
    stub_set_file(stub, "nodes/1/io_links/0/properties", "type two\n");
    assert_int_equal(kfd_topology_read(&stub->base, &topo), 0);
    assert_int_equal(topo.gpu_count, 2);
    assert_int_equal(topo.link_count, 2);
    assert_true(topo.links[0].peer);
    assert_int_equal(topo.links[0].node_to, 2);
    assert_int_equal(topo.gpus[0].cpu_node, KFD_NO_NODE);
    assert_int_equal(topo.skipped.count, 1);
    kfd_topology_free(&topo);
    stub_free(stub);
}

static void test_a_link_to_a_hidden_node_needs_no_reason(void **state)
{
    struct stub *stub = stub_new(1);
    struct kfd_topology topo;

    stub_set_error(stub, "nodes/1/io_links/1/properties", -EPERM);
    assert_int_equal(kfd_topology_read(&stub->base, &topo), 0);
    assert_int_equal(topo.link_count, 1);
    assert_int_equal(topo.skipped.count, 0);
    kfd_topology_free(&topo);
    stub_free(stub);
}

/* The test's arg counts the reads of generation_id; every second one up to `changes` sees a new
 * number, as when GPUs come while the scan runs. */
struct changing {
    int reads, changes;
};

static void bump_generation(struct stub *stub, const char *path)
{
    struct changing *c = stub->arg;
    char text[32];

    if (!strstr(path, "generation_id"))
        return;
    if (c->reads++ % 2 == 1 && c->changes > 0) {
        c->changes--;
        snprintf(text, sizeof(text), "%d\n", 100 + c->changes);
        stub_set_file(stub, "generation_id", text);
    }
}

static void test_a_change_during_the_scan_repeats_it(void **state)
{
    struct stub *stub = stub_new(2);
    struct changing changing = {.changes = 2};
    struct kfd_topology topo;

    stub->reading = bump_generation;
    stub->arg = &changing;
    assert_int_equal(kfd_topology_read(&stub->base, &topo), 0);
    assert_int_equal(changing.reads, 6);
    assert_int_equal(topo.generation, 100);
    assert_int_equal(topo.gpu_count, 2);
    assert_int_equal(topo.link_count, 2);
    kfd_topology_free(&topo);
    stub_free(stub);
}

static void test_an_endless_change_is_eagain(void **state)
{
    struct stub *stub = stub_new(1);
    struct changing changing = {.changes = 1000};
    struct kfd_topology topo;

    stub->reading = bump_generation;
    stub->arg = &changing;
    assert_int_equal(kfd_topology_read(&stub->base, &topo), -EAGAIN);
    assert_null(topo.gpus);
    stub_free(stub);
}

static void test_an_unreadable_tree_is_its_errno(void **state)
{
    struct stub *stub = stub_new(1);
    struct kfd_topology topo;

    stub_set_error(stub, "generation_id", -EACCES);
    assert_int_equal(kfd_topology_read(&stub->base, &topo), -EACCES);
    assert_non_null(strstr(kfd_error_text(), "generation_id"));
    stub_free(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_takes_known_keys_in_any_order),
        cmocka_unit_test(test_parse_does_not_take_a_prefix_for_a_key),
        cmocka_unit_test(test_parse_refuses_malformed_values),
        cmocka_unit_test(test_parse_names_the_line_and_the_missing_key),
        cmocka_unit_test(test_a_gpu_comes_with_its_properties),
        cmocka_unit_test(test_64_nodes_and_more_come_in_node_order),
        cmocka_unit_test(test_kernels_without_partitions_have_one_xcc),
        cmocka_unit_test(test_a_private_bank_means_a_small_bar),
        cmocka_unit_test(test_a_node_hidden_by_the_cgroup_is_skipped),
        cmocka_unit_test(test_malformed_nodes_are_skipped),
        cmocka_unit_test(test_banks_that_overflow_are_skipped),
        cmocka_unit_test(test_a_malformed_link_is_left_out_and_its_node_stays),
        cmocka_unit_test(test_a_link_to_a_hidden_node_needs_no_reason),
        cmocka_unit_test(test_a_change_during_the_scan_repeats_it),
        cmocka_unit_test(test_an_endless_change_is_eagain),
        cmocka_unit_test(test_an_unreadable_tree_is_its_errno),
    };

    return cmocka_run_group_tests_name("kfd/topology", tests, NULL, NULL);
}
