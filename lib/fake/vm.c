/* SPDX-License-Identifier: MIT */
#include "fake/vm.h"

#include <errno.h>

static struct fake_mapping *mapping_of(struct fake_node *node)
{
    return FAKE_NODE_OF(node, struct fake_mapping, node);
}

static struct fake_mapping **list_of(struct fake_mapping *m)
{
    return m->written ? &m->va->mappings : &m->va->unwritten;
}

static void list_add(struct fake_mapping *m)
{
    struct fake_mapping **head = list_of(m);

    m->prev = NULL;
    m->next = *head;
    if (m->next != NULL)
        m->next->prev = m;
    *head = m;
}

static void list_del(struct fake_mapping *m)
{
    if (m->next != NULL)
        m->next->prev = m->prev;
    if (m->prev != NULL)
        m->prev->next = m->next;
    else
        *list_of(m) = m->next;
}

static void insert(struct fake_vm *vm, struct fake_va *va, struct fake_mapping *m)
{
    m->va = va;
    m->written = false;
    fake_tree_insert(&vm->mappings, &m->node);
    list_add(m);
    vm->user_mappings++;
}

/* Out of the tree; its range waits on the freed list for the page tables to follow. */
static void take_out(struct fake_vm *vm, struct fake_mapping *m)
{
    fake_tree_remove(&vm->mappings, &m->node);
    list_del(m);
    vm->user_mappings--;
    m->va = NULL;
    m->next = vm->freed;
    vm->freed = m;
}

static void remember(struct fake_vm *vm, const struct fake_mapping *m)
{
    fake_history_add(&vm->history, m->node.key, m->size, vm->now);
}

static void end(struct fake_vm *vm, struct fake_mapping *m)
{
    take_out(vm, m);
    remember(vm, m);
}

/* What the kernel takes for not yet written ends without a look at the page tables. A rest of a cut
 * mapping is taken for that too: its entries stay behind. */
static void end_unwritten(struct fake_vm *vm, struct fake_mapping *m)
{
    remember(vm, m);
    fake_tree_remove(&vm->mappings, &m->node);
    list_del(m);
    vm->user_mappings--;
    fake_free(m);
}

/* The first mapping that reaches into [addr, end), or NULL. */
static struct fake_mapping *first_in(const struct fake_vm *vm, uint64_t addr, uint64_t end)
{
    struct fake_mapping *m = mapping_of(fake_tree_floor(&vm->mappings, addr));

    if (m == NULL || m->node.key + m->size <= addr)
        m = mapping_of(fake_tree_ceil(&vm->mappings, addr));
    return m != NULL && m->node.key < end ? m : NULL;
}

/* A range of the kernel's own. */
static int reserve(struct fake_vm *vm, uint64_t addr, uint64_t size)
{
    struct fake_mapping *m;

    if (first_in(vm, addr, addr + size) != NULL)
        return -EINVAL;
    m = fake_calloc(sizeof(*m));
    if (m == NULL)
        return -ENOMEM;
    m->node.key = addr;
    m->size = size;
    fake_tree_insert(&vm->mappings, &m->node);
    return 0;
}

struct fake_vm *fake_vm_create(struct fake *fake, struct fake_process *p, uint32_t gpu)
{
    const struct fake_gpu *g = &fake->profile->gpus[gpu];
    struct fake_vm *vm = fake_calloc(sizeof(*vm));

    if (vm == NULL)
        return NULL;
    vm->gpu = gpu;
    vm->now = &p->now;
    vm->end = fake_gpu_gfx_major(g) >= 9 ? 1ull << 48 : 1ull << g->va_bits;
    vm->pt.cost = &p->cost[gpu];
    vm->by_engine = !fake_gpu_large_bar(g);
    vm->pt.lose_rest = (fake->flags & FAKE_QUIRK_T5) != 0 && fake_gpu_gfx_major(g) >= 9;
    vm->prt.vm = vm;
    vm->prt.refs = 1;
    return vm;
}

int fake_vm_acquire(struct fake *fake, struct fake_vm *vm)
{
    uint64_t below = fake->profile->kernel.trap_va_below_top;
    int err = reserve(vm, below != 0 ? vm->end - below : 0x2000, 2 * FAKE_PAGE);

    if (err == 0)
        vm->compute = true;
    return err;
}

