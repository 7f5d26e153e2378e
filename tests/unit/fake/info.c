/* SPDX-License-Identifier: MIT */
#include "rig.h"

static uint64_t mapped_gtt(struct rig *f, uint64_t va, uint64_t size)
{
    uint64_t handle = rig_must_alloc(f, 0, va, size, KFD_MEM_GTT | KFD_MEM_WRITABLE);

    assert_int_equal(rig_map(f, handle, 0), 0);
    return handle;
}

static int info(struct rig *f, struct drm_amdgpu_info *a, void *out, uint32_t size)
{
    a->return_pointer = (uintptr_t)out;
    a->return_size = size;
    return rig_request(f, f->drm[0], DRM_CODE_INFO, a);
}

static void test_version_replaces_lengths_and_cuts_strings(void **state)
{
    struct rig f;
    char name[4] = "xxx";
    struct drm_version v = {.name_len = 3, .name = name};

    rig_open(&f, "mi300x", "6.12", 0);
    assert_int_equal(rig_request(&f, f.drm[0], DRM_CODE_VERSION, &v), 0);
    assert_int_equal(v.version_major, 3);
    assert_int_equal(v.version_minor, 61);
    assert_int_equal(v.name_len, 6);
    assert_memory_equal(name, "amd", 3);
    assert_int_equal(v.date_len, 1);
    v.name = (char *)8;
    assert_int_equal(rig_request(&f, f.drm[0], DRM_CODE_VERSION, &v), -EFAULT);
    rig_end(&f);
}

static void test_device_info_is_the_profiles(void **state)
{
    struct rig f;
    struct drm_amdgpu_info a = {.query = AMDGPU_INFO_DEV_INFO};
    struct drm_amdgpu_info_device d;

    rig_open(&f, "mi300x", "6.12", 0);
    assert_int_equal(info(&f, &a, &d, sizeof(d)), 0);
    assert_int_equal(d.device_id, 0x74a1);
    assert_int_equal(d.family, 141);
    assert_true(d.virtual_address_offset == 0x10000);
    assert_true(d.virtual_address_max == 0x800000000000ull);
    assert_true(d.high_va_offset == 0xffff800000000000ull);
    assert_true(d.high_va_max == 0xffffffffffbf0000ull);
    assert_int_equal(d.pte_fragment_size, 0x200000);
    assert_int_equal(d.cu_active_number, 304);
    assert_int_equal(d.num_shader_engines, 4);
    rig_end(&f);
    rig_open(&f, "vegam-hollow", "6.1", 0);
    assert_int_equal(info(&f, &a, &d, sizeof(d)), 0);
    assert_true(d.virtual_address_offset == 0x200000);
    assert_true(d.virtual_address_max == (1ull << 40) - 0x200000);
    assert_true(d.high_va_offset == 0);
    rig_end(&f);
}

static void test_answer_is_cut_to_the_shorter_side(void **state)
{
    struct rig f;
    struct drm_amdgpu_info a = {.query = AMDGPU_INFO_DEV_INFO};
    unsigned char buf[1024];

    rig_open(&f, "mi300x", "6.12", 0);
    memset(buf, 0xee, sizeof(buf));
    assert_int_equal(info(&f, &a, buf, 4), 0);
    assert_int_equal(buf[4], 0xee);
    assert_int_equal(info(&f, &a, buf, sizeof(buf)), 0);
    assert_int_equal(buf[439], 0);
    assert_int_equal(buf[440], 0xee);
    rig_end(&f);
}

static void test_bad_queries_are_refused(void **state)
{
    struct rig f;
    struct drm_amdgpu_info a = {.query = AMDGPU_INFO_ACCEL_WORKING};
    uint32_t word = 7;

    rig_open(&f, "mi300x", "6.12", 0);
    assert_int_equal(info(&f, &a, &word, 0), -EINVAL);
    assert_int_equal(info(&f, &a, NULL, 4), -EINVAL);
    assert_int_equal(info(&f, &a, (void *)8, 4), -EFAULT);
    assert_int_equal(word, 7);
    assert_int_equal(info(&f, &a, &word, 4), 0);
    assert_int_equal(word, 1);
    a.query = 0xffff;
    assert_int_equal(info(&f, &a, &word, 4), -EINVAL);
    a = (struct drm_amdgpu_info){.query = AMDGPU_INFO_FW_VERSION, .query_fw.fw_type = 0x77};
    assert_int_equal(info(&f, &a, &word, 4), -EINVAL);
    a = (struct drm_amdgpu_info){.query = AMDGPU_INFO_HW_IP_COUNT,
                                 .query_hw_ip.type = AMDGPU_HW_IP_NUM};
    assert_int_equal(info(&f, &a, &word, 4), -EINVAL);
    rig_end(&f);
}

static void test_registers_outside_the_list_are_efault(void **state)
{
    struct rig f;
    struct drm_amdgpu_info a = {.query = AMDGPU_INFO_READ_MMR_REG};
    uint32_t words[200] = {0};

    rig_open(&f, "mi300x", "6.12", 0);
    a.read_mmr_reg.dword_offset = 0x263e;
    a.read_mmr_reg.count = 1;
    a.read_mmr_reg.instance = UINT32_MAX;
    assert_int_equal(info(&f, &a, words, 4), 0);
    assert_int_equal(words[0], 0x2a114042);
    a.read_mmr_reg.count = 2;
    assert_int_equal(info(&f, &a, words, 8), -EFAULT);
    a.read_mmr_reg.count = 129;
    assert_int_equal(info(&f, &a, words, sizeof(words)), -EINVAL);
    rig_end(&f);
}

