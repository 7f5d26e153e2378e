/* SPDX-License-Identifier: MIT */
/*
 * Random calls of <kfdirect/vmm.h> on the fake, each answer compared with a naive model: arrays
 * searched from end to end, nothing shared with the library. Some calls have a system call or host
 * memory fail under them; they must fail and leave everything as it was, or succeed altogether.
 * KFDIRECT_SEED repeats a run, KFDIRECT_OPS sets its length.
 */
#include "model.h"

/* Tries again what the kernel refused to free before, so that counts can be compared: an import of
 * no descriptor does nothing else. */
static void count_usage(struct stress *s, struct fake_usage *out)
{
    vmm_handle none;

    CHECK(s, vmm_import(s->vmm, -1, NULL, &none) == -EINVAL);
    CHECK(s, fake_get_usage(s->fake, out) == 0);
}

/* Lets something fail under the next call, now and then. */
static void arm(struct stress *s)
{
    static const int errors[] = {EIO, EBUSY, EMFILE, ENOMEM};
    static const enum kfd_sys_op ops[] = {KFD_SYS_REQUEST, KFD_SYS_REQUEST, KFD_SYS_REQUEST,
                                          KFD_SYS_ANY};
    struct kfd_sys_fault fault = {.op = ops[below(s, COUNT_OF(ops))],
                                  .skip = below(s, 12),
                                  .error = errors[below(s, COUNT_OF(errors))]};

    s->strike = one_in(s, 6);
    if (!s->strike)
        return;
    count_usage(s, &s->before);
    if (one_in(s, 4))
        vmm_memory_fail_after(below(s, 4));
    else
        kfd_sys_inject_set(s->injector, &fault);
}

/* Judges the answer; true when the call took effect. */
static bool judge(struct stress *s, const char *call, int err, uint32_t bad)
{
    bool fits = err == 0 ? bad == 0
                         : (err == -EINVAL && (bad & BAD_ARG)) ||
                               (err == -ENODEV && (bad & BAD_DEVICE)) ||
                               (err == -EOPNOTSUPP && (bad & BAD_ENGINE));
    struct fake_usage after;

    vmm_memory_fail_after(UINT64_MAX);
    kfd_sys_inject_set(s->injector, NULL);
    if (!fits && !(s->strike && err < 0))
        fail_msg("operation %llu: %s answered %d, the model's reasons are 0x%x (%s)",
                 (unsigned long long)s->op, call, err, bad, kfd_error_text());
    if (err != 0 && kfd_error_text()[0] == '\0')
        fail_msg("operation %llu: %s failed without a text", (unsigned long long)s->op, call);
    if (err != 0 && s->strike) {
        count_usage(s, &after);
        if (memcmp(&after, &s->before, sizeof(after)) != 0)
            fail_msg(
                "operation %llu: %s failed with %d (%s) and left objects %llu was %llu, "
                "KFD handles %llu was %llu, GEM %llu was %llu, mappings %llu was %llu, files "
                "%llu was %llu",
                (unsigned long long)s->op, call, err, kfd_error_text(),
                (unsigned long long)after.objects, (unsigned long long)s->before.objects,
                (unsigned long long)after.kfd_handles, (unsigned long long)s->before.kfd_handles,
                (unsigned long long)after.gem_handles, (unsigned long long)s->before.gem_handles,
                (unsigned long long)after.mappings, (unsigned long long)s->before.mappings,
                (unsigned long long)after.open_files, (unsigned long long)s->before.open_files);
        s->struck++;
    }
    s->refused += err != 0;
    return err == 0;
}

static uint32_t free_slot(struct stress *s, uint32_t n, size_t stride, const void *first_key,
                          size_t key_size)
{
    static const char zero[8];
    uint32_t at = (uint32_t)below(s, n);

    for (uint32_t i = 0; i < n; i++, at = (at + 1) % n) {
        if (memcmp((const char *)first_key + at * stride, zero, key_size) == 0)
            return at;
    }
    return n;
}

#define FREE_SLOT(s, array, key) \
    free_slot(s, COUNT_OF(array), sizeof((array)[0]), &(array)[0].key, sizeof((array)[0].key))

static uint64_t any_size(struct stress *s)
{
    return one_in(s, 2) ? (1 + below(s, 16)) * PAGE : (1 + below(s, 3)) * HUGE_PAGE;
}

