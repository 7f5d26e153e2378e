/* SPDX-License-Identifier: MIT */
/* Reported faults in reserving, mapping, granting and unmapping. The ids are those of README.md. */
#include "bugs.h"

/* A01, A02 */
static void test_one_unmap_over_several_mappings_frees_the_reservation(void **state)
{
    void *base = reserve(GIB(32));

    for (unsigned i = 0; i < 3; i++)
        put_piece(at(base, i * KIB(4)), KIB(4), 0);
    unmap(base, 3 * KIB(4));
    address_free(base, GIB(32));
}

/* A02 */
static void test_unmap_piece_by_piece_frees_the_reservation(void **state)
{
    void *base = reserve(GIB(32));

    for (unsigned i = 0; i < 3; i++)
        put_piece(at(base, i * KIB(4)), KIB(4), 0);
    for (unsigned i = 3; i-- > 0;)
        unmap(at(base, i * KIB(4)), KIB(4));
    address_free(base, GIB(32));
}

/* A03 */
static void test_released_handle_lives_until_unmap_and_free_waits_for_it(void **state)
{
    void *base = reserve(MIB(64));

    put_piece(base, MIB(4), 0);
    gpu_stamp(0, base, MIB(4), 1);
    HIP_INVALID(hipMemAddressFree(base, MIB(64)));
    gpu_expect(0, base, MIB(4), 1);
    unmap(base, MIB(4));
    address_free(base, MIB(64));
}

/* A04, A10 */
static void test_access_is_set_on_every_later_piece_of_odd_size(void **state)
{
    static const uint64_t sizes[] = {2379776, 7864320, 6533120};
    void *base = reserve(GIB(32));
    uint64_t used = 0;

    for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
        put_piece(at(base, used), sizes[i], 0);
        gpu_stamp(0, at(base, used), sizes[i], i);
        used += sizes[i];
    }
    used = 0;
    for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
        gpu_expect(0, at(base, used), sizes[i], i);
        used += sizes[i];
    }
    unmap(base, used);
    address_free(base, GIB(32));
}

/* A05, G04 */
static void test_tiny_pieces_work_in_a_thousand_runs(void **state)
{
    for (unsigned run = 0; run < 1000; run++) {
        void *base = reserve(MIB(64));
        handle_t handles[3];

        for (unsigned i = 0, offset = 0; i < 3; i++) {
            unsigned size = 4096u << i;

            handles[i] = create(0, size);
            map_rw(at(base, offset), size, handles[i], 0);
            offset += size;
        }
        unmap(base, 4096 + 8192 + 16384);
        for (unsigned i = 0; i < 3; i++)
            HIP_OK(hipMemRelease(handles[i]));
        address_free(base, MIB(64));
    }
}

/* A06 */
static void test_access_takes_any_run_of_whole_mappings_and_no_other_range(void **state)
{
    static const uint64_t sizes[] = {MIB(2), KIB(4), MIB(6), MIB(2)};
    uint64_t start[5] = {0}, hole;
    void *base = reserve(MIB(64));

    for (unsigned i = 0; i < 4; i++) {
        put_piece(at(base, start[i]), sizes[i], 0);
        HIP_OK(set_access(at(base, start[i]), sizes[i], 0, RO));
        start[i + 1] = start[i] + sizes[i];
    }
    hole = start[4] + MIB(2);
    put_piece(at(base, hole), MIB(2), 0);
    for (unsigned first = 0; first < 4; first++) {
        for (unsigned last = first; last < 4; last++) {
            uint64_t size = start[last + 1] - start[first];

            HIP_OK(set_access(at(base, start[first]), size, 0, RW));
            for (unsigned i = 0; i < 4; i++)
                assert_int_equal(get_access(at(base, start[i]), 0),
                                 i >= first && i <= last ? RW : RO);
            HIP_OK(set_access(at(base, start[first]), size, 0, RO));
        }
    }
    HIP_INVALID(set_access(base, start[4] - KIB(4), 0, RW));
    HIP_INVALID(set_access(at(base, KIB(4)), start[4] - KIB(4), 0, RW));
    HIP_INVALID(set_access(at(base, start[2]), MIB(4), 0, RW));
    HIP_INVALID(set_access(base, hole + MIB(2), 0, RW));
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(get_access(at(base, start[i]), 0), RO);
        gpu_read_only(0, at(base, start[i]));
    }
    unmap(base, MIB(64));
    address_free(base, MIB(64));
}

