/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <unistd.h>

static void test_clock_of_an_unknown_gpu_reads_zero(void **state)
{
    struct rig f;
    struct kfd_ioctl_get_clock_counters_args c = {.gpu_id = 0xdead};

    rig_open(&f, "mi210", NULL, 0);
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_GET_CLOCK_COUNTERS, &c), 0);
    assert_true(c.gpu_clock_counter == 0);
    assert_true(c.system_clock_freq == 1000000000);
    assert_true(c.cpu_clock_counter != 0 && c.system_clock_counter != 0);
    c.gpu_id = f.id[0];
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_GET_CLOCK_COUNTERS, &c), 0);
    assert_true(c.gpu_clock_counter != 0);
    rig_end(&f);
}

static void test_missing_vm_is_esrch_for_queue_settings_and_enodev_for_scratch(void **state)
{
    struct rig f;
    struct kfd_ioctl_set_memory_policy_args policy = {.gpu_id = 0xdead};
    struct kfd_ioctl_set_trap_handler_args trap = {.gpu_id = 0xdead};
    struct kfd_ioctl_set_scratch_backing_va_args scratch = {.gpu_id = 0xdead};

    rig_open(&f, "mi210", NULL, 0);
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_SET_MEMORY_POLICY, &policy), -EINVAL);
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_SET_TRAP_HANDLER, &trap), -EINVAL);
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_SET_SCRATCH_BACKING_VA, &scratch), -EINVAL);
    policy.gpu_id = trap.gpu_id = scratch.gpu_id = f.id[0];
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_SET_MEMORY_POLICY, &policy), -ESRCH);
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_SET_TRAP_HANDLER, &trap), -ESRCH);
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_SET_SCRATCH_BACKING_VA, &scratch), -ENODEV);
    assert_int_equal(rig_acquire(&f, 0, f.drm[0]), 0);
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_SET_MEMORY_POLICY, &policy), 0);
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_SET_TRAP_HANDLER, &trap), 0);
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_SET_SCRATCH_BACKING_VA, &scratch), 0);
    policy.alternate_policy = 2;
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_SET_MEMORY_POLICY, &policy), -EINVAL);
    rig_end(&f);
}

static void test_alternate_aperture_is_checked_before_gfx9_only(void **state)
{
    struct rig f;
    struct kfd_ioctl_set_memory_policy_args policy = {.alternate_aperture_base = 0x11000,
                                                      .alternate_aperture_size = 0x10000};

    rig_start(&f, "vegam-hollow", "6.12", 0);
    policy.gpu_id = f.id[0];
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_SET_MEMORY_POLICY, &policy), -EINVAL);
    policy.alternate_aperture_base = 0x20000;
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_SET_MEMORY_POLICY, &policy), 0);
    rig_end(&f);
    rig_start(&f, "vega10-hollow", "6.12", 0);
    policy.gpu_id = f.id[0];
    policy.alternate_aperture_base = 0x11000;
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_SET_MEMORY_POLICY, &policy), 0);
    rig_end(&f);
}

static void test_tile_counts_are_clamped_and_zeroed_by_a_bad_pointer(void **state)
{
    struct rig f;
    uint32_t tiles[64], macros[64];
    struct kfd_ioctl_get_tile_config_args t = {.tile_config_ptr = (uintptr_t)tiles,
                                               .macro_tile_config_ptr = (uintptr_t)macros,
                                               .num_tile_configs = 64,
                                               .num_macro_tile_configs = 64};

    rig_open(&f, "mi210", NULL, 0);
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_GET_TILE_CONFIG, &t), -EINVAL);
    t.gpu_id = f.id[0];
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_GET_TILE_CONFIG, &t), 0);
    assert_int_equal(t.num_tile_configs, 32);
    assert_int_equal(t.num_macro_tile_configs, 16);
    assert_int_equal(t.gb_addr_config, 0x24000042);
    t.macro_tile_config_ptr = 8;
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_GET_TILE_CONFIG, &t), -EFAULT);
    assert_int_equal(t.num_tile_configs, 32);
    assert_int_equal(t.num_macro_tile_configs, 0);
    rig_end(&f);
}

static void test_debuggers_are_refused(void **state)
{
    struct rig f;
    struct kfd_ioctl_dbg_register_args reg = {0};
    struct kfd_uapi_dbg_trap trap = {0};

    rig_open(&f, "mi210", "6.12", 0);
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_DBG_REGISTER, &reg), -EPERM);
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_DBG_TRAP, &trap), -ESRCH);
    trap.pid = (uint32_t)getpid();
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_DBG_TRAP, &trap), -EPERM);
    rig_end(&f);
    rig_open(&f, "mi210", "6.1", 0);
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_DBG_TRAP, &trap), -ENOTTY);
    rig_end(&f);
}

static void test_checkpoint_needs_privilege_and_a_gpu(void **state)
{
    struct rig f;
    struct kfd_ioctl_criu_args a = {.op = 99};

    rig_open(&f, "none", NULL, 0);
    if (geteuid() != 0) {
        assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_CRIU_OP, &a), -EACCES);
    } else {
        assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_CRIU_OP, &a), -EINVAL);
        a.op = KFD_CRIU_OP_PROCESS_INFO;
        assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_CRIU_OP, &a), -ENODEV);
    }
    rig_end(&f);
}

static void test_a_checkpoint_counts_devices_buffers_and_objects(void **state)
{
    struct kfd_ioctl_criu_args a = {.op = KFD_CRIU_OP_UNPAUSE, .pid = (uint32_t)getpid()};
    struct kfd_ioctl_create_event_args event = {0};
    struct rig f;

    if (geteuid() != 0)
        skip();
    rig_start(&f, "mi210:2", NULL, 0);
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_CRIU_OP, &a), -EINVAL);
    rig_must_alloc(&f, 0, 0, MIB, VRAM_RW);
    rig_must_alloc(&f, 1, 0, MIB, VRAM_RW);
    rig_must_alloc(&f, 1, 0, MIB, VRAM_RW);
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_CREATE_EVENT, &event), 0);
    a.op = KFD_CRIU_OP_PROCESS_INFO;
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_CRIU_OP, &a), 0);
    assert_int_equal(a.num_devices, 2);
    assert_int_equal(a.num_bos, 3);
    assert_int_equal(a.num_objects, 1);
    a.op = KFD_CRIU_OP_CHECKPOINT;
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_CRIU_OP, &a), -EINVAL);
    a.devices = a.bos = a.priv_data = (uintptr_t)&a;
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_CRIU_OP, &a), -EOPNOTSUPP);
    a.op = KFD_CRIU_OP_RESUME;
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_CRIU_OP, &a), -EINVAL);
    a.pid = 1;
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_CRIU_OP, &a), -ESRCH);
    a.op = KFD_CRIU_OP_UNPAUSE;
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_CRIU_OP, &a), 0);
    assert_int_equal(rig_request(&f, f.kfd, KFD_CODE_CRIU_OP, &a), -EINVAL);
    rig_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock_of_an_unknown_gpu_reads_zero),
        cmocka_unit_test(test_missing_vm_is_esrch_for_queue_settings_and_enodev_for_scratch),
        cmocka_unit_test(test_alternate_aperture_is_checked_before_gfx9_only),
        cmocka_unit_test(test_tile_counts_are_clamped_and_zeroed_by_a_bad_pointer),
        cmocka_unit_test(test_debuggers_are_refused),
        cmocka_unit_test(test_checkpoint_needs_privilege_and_a_gpu),
        cmocka_unit_test(test_a_checkpoint_counts_devices_buffers_and_objects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
