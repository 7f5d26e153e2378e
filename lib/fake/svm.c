/* SPDX-License-Identifier: MIT */
#include "fake/svm.h"

#include <errno.h>
#include <sys/mman.h>

#include "fake/vm.h"
#include "kfd/uapi.h"

#define DEFAULT_GRANULARITY 9u
#define MAX_GRANULARITY 0x3fu
#define FLAG_ALWAYS_MAPPED 0x40u

struct attributes {
    uint32_t preferred, prefetch, granularity, flags;
    uint64_t access, in_place; /* GPUs, one bit each */
};

struct range {
    struct fake_node node; /* key: first address */
    uint64_t end;
    struct attributes attrs;
};

struct fake_svm {
    struct fake_tree ranges;
};

static const struct attributes defaults = {
    .preferred = KFD_IOCTL_SVM_LOCATION_UNDEFINED,
    .prefetch = KFD_IOCTL_SVM_LOCATION_UNDEFINED,
    .granularity = DEFAULT_GRANULARITY,
    .flags = KFD_IOCTL_SVM_FLAG_HOST_ACCESS | KFD_IOCTL_SVM_FLAG_COHERENT,
};

static struct range *of_node(struct fake_node *node)
{
    return FAKE_NODE_OF(node, struct range, node);
}

/* The first range that ends behind addr. */
static struct range *first_behind(const struct fake_process *p, uint64_t addr)
{
    struct range *r;

    if (p->svm == NULL)
        return NULL;
    r = of_node(fake_tree_floor(&p->svm->ranges, addr));
    return r != NULL && r->end > addr ? r : of_node(fake_tree_ceil(&p->svm->ranges, addr));
}

static struct range *next(const struct fake_process *p, const struct range *r)
{
    return of_node(fake_tree_next(&p->svm->ranges, &r->node));
}

bool fake_svm_overlaps(const struct fake_process *p, uint64_t addr, uint64_t size)
{
    const struct range *r = first_behind(p, addr);

    return r != NULL && r->node.key < addr + size;
}

bool fake_svm_always_mapped(const struct fake_process *p, uint32_t gpu, uint64_t addr,
                            uint64_t size)
{
    uint64_t end = addr + size;

    for (const struct range *r = first_behind(p, addr); addr < end; r = next(p, r)) {
        if (r == NULL || r->node.key > addr || (r->attrs.flags & FLAG_ALWAYS_MAPPED) == 0 ||
            ((r->attrs.access | r->attrs.in_place) >> gpu & 1) == 0)
            return false;
        addr = r->end;
    }
    return true;
}

static struct range *add(struct fake_process *p, uint64_t start, uint64_t end,
                         const struct attributes *attrs)
{
    struct range *r = fake_calloc(sizeof(*r));

    if (r == NULL)
        return NULL;
    r->node.key = start;
    r->end = end;
    r->attrs = *attrs;
    fake_tree_insert(&p->svm->ranges, &r->node);
    return r;
}

/* Makes a border at addr, if it lies inside a range. */
static int split(struct fake_process *p, uint64_t addr)
{
    struct range *r = first_behind(p, addr);

    if (r == NULL || r->node.key >= addr)
        return 0;
    if (add(p, addr, r->end, &r->attrs) == NULL)
        return -ENOMEM;
    r->end = addr;
    return 0;
}

/* A location or access attribute names a GPU of the process. */
static int check(const struct fake *fake, const struct kfd_ioctl_svm_attribute *attr)
{
    switch (attr->type) {
    case KFD_IOCTL_SVM_ATTR_PREFERRED_LOC:
        if (attr->value == KFD_IOCTL_SVM_LOCATION_SYSMEM ||
            attr->value == KFD_IOCTL_SVM_LOCATION_UNDEFINED)
            return 0;
        break;
    case KFD_IOCTL_SVM_ATTR_PREFETCH_LOC:
        if (attr->value == KFD_IOCTL_SVM_LOCATION_SYSMEM)
            return 0;
        break;
    case KFD_IOCTL_SVM_ATTR_ACCESS:
    case KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE:
    case KFD_IOCTL_SVM_ATTR_NO_ACCESS:
        break;
    case KFD_IOCTL_SVM_ATTR_SET_FLAGS:
    case KFD_IOCTL_SVM_ATTR_CLR_FLAGS:
    case KFD_IOCTL_SVM_ATTR_GRANULARITY:
        return 0;
    default:
        return -EINVAL;
    }
    return fake_gpu_of_id(fake, attr->value) < 0 ? -EINVAL : 0;
}