/* Mostly a live allocation; HANDLES when the value is to be wrong. */
static uint32_t any_alloc(struct stress *s, vmm_handle *handle)
{
    uint32_t at = (uint32_t)below(s, HANDLES);

    *handle = s->allocs[at].handle;
    if (*handle)
        return at;
    *handle = one_in(s, 2) ? s->stale : below(s, 2) ? random_next(&s->random) : 0;
    return HANDLES;
}

static void drop_if_dead(struct stress *s, uint32_t at)
{
    if (s->allocs[at].users == 0 && s->allocs[at].maps == 0) {
        s->stale = s->allocs[at].handle;
        memset(&s->allocs[at], 0, sizeof(s->allocs[at]));
    }
}

static bool host_visible(const struct stress *s, uint32_t device, enum vmm_location location)
{
    const struct kfd_device_info *info = kfd_device_info(kfd_device_at(s->kfd, device));

    return location == VMM_LOCATION_HOST || info->large_bar || info->apu;
}

static void do_reserve(struct stress *s)
{
    uint32_t at = FREE_SLOT(s, s->resvs, size);
    uint64_t size = any_size(s) * (1 + below(s, 4)), align = 0, hint = 0, va = 0;
    uint32_t bad = 0;

    if (at == RESVS)
        return;
    if (one_in(s, 8))
        size = one_in(s, 2) ? 0 : size + 1 + below(s, PAGE - 1);
    if (one_in(s, 3))
        align = one_in(s, 8) ? 3 * PAGE : 1ull << below(s, s->align_bits);
    if (one_in(s, 3))
        hint = s->resvs[below(s, RESVS)].base + below(s, 4) * HUGE_PAGE + (one_in(s, 8) ? 5 : 0);
    if (size == 0 || size % PAGE || (align & (align - 1)) || hint % PAGE)
        bad = BAD_ARG;
    arm(s);
    if (!judge(s, "reserve", vmm_reserve(s->vmm, size, align, hint, &va), bad))
        return;
    CHECK(s, va != 0 && va % PAGE == 0 && (align == 0 || va % align == 0));
    CHECK(s, size < HUGE_PAGE || va == hint || va % HUGE_PAGE == 0);
    for (uint32_t i = 0; i < RESVS; i++)
        CHECK(s, !s->resvs[i].size || !overlap(va, size, s->resvs[i].base, s->resvs[i].size));
    for (uint32_t i = 0; i < ONES; i++)
        CHECK(s, !s->ones[i].size || !overlap(va, size, s->ones[i].va, s->ones[i].size));
    s->resvs[at] = (struct model_resv){va, size};
}

static void do_address_free(struct stress *s)
{
    struct model_resv *resv = &s->resvs[below(s, RESVS)];
    uint64_t va = resv->base, size = resv->size;
    uint32_t bad = 0;

    if (one_in(s, 6))
        va += PAGE;
    if (one_in(s, 6))
        size = one_in(s, 2) ? size + PAGE : size / 2;
    if (!resv->size || va != resv->base || size != resv->size || any_map_in(s, va, size))
        bad = BAD_ARG;
    arm(s);
    if (judge(s, "address free", vmm_address_free(s->vmm, va, size), bad))
        memset(resv, 0, sizeof(*resv));
}

static void do_create(struct stress *s)
{
    uint32_t at = FREE_SLOT(s, s->allocs, handle), bad = 0;
    struct vmm_props props = {.device = (uint32_t)below(s, s->devices)};
    uint64_t size = any_size(s);
    vmm_handle handle = 0;

    if (at == HANDLES)
        return;
    props.location = one_in(s, 4) ? VMM_LOCATION_HOST : VMM_LOCATION_DEVICE;
    props.uncached = s->engine != VMM_ENGINE_GEM && one_in(s, 8);
    if (one_in(s, 12)) {
        props.device = s->devices + (uint32_t)below(s, 3);
        bad |= BAD_DEVICE;
    }
    if (one_in(s, 12)) {
        size = one_in(s, 2) ? 0 : size + 1;
        bad |= BAD_ARG;
    }
    arm(s);
    if (!judge(s, "create", vmm_create(s->vmm, &props, size, &handle), bad))
        return;
    CHECK(s, handle != 0 && handle != s->stale);
    s->allocs[at] = (struct model_alloc){.handle = handle,
                                         .size = size,
                                         .memory = ++s->memories,
                                         .device = props.device,
                                         .users = 1,
                                         .location = props.location};
}