/* A09 */
static void test_attribute_says_one_only_where_the_whole_sequence_works(void **state)
{
    for (int i = 0; i < machine.devices; i++) {
        hipMemAllocationProp prop = device_prop(i);
        handle_t handle = NULL;
        void *va = NULL;
        int supported = -1;

        HIP_OK(hipDeviceGetAttribute(&supported, hipDeviceAttributeVirtualMemoryManagementSupported,
                                     i));
        if (!supported) {
            HIP_IS(hipErrorNotSupported, hipMemAddressReserve(&va, MIB(2), 0, NULL, 0));
            HIP_IS(hipErrorNotSupported, hipMemCreate(&handle, MIB(2), &prop, 0));
            continue;
        }
        va = reserve(MIB(64));
        put_piece(va, MIB(2), i);
        put_piece(at(va, MIB(2)), MIB(4), i);
        gpu_stamp(i, va, MIB(6), 1);
        gpu_expect(i, va, MIB(6), 1);
        unmap(va, MIB(6));
        address_free(va, MIB(64));
    }
}

/* A11 */
static void test_access_before_any_mapping_is_refused_and_not_kept(void **state)
{
    void *base = reserve(MIB(4));
    handle_t handle = create(0, MIB(4));

    HIP_INVALID(set_access(base, MIB(4), 0, RW));
    HIP_OK(hipMemMap(base, MIB(4), 0, handle, 0));
    assert_int_equal(get_access(base, 0), NO);
    gpu_unmapped(0, base);
    unmap(base, MIB(4));
    HIP_OK(hipMemRelease(handle));
    address_free(base, MIB(4));
}

/* A12, A13 */
static void test_two_addresses_of_one_handle_have_their_own_access_and_one_content(void **state)
{
    need_cpu_view();
    uint64_t size = 10 * granularity(0, hipMemAllocationGranularityMinimum);
    handle_t handle = create(0, size);
    void *first = reserve(size), *second = reserve(size);

    HIP_OK(hipMemMap(first, size, 0, handle, 0));
    HIP_OK(hipMemMap(second, size, 0, handle, 0));
    HIP_OK(set_access(first, size, 0, RW));
    assert_int_equal(get_access(first, 0), RW);
    assert_int_equal(get_access(second, 0), NO);
    gpu_unmapped(0, second);
    HIP_OK(set_access(second, size, 0, RW));
    gpu_stamp(0, first, size, 4);
    gpu_expect(0, second, size, 4);
    cpu_expect(second, size, 4);
    cpu_stamp(second, size, 5);
    gpu_expect(0, first, size, 5);
    unmap(first, size);
    gpu_expect(0, second, size, 5);
    unmap(second, size);
    address_free(first, size);
    address_free(second, size);
    HIP_OK(hipMemRelease(handle));
}

/* A14 */
static void test_pieces_apart_from_each_other_keep_their_own_bytes(void **state)
{
    need_cpu_view();
    const uint64_t size = MIB(2);
    unsigned char *out = malloc(size), *in = malloc(size);
    void *base = reserve(MIB(64));

    assert_true(out && in);
    for (unsigned i = 0; i < 6; i++) {
        put_piece(at(base, i * 5 * size), size, 0);
        for (uint64_t b = 0; b < size; b++)
            out[b] = (unsigned char)(b * 7 + b / 4096 + i);
        HIP_OK(hipMemcpy(at(base, i * 5 * size), out, size, hipMemcpyHostToDevice));
    }
    for (unsigned i = 0; i < 6; i++) {
        HIP_OK(hipMemcpy(in, at(base, i * 5 * size), size, hipMemcpyDeviceToHost));
        for (uint64_t b = 0; b < size; b++) {
            if (in[b] != (unsigned char)(b * 7 + b / 4096 + i))
                fail_msg("piece %u byte %llu", i, (unsigned long long)b);
        }
        gpu_unmapped(0, at(base, i * 5 * size + size));
    }
    unmap(base, MIB(64));
    address_free(base, MIB(64));
    free(in);
    free(out);
}

/* A15 */
static void test_get_access_tells_what_was_last_set_for_each_device(void **state)
{
    need_peers();
    static const hipMemAccessFlags order[] = {RW, RO, NO, RO, RW, NO, RW, RO};
    void *base = reserve(MIB(2));

    put_piece(base, MIB(2), 0);
    for (unsigned i = 0; i < COUNT_OF(order); i++) {
        for (int d = 0; d < machine.devices; d++) {
            hipMemAccessFlags flags = order[(i + (unsigned)d) % COUNT_OF(order)];

            HIP_OK(set_access(base, MIB(2), d, flags));
        }
        for (int d = 0; d < machine.devices; d++) {
            hipMemAccessFlags flags = order[(i + (unsigned)d) % COUNT_OF(order)];

            assert_int_equal(get_access(at(base, 12345), d), flags);
            if (flags == NO)
                gpu_unmapped(d, base);
            else if (flags == RO)
                gpu_read_only(d, base);
            else
                gpu_fault(d, base, FAKE_WRITE, FAKE_FAULT_NONE);
        }
    }
    unmap(base, MIB(2));
    address_free(base, MIB(2));
}