static void apply(const struct fake *fake, struct attributes *to,
                  const struct kfd_ioctl_svm_attribute *attr)
{
    int gpu = fake_gpu_of_id(fake, attr->value);
    uint64_t bit = gpu >= 0 ? UINT64_C(1) << gpu : 0;

    switch (attr->type) {
    case KFD_IOCTL_SVM_ATTR_PREFERRED_LOC:
        to->preferred = attr->value;
        break;
    case KFD_IOCTL_SVM_ATTR_PREFETCH_LOC:
        to->prefetch = attr->value;
        break;
    case KFD_IOCTL_SVM_ATTR_ACCESS:
        to->access |= bit;
        to->in_place &= ~bit;
        break;
    case KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE:
        to->access &= ~bit;
        to->in_place |= bit;
        break;
    case KFD_IOCTL_SVM_ATTR_NO_ACCESS:
        to->access &= ~bit;
        to->in_place &= ~bit;
        break;
    case KFD_IOCTL_SVM_ATTR_SET_FLAGS:
        to->flags |= attr->value;
        break;
    case KFD_IOCTL_SVM_ATTR_CLR_FLAGS:
        to->flags &= ~attr->value;
        break;
    case KFD_IOCTL_SVM_ATTR_GRANULARITY:
        to->granularity = attr->value < MAX_GRANULARITY ? attr->value : MAX_GRANULARITY;
        break;
    default:
        break;
    }
}

/* Is the process's own memory there? */
static bool is_mapped(uint64_t start, uint64_t size)
{
    return msync((void *)(uintptr_t)start, size, MS_ASYNC) == 0;
}

static bool meets_buffer(const struct fake *fake, const struct fake_process *p, uint64_t start,
                         uint64_t size)
{
    for (uint32_t g = 0; g < fake->profile->gpu_count; g++) {
        const struct fake_file *file = p->gpus[g].file;
        const struct fake_mapping *m;

        if (file == NULL)
            continue;
        m = FAKE_NODE_OF(fake_tree_floor(&file->vm->mappings, start + size - 1),
                         struct fake_mapping, node);
        if (m != NULL && m->node.key + m->size > start)
            return true;
    }
    return false;
}

static int set(struct fake_call *call, const struct kfd_ioctl_svm_args *a)
{
    struct fake_process *p = call->process;
    uint64_t end = a->start_addr + a->size, at = a->start_addr;
    int err;

    for (uint32_t i = 0; i < a->nattr; i++) {
        if (check(call->fake, &a->attrs[i]) != 0)
            return -EINVAL;
    }
    if (!is_mapped(a->start_addr, a->size))
        return -EFAULT;
    if (meets_buffer(call->fake, p, a->start_addr, a->size))
        return -EADDRINUSE;
    if (p->svm == NULL)
        p->svm = fake_calloc(sizeof(*p->svm));
    if (p->svm == NULL)
        return -ENOMEM;
    /* Borders and new ranges first: what fails later would leave half of it changed. */
    err = split(p, a->start_addr);
    if (err == 0)
        err = split(p, end);
    while (err == 0 && at < end) {
        const struct range *r = first_behind(p, at);
        uint64_t stop = r != NULL && r->node.key < end ? r->node.key : end;

        if (stop > at && add(p, at, stop, &defaults) == NULL)
            err = -ENOMEM;
        at = stop == end ? end : r->end;
    }
    if (err != 0)
        return err;
    for (struct range *r = first_behind(p, a->start_addr); r != NULL && r->node.key < end;
         r = next(p, r)) {
        for (uint32_t i = 0; i < a->nattr; i++)
            apply(call->fake, &r->attrs, &a->attrs[i]);
    }
    return 0;
}