static void do_release(struct stress *s)
{
    vmm_handle handle;
    uint32_t at = any_alloc(s, &handle);
    bool good = at < HANDLES && s->allocs[at].users > 0;

    arm(s);
    if (judge(s, "release", vmm_release(s->vmm, handle), good ? 0 : BAD_ARG)) {
        s->allocs[at].users--;
        drop_if_dead(s, at);
    }
}

/* Where a mapping or a range may go: mostly inside a reservation. */
static uint64_t any_place(struct stress *s, const struct model_resv **resv)
{
    const struct model_resv *r = &s->resvs[below(s, RESVS)];
    uint64_t step = one_in(s, 2) ? PAGE : HUGE_PAGE;

    *resv = r;
    return r->base + below(s, r->size / step + 1) * step;
}

static bool inside_one(const struct stress *s, uint64_t va, uint64_t size)
{
    for (uint32_t i = 0; i < RESVS; i++) {
        const struct model_resv *r = &s->resvs[i];

        if (r->size && va >= r->base && va - r->base < r->size && size <= r->size - (va - r->base))
            return true;
    }
    return false;
}

static void do_map(struct stress *s)
{
    uint32_t slot = FREE_SLOT(s, s->maps, used), bad = 0;
    const struct model_resv *resv;
    uint64_t va = any_place(s, &resv), size, offset = 0;
    vmm_handle handle;
    uint32_t at = any_alloc(s, &handle);
    const struct model_alloc *alloc = &s->allocs[at % HANDLES];

    if (slot == MAPS)
        return;
    size = at < HANDLES ? alloc->size : PAGE;
    if (one_in(s, 3)) {
        offset = below(s, size / PAGE) * PAGE;
        size = one_in(s, 2) ? size - offset : (1 + below(s, size / PAGE)) * PAGE;
    }
    if (one_in(s, 16))
        offset += 1 + below(s, PAGE - 1);
    if (one_in(s, 16))
        offset = UINT64_MAX - PAGE + 1;
    if (one_in(s, 16))
        size = one_in(s, 2) ? 0 : UINT64_MAX - PAGE + 1;
    if (one_in(s, 16))
        va += 8;
    if (va % PAGE || size % PAGE || size == 0 || offset % PAGE || at == HANDLES ||
        !inside_one(s, va, size) || any_map_in(s, va, size) || offset > alloc->size ||
        size > alloc->size - offset)
        bad |= BAD_ARG;
    if (at < HANDLES && !(s->can & VMM_CAN_OFFSET) && (offset || size != alloc->size))
        bad |= BAD_ENGINE;
    arm(s);
    if (!judge(s, "map", vmm_map(s->vmm, va, size, offset, handle), bad))
        return;
    s->maps[slot] =
        (struct model_map){.va = va, .size = size, .offset = offset, .alloc = at, .used = true};
    s->allocs[at].maps++;
}

/* A range over some mappings: around one, from one to another, or anything. */
static void any_range(struct stress *s, uint64_t *va, uint64_t *size)
{
    const struct model_map *a = &s->maps[below(s, MAPS)], *b = &s->maps[below(s, MAPS)];
    const struct model_resv *resv;

    if (a->used && b->used && one_in(s, 3) && a->va <= b->va) {
        *va = a->va;
        *size = b->va + b->size - a->va;
    } else if (a->used && !one_in(s, 8)) {
        *va = a->va;
        *size = a->size;
        for (uint32_t i = 0; i < MAPS && one_in(s, 2); i++) {
            if (s->maps[i].used && s->maps[i].va == *va + *size)
                *size += s->maps[i].size;
        }
    } else {
        *va = any_place(s, &resv);
        *size = one_in(s, 2) && resv->size ? resv->base + resv->size - *va : any_size(s);
    }
    if (one_in(s, 10))
        *va += PAGE;
    if (one_in(s, 10))
        *size = *size > PAGE ? *size - PAGE : 0;
    if (one_in(s, 40))
        *size = UINT64_MAX - *va + 1;
}

/* Bytes of whole mappings in the range; *cut tells of one that sticks out. */
static uint64_t covered(const struct stress *s, uint64_t va, uint64_t size, bool *cut)
{
    uint64_t sum = 0;

    *cut = false;
    for (uint32_t i = 0; i < MAPS; i++) {
        const struct model_map *m = &s->maps[i];

        if (!m->used || !overlap(va, size, m->va, m->size))
            continue;
        *cut |= m->va < va || m->va + m->size > va + size;
        sum += m->size;
    }
    return sum;
}

