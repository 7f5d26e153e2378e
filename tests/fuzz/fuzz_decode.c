/* SPDX-License-Identifier: MIT */
/*
 * Decodes any request code with any argument bytes, into a buffer of any size. The argument lies at
 * the end of its block, so that one byte read too many is seen.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/ioctl.h>

#include "kfd/decode.h"

#define CHECK(condition)                                                             \
    do {                                                                             \
        if (!(condition)) {                                                          \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
            abort();                                                                 \
        }                                                                            \
    } while (0)

#define HEAD 7u /* code, size of the buffer, which of the two blocks are there */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char whole[8192];
    uint32_t code;
    uint16_t room;
    size_t arg_size;
    unsigned char *arg;
    char *cut;
    int len;

    if (size < HEAD)
        return 0;
    memcpy(&code, data, sizeof(code));
    memcpy(&room, data + 4, sizeof(room));
    arg_size = _IOC_SIZE(code);
    arg = calloc(1, arg_size + 1); /* +1: calloc(0) */
    cut = malloc(room + 1u);
    if (!arg || !cut)
        abort();
    memmove(arg + 1, data + HEAD, size - HEAD < arg_size ? size - HEAD : arg_size);
    len = kfd_decode_call(code, data[6] & 1 ? arg + 1 : NULL, data[6] & 2 ? arg + 1 : NULL, whole,
                          sizeof(whole));
    CHECK(len > 0 && (size_t)len == strlen(whole));
    CHECK(kfd_decode_call(code, data[6] & 1 ? arg + 1 : NULL, data[6] & 2 ? arg + 1 : NULL, cut,
                          room) == len);
    CHECK(room == 0 || strncmp(cut, whole, room - 1u) == 0);
    for (const char *p = whole; *p; p++)
        CHECK(*p >= ' ' && *p < 127);
    free(cut);
    free(arg);
    return 0;
}