/* What all ranges in the span agree on; flags_or: what any of them has. */
static struct attributes meet(const struct fake_process *p, uint64_t start, uint64_t end,
                              uint32_t *flags_or)
{
    const struct range *r = first_behind(p, start);
    struct attributes all = defaults;

    *flags_or = defaults.flags;
    if (r == NULL || r->node.key >= end)
        return all;
    all = r->attrs;
    *flags_or = all.flags;
    for (; r != NULL && r->node.key < end; r = next(p, r)) {
        if (r->attrs.preferred != all.preferred)
            all.preferred = KFD_IOCTL_SVM_LOCATION_UNDEFINED;
        if (r->attrs.prefetch != all.prefetch)
            all.prefetch = KFD_IOCTL_SVM_LOCATION_UNDEFINED;
        if (r->attrs.granularity < all.granularity)
            all.granularity = r->attrs.granularity;
        all.flags &= r->attrs.flags;
        *flags_or |= r->attrs.flags;
        /* In place is the stronger of the two; a GPU must have one of them everywhere. */
        all.access = (all.access | all.in_place) & (r->attrs.access | r->attrs.in_place);
        all.in_place &= r->attrs.in_place;
        all.access &= ~all.in_place;
    }
    return all;
}

static int get(struct fake_call *call, struct kfd_ioctl_svm_args *a)
{
    uint32_t flags_or;
    struct attributes all = meet(call->process, a->start_addr, a->start_addr + a->size, &flags_or);

    if (!is_mapped(a->start_addr, a->size))
        return -EFAULT;
    for (uint32_t i = 0; i < a->nattr; i++) {
        struct kfd_ioctl_svm_attribute *attr = &a->attrs[i];
        int gpu;

        switch (attr->type) {
        case KFD_IOCTL_SVM_ATTR_PREFERRED_LOC:
            attr->value = all.preferred;
            break;
        case KFD_IOCTL_SVM_ATTR_PREFETCH_LOC:
            attr->value = all.prefetch;
            break;
        case KFD_IOCTL_SVM_ATTR_ACCESS:
        case KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE:
        case KFD_IOCTL_SVM_ATTR_NO_ACCESS:
            gpu = fake_gpu_of_id(call->fake, attr->value);
            if (gpu < 0)
                return -EINVAL;
            attr->type = all.in_place >> gpu & 1 ? KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE
                         : all.access >> gpu & 1 ? KFD_IOCTL_SVM_ATTR_ACCESS
                                                 : KFD_IOCTL_SVM_ATTR_NO_ACCESS;
            break;
        case KFD_IOCTL_SVM_ATTR_SET_FLAGS:
            attr->value = all.flags;
            break;
        case KFD_IOCTL_SVM_ATTR_CLR_FLAGS:
            attr->value = ~flags_or;
            break;
        case KFD_IOCTL_SVM_ATTR_GRANULARITY:
            attr->value = all.granularity;
            break;
        default:
            return -EINVAL;
        }
    }
    return 0;
}

int fake_kfd_svm(struct fake_call *call, void *arg)
{
    struct kfd_ioctl_svm_args *a = arg;

    if (!call->fake->profile->kernel.svm)
        return -EPERM;
    if (a->size == 0 || ((a->start_addr | a->size) & (FAKE_PAGE - 1)) != 0 ||
        a->start_addr + a->size < a->start_addr)
        return -EINVAL;
    switch (a->op) {
    case KFD_IOCTL_SVM_OP_SET_ATTR:
        return set(call, a);
    case KFD_IOCTL_SVM_OP_GET_ATTR:
        return get(call, a);
    default:
        return -EINVAL;
    }
}

void fake_svm_forget(struct fake_process *p, uint64_t addr, uint64_t size)
{
    struct range *r = first_behind(p, addr);

    if (r == NULL || r->node.key >= addr + size)
        return;
    /* Without memory for a border the range keeps a little more than it should. */
    split(p, addr);
    split(p, addr + size);
    while ((r = first_behind(p, addr)) != NULL && r->node.key >= addr && r->end <= addr + size) {
        fake_tree_remove(&p->svm->ranges, &r->node);
        fake_free(r);
    }
}

uint32_t fake_svm_count(const struct fake_process *p)
{
    struct fake_node *node = p->svm != NULL ? fake_tree_ceil(&p->svm->ranges, 0) : NULL;
    uint32_t n = 0;

    for (; node != NULL; node = fake_tree_next(&p->svm->ranges, node))
        n++;
    return n;
}

void fake_svm_destroy(struct fake_process *p)
{
    if (p->svm == NULL)
        return;
    while (p->svm->ranges.root != NULL) {
        struct range *r = of_node(p->svm->ranges.root);

        fake_tree_remove(&p->svm->ranges, &r->node);
        fake_free(r);
    }
    fake_free(p->svm);
    p->svm = NULL;
}