/* A16 */
static void test_a_peers_grant_leaves_the_owners_pages_alone_in_any_order(void **state)
{
    need_peers();
    need_devices(3);
    for (unsigned order = 0; order < 2; order++) {
        struct fake_translation was, is;
        void *base = reserve(MIB(2));
        handle_t handle = create(1, MIB(2));

        HIP_OK(hipMemMap(base, MIB(2), 0, handle, 0));
        HIP_OK(set_access(base, MIB(2), order ? 2 : 1, RW));
        HIP_OK(set_access(base, MIB(2), order ? 1 : 2, RW));
        gpu_stamp(1, base, MIB(2), order);
        if (machine.fake)
            (void)fake_gpu_translate(machine.fake, 1, (uintptr_t)base, FAKE_READ, &was);
        HIP_OK(set_access(base, MIB(2), 0, RO));
        HIP_OK(set_access(base, MIB(2), 2, NO));
        if (machine.fake) {
            (void)fake_gpu_translate(machine.fake, 1, (uintptr_t)base, FAKE_READ, &is);
            assert_true(was.object == is.object && was.offset == is.offset &&
                        was.flags == is.flags && was.page_size == is.page_size);
        }
        gpu_expect(1, base, MIB(2), order);
        gpu_expect(0, base, MIB(2), order);
        gpu_unmapped(2, base);
        unmap(base, MIB(2));
        HIP_OK(hipMemRelease(handle));
        address_free(base, MIB(2));
    }
}

/* A17: the time is not to be had without a GPU; that nothing is put off is. */
static void test_mapping_is_complete_when_set_access_returns(void **state)
{
    need_gpu_side();
    for (unsigned i = 0; i < 200; i++) {
        void *base = reserve(MIB(64));

        put_piece(base, MIB(64), 0);
        gpu_stamp(0, base, MIB(64), i);
        gpu_expect(0, base, MIB(64), i);
        unmap(base, MIB(64));
        gpu_unmapped(0, base);
        address_free(base, MIB(64));
    }
}

/* A19 */
static void test_115_unmaps_next_to_a_live_piece_leave_it_as_it_was(void **state)
{
    const uint64_t unit = MIB(20);
    void *base = reserve(128 * unit);

    for (unsigned i = 0; i < 120; i++) {
        put_piece(at(base, i * unit), unit, 0);
        gpu_stamp(0, at(base, i * unit), unit, i);
    }
    for (unsigned i = 119; i >= 5; i--) {
        unmap(at(base, i * unit), unit);
        gpu_unmapped(0, at(base, i * unit));
        gpu_expect(0, at(base, (i - 1) * unit), unit, i - 1);
    }
    for (unsigned i = 0; i < 5; i++)
        gpu_expect(0, at(base, i * unit), unit, i);
    unmap(base, 5 * unit);
    address_free(base, 128 * unit);
}

/* A21 */
static void test_handle_is_mapped_again_after_unmap_with_its_bytes(void **state)
{
    handle_t handle = create(0, MIB(2));
    void *base = reserve(MIB(64));

    for (unsigned i = 0; i < 32; i++) {
        void *va = at(base, i * MIB(2));

        map_rw(va, MIB(2), handle, 0);
        if (i)
            gpu_expect(0, va, MIB(2), i - 1);
        gpu_stamp(0, va, MIB(2), i);
        unmap(va, MIB(2));
    }
    HIP_OK(hipMemRelease(handle));
    address_free(base, MIB(64));
}

/* A23 */
static void test_host_reaches_device_memory_where_the_bar_shows_it(void **state)
{
    hipMemAccessDesc host = host_access(RW);
    int large_bar = 0;
    void *base = reserve(MIB(4));

    HIP_OK(hipDeviceGetAttribute(&large_bar, hipDeviceAttributeIsLargeBar, 0));
    put_piece(base, MIB(4), 0);
    if (large_bar) {
        HIP_OK(hipMemSetAccess(base, MIB(4), &host, 1));
        host_stamp(base, MIB(4), 2);
        gpu_expect(0, base, MIB(4), 2);
        host.flags = RO;
        HIP_OK(hipMemSetAccess(base, MIB(4), &host, 1));
        assert_true(cpu_can_read(base) && !cpu_can_write(base));
    } else {
        HIP_IS(hipErrorNotSupported, hipMemSetAccess(base, MIB(4), &host, 1));
        assert_false(cpu_can_read(base));
    }
    unmap(base, MIB(4));
    assert_false(cpu_can_read(base));
    address_free(base, MIB(4));
}