static void do_unmap(struct stress *s)
{
    uint64_t va, size, sum = 0;
    bool cut = false, inside;

    any_range(s, &va, &size);
    inside = size && inside_one(s, va, size);
    if (inside)
        sum = covered(s, va, size, &cut);
    arm(s);
    if (!judge(s, "unmap", vmm_unmap(s->vmm, va, size), !inside || cut || !sum ? BAD_ARG : 0))
        return;
    for (uint32_t i = 0; i < MAPS; i++) {
        struct model_map *m = &s->maps[i];

        if (m->used && overlap(va, size, m->va, m->size)) {
            m->used = false;
            s->allocs[m->alloc].maps--;
            drop_if_dead(s, m->alloc);
        }
    }
}

static uint32_t judge_entry(const struct stress *s, const struct model_map *m,
                            const struct vmm_access *access)
{
    const struct model_alloc *alloc = &s->allocs[m->alloc];

    if (access->prot == VMM_PROT_NONE ||
        (access->device != VMM_HOST && access->device >= s->devices))
        return 0;
    if (access->device == VMM_HOST)
        return host_visible(s, alloc->device, alloc->location) ? 0 : BAD_ENGINE;
    if (!reachable(s, alloc->device, alloc->location, access->device))
        return BAD_ARG;
    if (s->engine == VMM_ENGINE_GEM && alloc->location == VMM_LOCATION_DEVICE &&
        access->device != alloc->device)
        return BAD_ENGINE;
    return 0;
}

static void grant(struct model_map *m, const struct vmm_access *access)
{
    uint64_t bit;

    if (access->device == VMM_HOST) {
        m->host = access->prot;
        return;
    }
    bit = 1ull << access->device;
    m->read = access->prot & VMM_PROT_READ ? m->read | bit : m->read & ~bit;
    m->write = access->prot & VMM_PROT_WRITE ? m->write | bit : m->write & ~bit;
}

static void do_set_access(struct stress *s)
{
    static const uint32_t prots[] = {VMM_PROT_NONE,       VMM_PROT_READ,  VMM_PROT_READ_WRITE,
                                     VMM_PROT_READ_WRITE, VMM_PROT_WRITE, 4};
    struct vmm_access access[5];
    size_t count = 1 + below(s, COUNT_OF(access));
    bool cut = false, inside;
    uint64_t va, size;
    uint32_t bad = 0;

    any_range(s, &va, &size);
    for (size_t i = 0; i < count; i++) {
        access[i].device = one_in(s, 4) ? VMM_HOST : (uint32_t)below(s, s->devices);
        access[i].prot = prots[below(s, one_in(s, 20) ? COUNT_OF(prots) : 4)];
        if (one_in(s, 40))
            access[i].device = s->devices;
        if (access[i].device != VMM_HOST && access[i].device >= s->devices)
            bad |= BAD_DEVICE;
        else if (access[i].device != VMM_HOST && access[i].prot == VMM_PROT_READ &&
                 !(s->can & VMM_CAN_READ_ONLY))
            bad |= BAD_ENGINE;
        if (access[i].prot > VMM_PROT_READ_WRITE || access[i].prot == VMM_PROT_WRITE)
            bad |= BAD_ARG;
    }
    inside = size && inside_one(s, va, size);
    if (!inside || covered(s, va, size, &cut) != size || cut)
        bad |= BAD_ARG;
    for (uint32_t i = 0; i < MAPS && inside; i++) {
        for (size_t j = 0; j < count; j++) {
            if (s->maps[i].used && overlap(va, size, s->maps[i].va, s->maps[i].size))
                bad |= judge_entry(s, &s->maps[i], &access[j]);
        }
    }
    arm(s);
    if (!judge(s, "set access", vmm_set_access(s->vmm, va, size, access, count), bad))
        return;
    for (uint32_t i = 0; i < MAPS; i++) {
        for (size_t j = 0; j < count; j++) {
            if (s->maps[i].used && overlap(va, size, s->maps[i].va, s->maps[i].size))
                grant(&s->maps[i], &access[j]);
        }
    }
}