static void drop_mappings(struct fake_va *va)
{
    while (va->mappings != NULL)
        end(va->vm, va->mappings);
    while (va->unwritten != NULL)
        end_unwritten(va->vm, va->unwritten);
}

void fake_vm_destroy(struct fake *fake, struct fake_process *p, struct fake_vm *vm)
{
    if (vm == NULL)
        return;
    for (uint64_t i = 0; i < vm->vas.capacity; i++) {
        struct fake_va *va = vm->vas.slots[i].value;

        if (va == NULL)
            continue;
        drop_mappings(va);
        fake_bo_put(fake, p, va->bo);
        fake_free(va);
    }
    drop_mappings(&vm->prt);
    while (vm->freed != NULL) {
        struct fake_mapping *m = vm->freed;

        vm->freed = m->next;
        fake_free(m);
    }
    while (vm->mappings.root != NULL) {
        struct fake_mapping *m = mapping_of(vm->mappings.root);

        fake_tree_remove(&vm->mappings, &m->node);
        fake_free(m);
    }
    fake_pt_free(&vm->pt);
    fake_tlb_flush(&vm->tlb);
    fake_map_clear(&vm->vas);
    fake_free(vm);
}

struct fake_va *fake_vm_find(const struct fake_vm *vm, const struct fake_bo *bo)
{
    return fake_map_get(&vm->vas, (uintptr_t)bo);
}

int fake_vm_attach(struct fake_vm *vm, struct fake_bo *bo, struct fake_va **out)
{
    struct fake_va *va = fake_vm_find(vm, bo);

    if (va == NULL) {
        va = fake_calloc(sizeof(*va));
        if (va == NULL)
            return -ENOMEM;
        va->vm = vm;
        va->bo = bo;
        if (fake_map_put(&vm->vas, (uintptr_t)bo, va) != 0) {
            fake_free(va);
            return -ENOMEM;
        }
        fake_bo_get(bo);
    }
    va->refs++;
    *out = va;
    return 0;
}

void fake_vm_detach(struct fake *fake, struct fake_process *p, struct fake_va *va)
{
    if (--va->refs != 0)
        return;
    fake_vm_settle(va->vm);
    drop_mappings(va);
    fake_vm_clear_freed(va->vm);
    fake_map_take(&va->vm->vas, (uintptr_t)va->bo);
    fake_bo_put(fake, p, va->bo);
    fake_free(va);
}

static int check(const struct fake_vm *vm, uint64_t addr, uint64_t offset, uint64_t size,
                 uint64_t limit)
{
    if (((addr | offset | size) & (FAKE_PAGE - 1)) != 0)
        return -EINVAL;
    if (size == 0 || addr + size <= addr || offset + size <= offset)
        return -EINVAL;
    if (offset + size > limit || addr + size > vm->end)
        return -EINVAL;
    return 0;
}

static uint64_t bo_limit(const struct fake_va *va)
{
    return va->bo != NULL ? va->bo->mem->size : UINT64_MAX;
}

static struct fake_mapping *mapping_new(uint64_t addr, uint64_t offset, uint64_t size,
                                        uint32_t flags)
{
    struct fake_mapping *m = fake_calloc(sizeof(*m));

    if (m == NULL)
        return NULL;
    m->node.key = addr;
    m->offset = offset;
    m->size = size;
    m->flags = flags;
    return m;
}

int fake_vm_map(struct fake_va *va, uint64_t addr, uint64_t offset, uint64_t size, uint32_t flags)
{
    struct fake_vm *vm = va->vm;
    struct fake_mapping *m;
    int err = check(vm, addr, offset, size, bo_limit(va));

    if (err != 0)
        return err;
    if (first_in(vm, addr, addr + size) != NULL)
        return -EINVAL;
    m = mapping_new(addr, offset, size, flags);
    if (m == NULL)
        return -ENOMEM;
    m->made = *vm->now;
    insert(vm, va, m);
    return 0;
}

int fake_vm_unmap(struct fake_va *va, uint64_t addr)
{
    struct fake_mapping *m = mapping_of(fake_tree_find(&va->vm->mappings, addr));

    if (m == NULL || m->va != va)
        return -ENOENT;
    if (m->written || va->pending)
        end(va->vm, m);
    else
        end_unwritten(va->vm, m);
    return 0;
}

