/* SPDX-License-Identifier: MIT */
#include "kfd/decode.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <kfdirect/kfd.h>
#include "kfd/uapi.h"
#include "kfd/poison.h"

enum style {
    DEC,
    SIGNED,
    HEX,
    MEM_FLAGS,
    VA_FLAGS,
    VA_OP,
};

enum way {
    IN = 1,
    OUT = 2,
    BOTH = 3,
};

struct field {
    uint16_t name;    /* in names */
    uint16_t request; /* type and number: the low half of its code */
    uint16_t offset;
    uint8_t size;
    uint8_t style : 6, way : 2;
};

#define LINE_OF(name, line) name##line
#define AT_LINE(name, line) LINE_OF(name, line)
#define NAME AT_LINE(name_, __LINE__)

/* One behind the other: pointers to them would be as large as they are. */
static const struct names {
#define FIELD(member, style, way) char NAME[sizeof(#member)];
#define PART(half, member, style, way) FIELD(member, style, way)
#include "kfd/decode_fields.h"
#undef PART
#undef FIELD
} names = {
#define FIELD(member, style, way) #member,
#define PART(half, member, style, way) FIELD(member, style, way)
#include "kfd/decode_fields.h"
#undef PART
#undef FIELD
};

#define ENTRY(path, style, way)                                    \
    {offsetof(struct names, NAME), (uint16_t)R, offsetof(T, path), \
     sizeof(((T *)0)->path),       style,       way},

static const struct field fields[] = {
#define FIELD(member, style, way) ENTRY(member, style, way)
/* A member of a union's in or out half, under its own name. */
#define PART(half, member, style, way) ENTRY(half.member, style, way)
#include "kfd/decode_fields.h"
#undef PART
#undef FIELD
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define LARGEST 512u /* bytes of an argument that are looked at */

struct flag {
    uint32_t bit;
    const char *name;
};

static const struct flag mem_flags[] = {
    {KFD_MEM_VRAM, "VRAM"},
    {KFD_MEM_GTT, "GTT"},
    {KFD_MEM_USERPTR, "USERPTR"},
    {KFD_MEM_DOORBELL, "DOORBELL"},
    {KFD_MEM_MMIO_REMAP, "MMIO_REMAP"},
    {KFD_MEM_CONTIGUOUS, "CONTIGUOUS"},
    {KFD_MEM_EXT_COHERENT, "EXT_COHERENT"},
    {KFD_MEM_UNCACHED, "UNCACHED"},
    {KFD_MEM_COHERENT, "COHERENT"},
    {0x08000000u, "AQL_QUEUE_MEM"},
    {KFD_MEM_NO_SUBSTITUTE, "NO_SUBSTITUTE"},
    {KFD_MEM_PUBLIC, "PUBLIC"},
    {KFD_MEM_EXECUTABLE, "EXECUTABLE"},
    {KFD_MEM_WRITABLE, "WRITABLE"},
};

static const struct flag va_flags[] = {
    {AMDGPU_VM_DELAY_UPDATE, "DELAY_UPDATE"},
    {AMDGPU_VM_PAGE_READABLE, "READ"},
    {AMDGPU_VM_PAGE_WRITEABLE, "WRITE"},
    {AMDGPU_VM_PAGE_EXECUTABLE, "EXEC"},
    {AMDGPU_VM_PAGE_PRT, "PRT"},
};

static const char *const va_ops[] = {"0", "MAP", "UNMAP", "CLEAR", "REPLACE"};

/* Text that may not fit: counts on, as snprintf does. */
struct line {
    char *buf;
    size_t size, len;
};

static void KFDIRECT_PRINTF(2, 3) put(struct line *line, const char *fmt, ...)
{
    size_t at = line->len < line->size ? line->len : line->size;
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(line->size ? line->buf + at : NULL, line->size - at, fmt, args);
    va_end(args);
    if (n > 0)
        line->len += (size_t)n;
}

static void put_flags(struct line *line, uint64_t value, const struct flag *flags, size_t n)
{
    const char *bar = "";

    for (size_t i = 0; i < n; i++) {
        if (value & flags[i].bit) {
            put(line, "%s%s", bar, flags[i].name);
            value &= ~(uint64_t)flags[i].bit;
            bar = "|";
        }
    }
    if (value || !*bar)
        put(line, "%s0x%llx", bar, (unsigned long long)value);
}

static uint64_t load(const struct field *field, const unsigned char *arg)
{
    uint64_t value = 0;

    memcpy(&value, arg + field->offset, field->size); /* little endian, as every AMD GPU host */
    return value;
}

static void put_value(struct line *line, const struct field *field, uint64_t value)
{
    switch ((enum style)field->style) {
    case DEC:
        put(line, "%llu", (unsigned long long)value);
        break;
    case SIGNED:
        put(line, "%lld",
            field->size == sizeof(int32_t) ? (long long)(int32_t)value : (long long)value);
        break;
    case HEX:
        put(line, "0x%llx", (unsigned long long)value);
        break;
    case MEM_FLAGS:
        put_flags(line, value, mem_flags, COUNT(mem_flags));
        break;
    case VA_FLAGS:
        put_flags(line, value, va_flags, COUNT(va_flags));
        break;
    case VA_OP:
        if (value < COUNT(va_ops))
            put(line, "%s", va_ops[value]);
        else
            put(line, "%llu", (unsigned long long)value);
        break;
    }
}

static const struct kfd_uapi_request *find(unsigned long request)
{
    return kfd_uapi_find(_IOC_TYPE(request), _IOC_NR(request));
}

/* The fields of one way. A caller with a shorter struct is zero-filled, as the kernel does. */
static void put_fields(struct line *line, const struct kfd_uapi_request *r, unsigned long request,
                       const void *arg, enum way way, const char *before)
{
    unsigned char copy[LARGEST] = {0};
    size_t size = _IOC_SIZE(request);

    _Static_assert(sizeof(struct kfd_ioctl_get_process_apertures_args) <= LARGEST, "largest");
    if (size > r->size)
        size = r->size;
    memcpy(copy, arg, size);
    for (size_t i = 0; i < COUNT(fields); i++) {
        const struct field *field = &fields[i];

        if (field->request != (uint16_t)request || !(field->way & way) ||
            field->offset + field->size > size)
            continue;
        put(line, "%s%s=", before, (const char *)&names + field->name);
        put_value(line, field, load(field, copy));
        before = " ";
    }
}

int kfd_decode_call(unsigned long request, const void *in, const void *out, char *buf, size_t size)
{
    const struct kfd_uapi_request *r = find(request);
    struct line line = {.buf = buf, .size = size};

    if (size)
        buf[0] = '\0';
    if (!r->size) {
        put(&line, "request type 0x%02x nr 0x%02x size %u", (unsigned)_IOC_TYPE(request),
            (unsigned)_IOC_NR(request), (unsigned)_IOC_SIZE(request));
    } else {
        put(&line, "%s", r->name);
        if (in)
            put_fields(&line, r, request, in, IN, " ");
        if (out)
            put_fields(&line, r, request, out, OUT, " -> ");
    }
    return (int)line.len;
}

const char *kfd_decode_name(unsigned long request)
{
    const struct kfd_uapi_request *r = find(request);

    return r->size ? r->name : NULL;
}

int kfd_request_decode(unsigned long request, const void *arg, char *buf, size_t size)
{
    return kfd_decode_call(request, arg, NULL, buf, size);
}