static void test_heaps_follow_allocations(void **state)
{
    struct rig f;
    struct drm_amdgpu_info a = {.query = AMDGPU_INFO_MEMORY};
    struct drm_amdgpu_memory_info m;

    rig_start(&f, "navi31-smallbar", "6.12", 0);
    assert_int_equal(info(&f, &a, &m, sizeof(m)), 0);
    assert_true(m.vram.total_heap_size == 24560ull << 20);
    assert_true(m.cpu_accessible_vram.total_heap_size == 256ull << 20);
    assert_true(m.gtt.total_heap_size == 32ull << 30);
    assert_true(m.gtt.heap_usage == 0);
    mapped_gtt(&f, 0x10000000, 1 << 20);
    assert_int_equal(info(&f, &a, &m, sizeof(m)), 0);
    assert_true(m.gtt.heap_usage == 1 << 20);
    rig_end(&f);
}

static void test_client_is_refused_on_a_render_node_only(void **state)
{
    struct rig f;
    struct drm_client c = {0};
    int card;

    rig_open(&f, "mi300x", "6.12", 0);
    assert_int_equal(rig_request(&f, f.drm[0], DRM_CODE_GET_CLIENT, &c), -EACCES);
    card = f.sys->ops->open_path(f.sys, "/dev/dri/card0", O_RDWR | O_CLOEXEC);
    assert_true(card >= 0);
    assert_int_equal(rig_request(&f, card, DRM_CODE_GET_CLIENT, &c), 0);
    c.idx = 1;
    assert_int_equal(rig_request(&f, card, DRM_CODE_GET_CLIENT, &c), -EINVAL);
    f.sys->ops->close_fd(f.sys, card);
    rig_end(&f);
}

static void test_capabilities_are_those_of_a_driver_with_displays(void **state)
{
    struct rig f;
    struct drm_get_cap cap = {.capability = DRM_CAP_PRIME};

    rig_open(&f, "mi300x", "6.12", 0);
    assert_int_equal(rig_request(&f, f.drm[0], DRM_CODE_GET_CAP, &cap), 0);
    assert_int_equal(cap.value, 3);
    cap.capability = DRM_CAP_DUMB_BUFFER;
    assert_int_equal(rig_request(&f, f.drm[0], DRM_CODE_GET_CAP, &cap), 0);
    assert_int_equal(cap.value, 1);
    cap.capability = 0x7f;
    assert_int_equal(rig_request(&f, f.drm[0], DRM_CODE_GET_CAP, &cap), -EINVAL);
    rig_end(&f);
}

/* A block that is not there: an empty answer, and no count on newer kernels. */
static void absent_block(const char *kernel, int count)
{
    struct rig f;
    struct drm_amdgpu_info a = {.query = AMDGPU_INFO_HW_IP_INFO,
                                .query_hw_ip.type = AMDGPU_HW_IP_UVD};
    struct drm_amdgpu_info_hw_ip ip;
    uint32_t n = 7;

    rig_open(&f, "mi210", kernel, 0);
    assert_int_equal(info(&f, &a, &ip, sizeof(ip)), 0);
    assert_int_equal(ip.hw_ip_version_major, 0);
    a.query = AMDGPU_INFO_HW_IP_COUNT;
    assert_int_equal(info(&f, &a, &n, sizeof(n)), count);
    assert_int_equal(n, count < 0 ? 7 : 0);
    rig_end(&f);
}

static void test_absent_blocks_are_counted_by_old_kernels_only(void **state)
{
    absent_block("6.1", 0);
    absent_block("6.12", -EINVAL);
}

static void test_sdma_has_a_version_of_its_own(void **state)
{
    static const struct {
        const char *machine;
        uint32_t major, minor;
    } chips[] = {{"vegam-hollow", 3, 1},
                 {"mi210", 4, 0},
                 {"mi300x", 4, 4},
                 {"navi10-hollow", 5, 0},
                 {"navi31", 6, 0}};

    for (size_t i = 0; i < sizeof(chips) / sizeof(chips[0]); i++) {
        struct rig f;
        struct drm_amdgpu_info a = {.query = AMDGPU_INFO_HW_IP_INFO,
                                    .query_hw_ip.type = AMDGPU_HW_IP_DMA};
        struct drm_amdgpu_info_hw_ip ip;

        rig_open(&f, chips[i].machine, "6.12", 0);
        assert_int_equal(info(&f, &a, &ip, sizeof(ip)), 0);
        assert_int_equal(ip.hw_ip_version_major, chips[i].major);
        assert_int_equal(ip.hw_ip_version_minor, chips[i].minor);
        rig_end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_replaces_lengths_and_cuts_strings),
        cmocka_unit_test(test_device_info_is_the_profiles),
        cmocka_unit_test(test_answer_is_cut_to_the_shorter_side),
        cmocka_unit_test(test_bad_queries_are_refused),
        cmocka_unit_test(test_registers_outside_the_list_are_efault),
        cmocka_unit_test(test_heaps_follow_allocations),
        cmocka_unit_test(test_client_is_refused_on_a_render_node_only),
        cmocka_unit_test(test_capabilities_are_those_of_a_driver_with_displays),
        cmocka_unit_test(test_absent_blocks_are_counted_by_old_kernels_only),
        cmocka_unit_test(test_sdma_has_a_version_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