struct fake_mapping *fake_vm_mapping(const struct fake_vm *vm, uint64_t addr)
{
    struct fake_mapping *m = mapping_of(fake_tree_floor(&vm->mappings, addr));

    return m != NULL && addr - m->node.key < m->size ? m : NULL;
}

struct fake_mapping *fake_vm_kfd_mapping(const struct fake_vm *vm, uint64_t addr, uint64_t size)
{
    struct fake_mapping *m = first_in(vm, addr, addr + size);

    for (; m != NULL && m->node.key < addr + size;
         m = mapping_of(fake_tree_next(&vm->mappings, &m->node)))
        if (m->flags & FAKE_MAPPING_KFD)
            return m;
    return NULL;
}

static struct fake_mapping *cut_by(const struct fake_vm *vm, uint64_t edge)
{
    struct fake_mapping *m = fake_vm_mapping(vm, edge);

    return m != NULL && m->node.key < edge ? m : NULL;
}

struct fake_mapping *fake_vm_cut_mapping(const struct fake_vm *vm, uint64_t addr, uint64_t size)
{
    struct fake_mapping *m = cut_by(vm, addr);

    return m != NULL ? m : cut_by(vm, addr + size);
}

/* Takes the part of m inside [addr, end) away; the rests before and behind stay, as mappings whose
 * page tables are to be written. m's own node goes to the freed list with the part taken. */
static void cut(struct fake_vm *vm, struct fake_mapping *m, uint64_t addr, uint64_t end,
                struct fake_mapping **spare)
{
    uint64_t from = m->node.key, to = from + m->size;
    struct fake_va *va = m->va;

    take_out(vm, m);
    if (from < addr) {
        struct fake_mapping *head = *spare;

        *spare = head->next;
        *head = (struct fake_mapping){.node.key = from,
                                      .size = addr - from,
                                      .offset = m->offset,
                                      .flags = m->flags,
                                      .made = m->made};
        insert(vm, va, head);
        m->offset += addr - from;
        m->node.key = addr;
        m->size = to - addr;
    }
    if (to > end) {
        struct fake_mapping *tail = *spare;

        *spare = tail->next;
        *tail = (struct fake_mapping){.node.key = end,
                                      .size = to - end,
                                      .offset = m->offset + (end - m->node.key),
                                      .flags = m->flags,
                                      .made = m->made};
        insert(vm, va, tail);
        m->size = end - m->node.key;
    }
    remember(vm, m);
}

static void free_list(struct fake_mapping *m)
{
    while (m != NULL) {
        struct fake_mapping *next = m->next;

        fake_free(m);
        m = next;
    }
}

/* The rests of mappings that are cut: two nodes at most, taken first. */
static struct fake_mapping *two_spares(void)
{
    struct fake_mapping *a = fake_calloc(sizeof(*a)), *b = fake_calloc(sizeof(*b));

    if (a == NULL || b == NULL) {
        fake_free(a);
        fake_free(b);
        return NULL;
    }
    a->next = b;
    return a;
}

static void clear_range(struct fake_vm *vm, uint64_t addr, uint64_t end,
                        struct fake_mapping **spare)
{
    struct fake_mapping *m = first_in(vm, addr, end);

    while (m != NULL) {
        struct fake_mapping *next = mapping_of(fake_tree_next(&vm->mappings, &m->node));

        /* The kernel's own ranges lie where GEM_VA can't reach. */
        if (m->va != NULL)
            cut(vm, m, addr, end, spare);
        m = next != NULL && next->node.key < end ? next : NULL;
    }
}

int fake_vm_clear(struct fake_vm *vm, uint64_t addr, uint64_t size)
{
    struct fake_mapping *spare;
    int err = check(vm, addr, 0, size, UINT64_MAX);

    if (err != 0)
        return err;
    spare = two_spares();
    if (spare == NULL)
        return -ENOMEM;
    clear_range(vm, addr, addr + size, &spare);
    free_list(spare);
    return 0;
}

