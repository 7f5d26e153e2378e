/* SPDX-License-Identifier: MIT */
/* Numbers, sizes and pointers: what the two dispatchers do before a request is looked at. */
#include "cts.h"

static uint8_t big[512];

static void fill(int byte)
{
    memset(big, byte, sizeof big);
}

static uint32_t word(unsigned at)
{
    uint32_t v;

    memcpy(&v, big + at, sizeof v);
    return v;
}

/* The longest prefix of big that is not the byte it was filled with. */
static unsigned touched(uint8_t byte)
{
    unsigned n = sizeof big;

    while (n && big[n - 1] == byte)
        n--;
    return n;
}

static void kfd_numbers(struct cts *c)
{
    static const uint8_t unknown[] = {0x00, 0x27, 0x28, 0x3f, 0x40, 0x7f, 0x80, 0x85, 0xff};

    cts_open(c);
    for (unsigned i = 0; i < sizeof unknown; i++) {
        fill(0);
        cts_row(c, cts_text("number 0x%02x", unknown[i]), -ENOTTY,
                cts_request(c, c->kfd, _IOWR('K', unknown[i], uint64_t), big), "-");
    }
    /* What 0x26 says depends on how the driver schedules; without a GPU it is asked in query.modes.
     */
    for (unsigned nr = 0x24; nr < 0x26; nr++) {
        fill(0);
        cts_row(c, cts_text("number 0x%02x, known since 1.12", nr),
                c->minor < 12 ? -ENOTTY : CTS_ANY,
                cts_request(c, c->kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', nr, 32), big), "-");
    }
    fill(0xee);
    cts_row(c, "only the number is looked at, not the letter", 0,
            cts_request(c, c->kfd, _IOC(_IOC_READ, 'Z', 1, 8), big), "%u.%u", word(0), word(4));
    fill(0xee);
    cts_row(c, "nor the direction", 0, cts_request(c, c->kfd, _IOC(_IOC_WRITE, 'K', 1, 8), big),
            "%u.%u", word(0), word(4));
    fill(0xee);
    cts_row(c, "TCGETS is taken for GET_VERSION", 0, cts_request(c, c->kfd, 0x5401, big),
            "bytes=%u", touched(0xee));
}

/* Every number with 256 zero bytes. */
static void kfd_zeros(struct cts *c)
{
    static const struct {
        uint8_t nr;
        int want;
    } table[] = {
        {0x02, -EINVAL}, {0x03, -EINVAL}, {0x04, -EINVAL}, {0x05, 0},       {0x06, 0},
        {0x07, -EFAULT}, {0x08, 0},       {0x09, -EINVAL}, {0x0a, -EINVAL}, {0x0b, -EINVAL},
        {0x0d, -EPERM},  {0x0e, -EPERM},  {0x0f, -EPERM},  {0x10, -EPERM},  {0x11, -EINVAL},
        {0x12, -EINVAL}, {0x13, -EINVAL}, {0x14, 0},       {0x15, -EINVAL}, {0x16, -EINVAL},
        {0x17, -EINVAL}, {0x18, -EINVAL}, {0x19, -EINVAL}, {0x1a, -EINVAL}, {0x1b, -EFAULT},
        {0x1d, -EINVAL}, {0x1e, -EINVAL}, {0x1f, -EINVAL}, {0x23, -EINVAL},
    };

    cts_open(c);
    for (unsigned i = 0; i < sizeof table / sizeof table[0]; i++) {
        fill(0);
        cts_row(c, cts_text("number 0x%02x", table[i].nr), table[i].want,
                cts_request(c, c->kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', table[i].nr, 256), big),
                "-");
    }
}

static void kfd_sizes(struct cts *c)
{
    static const uint16_t sizes[] = {0, 4, 8, 64, 129, 400};
    uint64_t handle = 0xdead00000001;
    uint32_t id;

    cts_open(c);
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        fill(0xee);
        cts_row(c, cts_text("version with size %u", sizes[i]), 0,
                cts_request(c, c->kfd, _IOC(_IOC_READ, 'K', 1, sizes[i]), big), "bytes=%u",
                touched(0xee));
    }
    fill(0);
    big[63] = 0x55;
    cts_row(c, "create an event with 64 bytes", 0,
            cts_request(c, c->kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', 8, 64), big),
            "id=%u tail=0x%02x", word(24), big[63]);
    fill(0);
    cts_row(c, "create an event with 16 bytes", 0,
            cts_request(c, c->kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', 8, 16), big), "id=%u",
            word(24));
    id = 2;
    cts_row(c, "the id that did not fit exists", 0, cts_request(c, c->kfd, KFD_CODE_SET_EVENT, big),
            "id=%u", (memcpy(big, &id, 4), id));
    cts_row(c, "free with 4 bytes", -EINVAL,
            cts_request(c, c->kfd, _IOC(_IOC_WRITE, 'K', 0x17, 4), &handle), "-");
    fill(0);
    cts_row(c, "alloc with 8 bytes is size 0", -EINVAL,
            cts_request(c, c->kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', 0x16, 8), big), "-");
    cts_row(c, "map with 16 bytes is no device", -EINVAL,
            cts_request(c, c->kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', 0x18, 16), big), "-");
}

static void kfd_pointers(struct cts *c)
{
    uint8_t *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct kfd_ioctl_create_event_args *e = (void *)p;
    struct kfd_ioctl_set_event_args set = {.event_id = 1};

    cts_open(c);
    munmap(p + 4096, 4096);
    cts_row(c, "NULL", -EFAULT, cts_request(c, c->kfd, KFD_CODE_GET_VERSION, NULL), "-");
    cts_row(c, "address 8", -EFAULT, cts_request(c, c->kfd, KFD_CODE_GET_VERSION, (void *)8), "-");
    cts_row(c, "a buffer that ends early", -EFAULT,
            cts_request(c, c->kfd, _IOC(_IOC_READ, 'K', 1, 64), p + 4088), "-");
    cts_row(c, "a buffer that just fits", 0, cts_request(c, c->kfd, KFD_CODE_GET_VERSION, p + 4088),
            "-");
    memset(p, 0, 4096);
    e->event_type = KFD_IOC_EVENT_SIGNAL;
    mprotect(p, 4096, PROT_READ);
    cts_row(c, "a read-only answer", -EFAULT, cts_request(c, c->kfd, KFD_CODE_CREATE_EVENT, e),
            "-");
    cts_row(c, "the work was done all the same", 0,
            cts_request(c, c->kfd, KFD_CODE_SET_EVENT, &set), "-");
}

static void drm_numbers(struct cts *c)
{
    struct drm_client client = {0};
    int drm;

    cts_open(c);
    drm = c->gpu[0].drm;
    fill(0);
    cts_row(c, "wrong letter", -ENOTTY, cts_request(c, drm, _IOWR('Z', 0x09, uint64_t), big), "-");
    cts_row(c, "unknown driver number", -EINVAL,
            cts_request(c, drm, _IOWR('d', 0x5f, uint64_t), big), "-");
    cts_row(c, "unknown core number", -EINVAL, cts_request(c, drm, _IOWR('d', 0xff, uint64_t), big),
            "-");
    cts_row(c, "a request for the primary node", -EACCES,
            cts_request(c, drm, DRM_CODE_GET_CLIENT, &client), "-");
    cts_row(c, "NULL", -EFAULT, cts_request(c, drm, DRM_CODE_GEM_CLOSE, NULL), "-");
    fill(0);
    cts_row(c, "GEM_VA as libdrm sends it, read and write", -EINVAL,
            cts_request(c, drm, _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x48, 40), big), "-");
    fill(0);
    cts_row(c, "GEM_VA with the newer fields", -EINVAL, cts_request(c, drm, DRM_CODE_GEM_VA, big),
            "-");
}

static void drm_version(struct cts *c)
{
    char name[64] = "", date[64] = "", desc[64] = "";
    struct drm_version v = {0};
    long ret;

    cts_open(c);
    ret = cts_request(c, c->gpu[0].drm, DRM_CODE_VERSION, &v);
    cts_row(c, "lengths", 0, ret, "%d.%d.%d name=%zu date=%zu desc=%zu", v.version_major,
            v.version_minor, v.version_patchlevel, v.name_len, v.date_len, v.desc_len);
    v.name = name;
    v.date = date;
    v.desc = desc;
    v.name_len = 3;
    v.date_len = v.desc_len = sizeof date - 1;
    ret = cts_request(c, c->gpu[0].drm, DRM_CODE_VERSION, &v);
    cts_row(c, "strings, the name cut", 0, ret, "name=%s:%zu date=%s desc=%s", name, v.name_len,
            date, desc);
}

const struct cts_case cts_dispatch_cases[] = {
    {"dispatch.kfd_numbers", CTS_NO_GPU, kfd_numbers},
    {"dispatch.kfd_zeros", CTS_NO_GPU, kfd_zeros},
    {"dispatch.kfd_sizes", CTS_NO_GPU, kfd_sizes},
    {"dispatch.kfd_pointers", CTS_NO_GPU, kfd_pointers},
    {"dispatch.drm_numbers", 0, drm_numbers},
    {"dispatch.drm_version", 0, drm_version},
    {0},
};