/* A24 */
static void test_copies_cross_mappings_and_fail_whole_at_a_hole(void **state)
{
    need_cpu_view();
    const uint64_t size = MIB(2);
    char *bytes = malloc(3 * size), *back = calloc(3, size);
    void *first = reserve(2 * size), *second = NULL;

    assert_true(bytes && back);
    memset(bytes, 0x5a, 3 * size);
    HIP_OK(hipMemAddressReserve(&second, 2 * size, 0, at(first, 2 * size), 0));
    put_piece(first, size, 0);
    put_piece(at(first, size), size, 0);
    HIP_OK(hipMemcpy(first, bytes, 2 * size, hipMemcpyHostToDevice));
    HIP_OK(hipMemcpy(back, first, 2 * size, hipMemcpyDeviceToHost));
    assert_memory_equal(bytes, back, 2 * size);
    /* The next reservation touches this one; nothing is mapped there yet. */
    if (second == at(first, 2 * size)) {
        memset(bytes, 0x11, 3 * size);
        HIP_INVALID(hipMemcpy(first, bytes, 3 * size, hipMemcpyHostToDevice));
        HIP_OK(hipMemcpy(back, first, 2 * size, hipMemcpyDeviceToHost));
        assert_int_equal(back[0], 0x5a);
        put_piece(second, size, 0);
        HIP_OK(hipMemcpy(first, bytes, 3 * size, hipMemcpyHostToDevice));
        HIP_OK(hipMemcpy(back, first, 3 * size, hipMemcpyDeviceToHost));
        assert_memory_equal(bytes, back, 3 * size);
        unmap(second, size);
    }
    unmap(first, 2 * size);
    address_free(first, 2 * size);
    address_free(second, 2 * size);
    free(back);
    free(bytes);
}

/* C24 */
static void test_repeated_unmap_release_and_map_are_refused_and_change_nothing(void **state)
{
    handle_t handle = create(0, MIB(2)), other = create(0, MIB(2));
    void *base = reserve(MIB(4));

    map_rw(base, MIB(2), handle, 0);
    gpu_stamp(0, base, MIB(2), 1);
    HIP_INVALID(hipMemMap(base, MIB(2), 0, other, 0));
    HIP_INVALID(hipMemMap(base, MIB(2), 0, handle, 0));
    gpu_expect(0, base, MIB(2), 1);
    unmap(base, MIB(2));
    HIP_OK(hipMemRelease(handle));
    HIP_INVALID(hipMemUnmap(base, MIB(2)));
    HIP_INVALID(hipMemRelease(handle));
    HIP_INVALID(hipMemMap(base, MIB(2), 0, handle, 0));
    /* Nothing sticks: the next good calls work. */
    map_rw(base, MIB(2), other, 0);
    gpu_stamp(0, base, MIB(2), 2);
    unmap(base, MIB(2));
    HIP_OK(hipMemRelease(other));
    address_free(base, MIB(4));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        CASE(test_one_unmap_over_several_mappings_frees_the_reservation),
        CASE(test_unmap_piece_by_piece_frees_the_reservation),
        CASE(test_released_handle_lives_until_unmap_and_free_waits_for_it),
        CASE(test_access_is_set_on_every_later_piece_of_odd_size),
        CASE(test_tiny_pieces_work_in_a_thousand_runs),
        CASE(test_access_takes_any_run_of_whole_mappings_and_no_other_range),
        CASE(test_attribute_says_one_only_where_the_whole_sequence_works),
        CASE(test_access_before_any_mapping_is_refused_and_not_kept),
        CASE(test_two_addresses_of_one_handle_have_their_own_access_and_one_content),
        CASE(test_pieces_apart_from_each_other_keep_their_own_bytes),
        CASE(test_get_access_tells_what_was_last_set_for_each_device),
        CASE(test_a_peers_grant_leaves_the_owners_pages_alone_in_any_order),
        CASE(test_mapping_is_complete_when_set_access_returns),
        CASE(test_115_unmaps_next_to_a_live_piece_leave_it_as_it_was),
        CASE(test_handle_is_mapped_again_after_unmap_with_its_bytes),
        CASE(test_host_reaches_device_memory_where_the_bar_shows_it),
        CASE(test_copies_cross_mappings_and_fail_whole_at_a_hole),
        CASE(test_repeated_unmap_release_and_map_are_refused_and_change_nothing),
    };

    return RUN_CASES(argc, argv, "mi300x:8", cases);
}
