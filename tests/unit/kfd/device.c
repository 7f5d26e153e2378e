/* SPDX-License-Identifier: MIT */
#include <kfdirect/kfd.h>

#include <string.h>

#include "stub_sys.h"

#define NO_PEER 16u

static void test_devices_are_found_by_index_and_gpu_id(void **state)
{
    struct stub *stub = stub_new(3);
    struct kfd *kfd;

    assert_int_equal(kfd_open(&stub->base, &kfd), 0);
    for (uint32_t i = 0; i < 3; i++) {
        struct kfd_device *dev = kfd_device_at(kfd, i);

        assert_ptr_equal(kfd_device_by_gpu_id(kfd, 1000 + i), dev);
        assert_ptr_equal(kfd_device_kfd(dev), kfd);
        assert_int_equal(stub->fds[kfd_device_drm_fd(dev)].gpu, (int)i);
    }
    assert_null(kfd_device_at(kfd, 3));
    assert_null(kfd_device_by_gpu_id(kfd, 0));
    assert_null(kfd_device_by_gpu_id(kfd, 5));
    assert_ptr_equal(kfd_get_sys(kfd), &stub->base);
    kfd_close(kfd);
    stub_free(stub);
}

static bool reaches(struct kfd *kfd, uint32_t from, uint32_t to)
{
    return kfd_can_access(kfd_device_at(kfd, from), kfd_device_at(kfd, to));
}

/* The peer rule: itself; an XGMI io_link or a PCIe p2p_link from the one that maps to the owner; an
 * APU everything. Direction counts. */
static void test_access_follows_links_in_their_direction(void **state)
{
    struct stub *stub = stub_new(6);
    struct kfd *kfd;

    stub_write_link(stub, 1, "io_links", 1, KFD_LINK_XGMI, 2, 1);  /* 0 -> 1 */
    stub_write_link(stub, 3, "p2p_links", 0, KFD_LINK_PCIE, 4, 1); /* 2 -> 3 */
    stub_write_link(stub, 1, "io_links", 2, KFD_LINK_PCIE, 3, 1);  /* PCIe is no direct link */
    stub_write_link(stub, 1, "p2p_links", 0, KFD_LINK_XGMI, 4, 1); /* nor XGMI a peer link */
    stub_write_link(stub, 4, "p2p_links", 0, KFD_LINK_PCIE, 3, NO_PEER);
    stub->gpus[5].ids_flags = AMDGPU_IDS_FLAGS_FUSION;
    assert_int_equal(kfd_open(&stub->base, &kfd), 0);
    assert_int_equal(kfd_device_count(kfd), 6);
    for (uint32_t from = 0; from < 6; from++) {
        for (uint32_t to = 0; to < 6; to++) {
            bool expect =
                from == to || from == 5 || (from == 0 && to == 1) || (from == 2 && to == 3);

            if (reaches(kfd, from, to) != expect)
                fail_msg("device %u towards %u: not %d", from, to, expect);
        }
    }
    kfd_close(kfd);
    stub_free(stub);
}

/* Node numbers are the topology's; a skipped GPU shifts the devices behind it, not their links. */
static void test_access_counts_nodes_and_not_indices(void **state)
{
    struct stub *stub = stub_new(3);
    struct kfd *kfd;

    stub_write_link(stub, 3, "io_links", 1, KFD_LINK_XGMI, 1, 1); /* third -> first */
    stub->gpus[1].open_error = -ENOENT;
    assert_int_equal(kfd_open(&stub->base, &kfd), 0);
    assert_true(reaches(kfd, 1, 0));
    assert_false(reaches(kfd, 0, 1));
    kfd_close(kfd);
    stub_free(stub);
}

static void test_links_are_listed(void **state)
{
    struct stub *stub = stub_new(1);
    struct kfd_link_info link;
    struct kfd *kfd;

    assert_int_equal(kfd_open(&stub->base, &kfd), 0);
    assert_int_equal(kfd_link_count(kfd), 1);
    kfd_link_info(kfd, 0, &link);
    assert_int_equal(link.node_from, 1);
    assert_int_equal(link.node_to, 0);
    assert_int_equal(link.type, KFD_LINK_PCIE);
    assert_int_equal(link.weight, 15);
    assert_int_equal(link.max_bandwidth, 100000);
    assert_false(link.peer);
    kfd_link_info(kfd, 1, &link);
    assert_int_equal(link.type, KFD_LINK_NONE);
    kfd_close(kfd);
    stub_free(stub);
}

static void test_names_follow_the_gfx_version(void **state)
{
    static const struct {
        const char *properties, *name;
    } chips[] = {
        {"gfx_target_version 90010\n", "gfx90a"},   {"gfx_target_version 90402\n", "gfx942"},
        {"gfx_target_version 100300\n", "gfx1030"}, {"gfx_target_version 110000\n", "gfx1100"},
        {"gfx_target_version 80003\n", "gfx803"},   {"gfx_target_version 120001\n", "gfx1201"},
    };

    for (size_t i = 0; i < sizeof(chips) / sizeof(chips[0]); i++) {
        struct stub *stub = stub_new(1);
        struct kfd *kfd;
        char text[128] = "device_id 29857\ndrm_render_minor 128\n";

        stub_set_file(stub, "nodes/1/properties", strcat(text, chips[i].properties));
        assert_int_equal(kfd_open(&stub->base, &kfd), 0);
        assert_string_equal(kfd_device_info(kfd_device_at(kfd, 0))->name, chips[i].name);
        kfd_close(kfd);
        stub_free(stub);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices_are_found_by_index_and_gpu_id),
        cmocka_unit_test(test_access_follows_links_in_their_direction),
        cmocka_unit_test(test_access_counts_nodes_and_not_indices),
        cmocka_unit_test(test_links_are_listed),
        cmocka_unit_test(test_names_follow_the_gfx_version),
    };

    return cmocka_run_group_tests_name("kfd/device", tests, NULL, NULL);
}