int fake_vm_replace(struct fake_va *va, uint64_t addr, uint64_t offset, uint64_t size,
                    uint32_t flags)
{
    struct fake_mapping *spare, *m;
    int err = check(va->vm, addr, offset, size, bo_limit(va));

    if (err != 0)
        return err;
    spare = two_spares();
    m = mapping_new(addr, offset, size, flags);
    if (spare == NULL || m == NULL) {
        free_list(spare);
        fake_free(m);
        return -ENOMEM;
    }
    clear_range(va->vm, addr, addr + size, &spare);
    free_list(spare);
    m->made = *va->vm->now;
    insert(va->vm, va, m);
    return 0;
}

static int clear_freed(struct fake_vm *vm)
{
    while (vm->freed != NULL) {
        struct fake_mapping *m = vm->freed;
        int err = fake_pt_clear(&vm->pt, m->node.key, m->size);

        if (err != 0)
            return err;
        vm->change++;
        vm->freed = m->next;
        fake_free(m);
    }
    return 0;
}

/* Page tables hold the rests of a cut mapping already, unless the cut lost them; writing them again
 * changes nothing that needs a flush. */
static int write_one(struct fake_mapping *m)
{
    struct fake_vm *vm = m->va->vm;
    const struct fake_mem *mem = m->va->bo != NULL ? m->va->bo->mem : NULL;
    struct fake_pte pte = {
        .va = m->node.key,
        .size = m->size,
        .offset = m->offset,
        .flags = m->flags & ~FAKE_MAPPING_KFD,
        .mem = mem != NULL ? mem->index : 0,
        .generation = mem != NULL ? mem->generation : 0,
        .moves = mem != NULL ? fake_mem_moves(mem) : 0,
        /* The kernel gives VRAM in blocks of 2 MiB and more only when the size asks for it. */
        .contiguous =
            mem == NULL || (mem->domain == FAKE_DOMAIN_VRAM && (mem->size & (FAKE_HUGE - 1)) == 0),
    };

    /* Without pages the entries are written, but say nothing. */
    if (m->va->bo != NULL && m->va->bo->absent)
        return fake_pt_clear(&vm->pt, pte.va, pte.size);
    return fake_pt_write(&vm->pt, &pte);
}

static int write_all(struct fake_va *va)
{
    while (va->unwritten != NULL) {
        struct fake_mapping *m = va->unwritten;
        int err = write_one(m);

        if (err != 0)
            return err;
        list_del(m);
        m->written = true;
        list_add(m);
    }
    return 0;
}

void fake_vm_defer(struct fake_vm *vm, struct fake_va *va)
{
    vm->pending = true;
    if (va == NULL || va->pending)
        return;
    va->pending = true;
    va->next_pending = vm->pending_vas;
    vm->pending_vas = va;
}

void fake_vm_settle(struct fake_vm *vm)
{
    if (!vm->pending)
        return;
    vm->pending = false;
    (void)clear_freed(vm);
    while (vm->pending_vas != NULL) {
        struct fake_va *va = vm->pending_vas;

        vm->pending_vas = va->next_pending;
        va->pending = false;
        (void)write_all(va);
    }
}

int fake_vm_clear_freed(struct fake_vm *vm)
{
    fake_vm_settle(vm);
    return clear_freed(vm);
}

int fake_vm_update(struct fake_va *va)
{
    fake_vm_settle(va->vm);
    return write_all(va);
}

int fake_vm_rewrite(struct fake_va *va, bool kfd_only)
{
    struct fake_mapping *m, *next;

    for (m = va->mappings; m != NULL; m = next) {
        next = m->next;
        if (kfd_only && !(m->flags & FAKE_MAPPING_KFD))
            continue;
        list_del(m);
        m->written = false;
        list_add(m);
    }
    if (!kfd_only)
        va->moved = (struct fake_stamp){0};
    va->vm->change++;
    return fake_vm_update(va);
}

void fake_vm_flush(struct fake_vm *vm)
{
    if (vm->change == vm->flushed)
        return;
    vm->flushed = vm->change;
    fake_tlb_flush(&vm->tlb);
    vm->pt.cost->tlb_flushes++;
}

void fake_vm_written(const struct fake *fake, struct fake_vm *vm)
{
    if (fake_gpu_gfx_major(&fake->profile->gpus[vm->gpu]) >= 9)
        return;
    vm->change++;
    fake_vm_flush(vm);
    vm->change++; /* KFD does not know of it, and flushes again */
}