static void do_share(struct stress *s)
{
    static const uint32_t tag[4] = {1, 2, 3, 4};
    uint32_t to = FREE_SLOT(s, s->allocs, handle), bad = 0;
    vmm_handle handle, import = 0;
    uint32_t at = any_alloc(s, &handle);
    int fd = -1;

    if (at == HANDLES || s->allocs[at].imported)
        bad = BAD_ARG;
    arm(s);
    if (!judge(s, "export", vmm_export(s->vmm, handle, &fd), bad))
        return;
    CHECK(s, fd > 2 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
    if (to < HANDLES) {
        arm(s);
        if (judge(s, "import", vmm_import(s->vmm, fd, tag, &import), 0)) {
            s->allocs[to] = s->allocs[at];
            s->allocs[to].handle = import;
            s->allocs[to].users = 1;
            s->allocs[to].maps = 0;
            s->allocs[to].imported = true;
        }
    }
    close(fd);
}

static void do_retain(struct stress *s)
{
    const struct model_map *m = &s->maps[below(s, MAPS)];
    uint64_t va = m->used ? m->va + below(s, m->size) : 0x1000;
    vmm_handle handle = 0;

    arm(s);
    if (judge(s, "retain", vmm_retain(s->vmm, va, &handle), m->used ? 0 : BAD_ARG)) {
        CHECK(s, handle == s->allocs[m->alloc].handle);
        s->allocs[m->alloc].users++;
    }
}

static void do_alloc(struct stress *s)
{
    uint32_t at = FREE_SLOT(s, s->ones, size);
    struct vmm_props props = {.device = (uint32_t)below(s, s->devices)};
    uint64_t size = any_size(s) - below(s, PAGE), va = 0;

    if (at == ONES)
        return;
    props.location = one_in(s, 3) ? VMM_LOCATION_HOST : VMM_LOCATION_DEVICE;
    arm(s);
    if (judge(s, "alloc", vmm_alloc(s->vmm, &props, size, &va), 0))
        s->ones[at] =
            (struct model_one){va, (size + PAGE - 1) / PAGE * PAGE, props.device, props.location};
}

static void do_free(struct stress *s)
{
    struct model_one *one = &s->ones[below(s, ONES)];
    uint64_t va = one->size ? one->va : s->resvs[below(s, RESVS)].base;
    uint32_t bad = one->size ? 0 : BAD_ARG;

    if (one_in(s, 6)) {
        va += PAGE;
        bad = BAD_ARG;
        for (uint32_t i = 0; i < ONES; i++) {
            if (s->ones[i].size && s->ones[i].va == va)
                return;
        }
    }
    arm(s);
    if (judge(s, "free", vmm_free(s->vmm, va), bad))
        memset(one, 0, sizeof(*one));
}

struct walked {
    uint64_t bytes;
};

static int add_bytes(void *arg, void *cpu, uint64_t size)
{
    struct walked *walked = arg;
    volatile char *first = cpu;

    (void)first[0];
    (void)first[size - 1];
    walked->bytes += size;
    return 0;
}

static void do_cpu_walk(struct stress *s)
{
    const struct model_map *m = &s->maps[below(s, MAPS)];
    uint32_t need = one_in(s, 2) ? VMM_PROT_READ : VMM_PROT_READ_WRITE, held, bad = 0;
    uint64_t from, size;
    struct walked walked = {0};

    if (!m->used)
        return;
    from = below(s, m->size);
    size = 1 + below(s, m->size - from);
    held = (m->read ? VMM_PROT_READ : 0u) | (m->write ? VMM_PROT_WRITE : 0u) | m->host;
    if ((need & held) != need)
        bad |= BAD_ARG;
    if (!host_visible(s, s->allocs[m->alloc].device, s->allocs[m->alloc].location))
        bad |= BAD_ENGINE;
    arm(s);
    if (judge(s, "cpu walk", vmm_cpu_walk(s->vmm, m->va + from, size, need, add_bytes, &walked),
              bad))
        CHECK(s, walked.bytes == size);
}

static void step(struct stress *s)
{
    static void (*const calls[])(struct stress *) = {
        do_reserve,  do_address_free, do_create,     do_release,    do_map,     do_map,   do_map,
        do_unmap,    do_set_access,   do_set_access, do_share,      do_retain,  do_alloc, do_free,
        do_cpu_walk, do_map,          do_set_access, do_set_access, do_release, do_create};
    uint64_t refused = s->refused;

    s->op++;
    s->strike = false;
    calls[below(s, COUNT_OF(calls))](s);
    if (s->refused != refused && s->strike)
        check_all(s);
    else if (one_in(s, 4))
        check_some(s);
    if (one_in(s, 64))
        check_all(s);
}

/* Operations per machine. */
static uint64_t length = 8000;

static void run(const char *machine, const char *kernel, enum vmm_engine engine)
{
    const char *ops = getenv("KFDIRECT_OPS");
    uint64_t count = ops ? strtoull(ops, NULL, 0) : length;
    struct fake_options options = {
        .size = sizeof(options), .machine = machine, .kernel = kernel, .flags = FAKE_STRICT};
    struct vmm_options vmm_options = {.size = sizeof(vmm_options), .engine = engine};
    struct stress *s = calloc(1, sizeof(*s));
    struct fake_usage usage;

    assert_non_null(s);
    s->random = random_start(machine);
    if (fake_create(&options, &s->fake) != 0)
        fail_msg("%s on %s: %s", machine, kernel, fake_error_text());
    assert_int_equal(kfd_sys_inject_new(fake_sys(s->fake), &s->injector), 0);
    if (kfd_open(s->injector, &s->kfd) != 0 || vmm_open(s->kfd, &vmm_options, &s->vmm) != 0)
        fail_msg("%s on %s: %s", machine, kernel, kfd_error_text());
    assert_int_equal(pipe(s->pipe), 0);
    s->engine = vmm_engine(s->vmm);
    s->can = vmm_engine_can(s->vmm);
    s->devices = kfd_device_count(s->kfd);
    /* Of 40 bits of address a sanitizer leaves less than two GiB. */
    s->align_bits = kfd_device_info(kfd_device_at(s->kfd, 0))->gfx_version < 90000 ? 25 : 32;
    while (s->op < count)
        step(s);
    check_all(s);
    print_message("# %s, %s, engine %s: %llu operations, %llu refused, %llu of them struck\n",
                  machine, kernel, vmm_engine_name(s->engine), (unsigned long long)s->op,
                  (unsigned long long)s->refused, (unsigned long long)s->struck);
    assert_true(s->struck > 0 && s->refused < s->op);
    vmm_close(s->vmm); /* with all that is alive */
    kfd_close(s->kfd);
    assert_int_equal(fake_get_usage(s->fake, &usage), 0);
    assert_int_equal(usage.objects, 0);
    assert_int_equal(usage.gem_handles, 0);
    assert_int_equal(fake_strict_count(s->fake), 0);
    close(s->pipe[0]);
    close(s->pipe[1]);
    kfd_sys_destroy(s->injector);
    fake_destroy(s->fake);
    free(s);
}

#define STRESS(name, machine, kernel, engine)      \
    static void test_##name(void **state)          \
    {                                              \
        (void)state;                               \
        run(machine, kernel, VMM_ENGINE_##engine); \
    }

STRESS(mi300x_drm, "mi300x:4", "6.12", AUTO)
STRESS(mi300x_kfd, "mi300x:4", "6.12", KFD)
STRESS(mi300x_current, "mi300x:4", "current", DRM)
STRESS(mi210_gem, "mi210:4", "6.1", AUTO)
STRESS(mi210_drm, "mi210:4", "6.12", DRM)
STRESS(navi31_drm, "navi31:2", "6.12", DRM)
STRESS(navi31_gem, "navi31:2", "6.12", GEM)
STRESS(smallbar_drm, "navi31-smallbar", "6.12", DRM)
STRESS(smallbar_gem, "navi31-smallbar", "6.1", GEM)
STRESS(apu_drm, "apu", "6.12", DRM)
STRESS(vegam_kfd, "vegam-hollow", "6.12", KFD)
STRESS(vegam_drm, "vegam-hollow", "6.12", DRM)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mi300x_drm),     cmocka_unit_test(test_mi300x_kfd),
        cmocka_unit_test(test_mi300x_current), cmocka_unit_test(test_mi210_gem),
        cmocka_unit_test(test_mi210_drm),      cmocka_unit_test(test_navi31_drm),
        cmocka_unit_test(test_navi31_gem),     cmocka_unit_test(test_smallbar_drm),
        cmocka_unit_test(test_smallbar_gem),   cmocka_unit_test(test_apu_drm),
        cmocka_unit_test(test_vegam_kfd),      cmocka_unit_test(test_vegam_drm),
    };

    if (argc > 1)
        length = strtoull(argv[1], NULL, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
