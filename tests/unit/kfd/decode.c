/* SPDX-License-Identifier: MIT */
#include "kfd/decode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <kfdirect/kfd.h>
#include "kfd/uapi.h"

static const struct {
    const char *name;
    unsigned long code;
    size_t size;
} requests[] = {
#define X(name, nr, dir, type) {#name, KFD_CODE_##name & 0xffffffffu, sizeof(type)},
    KFD_UAPI_KFD_REQUESTS(X)
#undef X
#define X(name, nr, dir, type) {#name, DRM_CODE_##name & 0xffffffffu, sizeof(type)},
        KFD_UAPI_DRM_REQUESTS(X)
#undef X
};

#define COUNT (sizeof(requests) / sizeof(requests[0]))

static void test_every_request_has_its_name_and_fields(void **state)
{
    unsigned char arg[512];
    char line[2048], start[64];

    memset(arg, 0x11, sizeof(arg));
    for (size_t i = 0; i < COUNT; i++) {
        int len = kfd_decode_call(requests[i].code, arg, arg, line, sizeof(line));

        assert_int_equal(len, strlen(line));
        strcpy(start, requests[i].name);
        strcat(start, " ");
        assert_int_equal(strncmp(line, start, strlen(start)), 0);
        assert_non_null(strchr(line, '='));
        assert_string_equal(kfd_decode_name(requests[i].code), requests[i].name);
    }
}

/* With the argument at the very end of its block, a read beyond it is seen by ASan. */
static void test_no_more_is_read_than_the_code_says(void **state)
{
    char line[2048];

    for (size_t i = 0; i < COUNT; i++) {
        for (size_t size = 0; size <= requests[i].size; size += size < 64 ? 1 : 16) {
            unsigned char *arg = malloc(size ? size : 1);
            unsigned long code = (requests[i].code & ~(0x3ffful << 16)) | size << 16;

            memset(arg, 0xff, size ? size : 1);
            kfd_decode_call(code, arg, arg, line, sizeof(line));
            free(arg);
        }
        /* A caller with a longer struct than ours: the rest is not ours to read. */
        kfd_decode_call(requests[i].code | 0x3ffful << 16, requests, NULL, line, sizeof(line));
    }
}

static void test_a_short_buffer_is_cut_and_measured(void **state)
{
    unsigned char arg[512] = {0};
    char whole[2048], cut[32];

    for (size_t i = 0; i < COUNT; i++) {
        int len = kfd_decode_call(requests[i].code, arg, NULL, whole, sizeof(whole));

        for (size_t size = 0; size <= sizeof(cut); size++) {
            memset(cut, '#', sizeof(cut));
            assert_int_equal(kfd_decode_call(requests[i].code, arg, NULL, cut, size), len);
            if (size > 0) {
                size_t n = (size_t)len < size - 1 ? (size_t)len : size - 1;

                assert_int_equal(strlen(cut), n);
                assert_memory_equal(cut, whole, n);
            }
            if (size < sizeof(cut))
                assert_int_equal(cut[size], '#');
        }
    }
}

static void test_map_shows_its_progress(void **state)
{
    struct kfd_ioctl_map_memory_to_gpu_args in = {
        .handle = UINT64_C(0x3e800000001),
        .device_ids_array_ptr = 0x1000,
        .n_devices = 2,
    };
    struct kfd_ioctl_map_memory_to_gpu_args out = in;
    char line[256];

    out.n_success = 1;
    kfd_decode_call(KFD_CODE_MAP_MEMORY_TO_GPU, &in, &out, line, sizeof(line));
    assert_string_equal(line, "MAP_MEMORY_TO_GPU handle=0x3e800000001 device_ids_array_ptr=0x1000 "
                              "n_devices=2 n_success=0 -> n_success=1");
}

static void test_flags_and_operations_have_names(void **state)
{
    struct kfd_ioctl_alloc_memory_of_gpu_args alloc = {
        .size = 4096,
        .gpu_id = 7,
        .flags = KFD_MEM_VRAM | KFD_MEM_WRITABLE | 0x100,
    };
    struct kfd_uapi_gem_va va = {
        .handle = 3,
        .operation = KFD_VA_REPLACE,
        .flags = KFD_VA_READ,
        .va_address = 0x200000,
        .map_size = 0x1000,
    };
    char line[256];

    kfd_request_decode(KFD_CODE_ALLOC_MEMORY_OF_GPU, &alloc, line, sizeof(line));
    assert_string_equal(line, "ALLOC_MEMORY_OF_GPU gpu_id=7 va_addr=0x0 size=0x1000 "
                              "flags=VRAM|WRITABLE|0x100 mmap_offset=0x0");
    kfd_request_decode(DRM_CODE_GEM_VA_OLD, &va, line, sizeof(line));
    assert_string_equal(line, "GEM_VA operation=REPLACE handle=3 va_address=0x200000 "
                              "offset_in_bo=0x0 map_size=0x1000 flags=READ");
}

static void test_unions_keep_input_and_result_apart(void **state)
{
    union drm_amdgpu_gem_create in = {.in.bo_size = 0x2000, .in.domains = 4};
    union drm_amdgpu_gem_create out = {.out.handle = 9};
    char line[256];

    kfd_decode_call(DRM_CODE_GEM_CREATE, &in, &out, line, sizeof(line));
    assert_string_equal(line, "GEM_CREATE bo_size=0x2000 alignment=0x0 domains=0x4 "
                              "domain_flags=0x0 -> handle=9");
}

static void test_negative_numbers_are_shown_as_such(void **state)
{
    struct drm_prime_handle prime = {.fd = -1};
    char line[64];

    kfd_request_decode(DRM_CODE_PRIME_FD_TO_HANDLE, &prime, line, sizeof(line));
    assert_string_equal(line, "PRIME_FD_TO_HANDLE fd=-1");
}

static void test_the_name_alone_without_an_argument(void **state)
{
    char line[64];

    kfd_request_decode(KFD_CODE_SVM, NULL, line, sizeof(line));
    assert_string_equal(line, "SVM");
}

static void test_direction_bits_do_not_matter(void **state)
{
    /* libdrm sends GEM_VA as read-write. */
    assert_string_equal(kfd_decode_name(0xc0286448), "GEM_VA");
}

static void test_unknown_requests_are_numbers(void **state)
{
    static const unsigned long codes[] = {0,      0x5401,     0x4b00,     0x4b27,
                                          0x4bff, 0xc0046401, 0xc00464ff, 0x8008ff01};
    char line[64];
    int len;

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        assert_null(kfd_decode_name(codes[i]));
        len = kfd_decode_call(codes[i], NULL, NULL, line, sizeof(line));
        assert_int_equal(len, strlen(line));
        assert_non_null(strstr(line, "nr"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_request_has_its_name_and_fields),
        cmocka_unit_test(test_no_more_is_read_than_the_code_says),
        cmocka_unit_test(test_a_short_buffer_is_cut_and_measured),
        cmocka_unit_test(test_map_shows_its_progress),
        cmocka_unit_test(test_flags_and_operations_have_names),
        cmocka_unit_test(test_unions_keep_input_and_result_apart),
        cmocka_unit_test(test_negative_numbers_are_shown_as_such),
        cmocka_unit_test(test_the_name_alone_without_an_argument),
        cmocka_unit_test(test_direction_bits_do_not_matter),
        cmocka_unit_test(test_unknown_requests_are_numbers),
    };

    return cmocka_run_group_tests_name("kfd/decode", tests, NULL, NULL);
}
