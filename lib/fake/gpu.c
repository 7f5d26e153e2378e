/* SPDX-License-Identifier: MIT */
/* The GPU side: addresses walked through TLB and page tables as hardware would. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fake/events.h"
#include "fake/smi.h"
#include "fake/usercopy.h"
#include "fake/vm.h"
#include "kfd/error.h"

#define HOLE_START 0x0000800000000000ull
#define HOLE_END 0xffff800000000000ull
#define ADDRESS_MASK ((1ull << 48) - 1)

static const char *const reasons[] = {
    [FAKE_FAULT_NONE] = "no fault",
    [FAKE_FAULT_NO_VM] = "the process has no compute VM there",
    [FAKE_FAULT_NOT_MAPPED] = "not mapped",
    [FAKE_FAULT_NOT_READABLE] = "mapped without read access",
    [FAKE_FAULT_READ_ONLY] = "mapped read-only",
    [FAKE_FAULT_NO_EXEC] = "mapped without execute access",
    [FAKE_FAULT_FREED] = "the pages behind the translation are gone",
};

static const char *access_name(enum fake_access access)
{
    return access == FAKE_READ ? "read" : access == FAKE_WRITE ? "write" : "fetch";
}

static enum fake_fault_reason check_rights(uint32_t flags, enum fake_access access)
{
    if (access == FAKE_READ && !(flags & FAKE_PTE_READ))
        return FAKE_FAULT_NOT_READABLE;
    if (access == FAKE_WRITE && !(flags & FAKE_PTE_WRITE))
        return FAKE_FAULT_READ_ONLY;
    if (access == FAKE_EXEC && !(flags & FAKE_PTE_EXEC))
        return FAKE_FAULT_NO_EXEC;
    return FAKE_FAULT_NONE;
}

static bool same_place(const struct fake_pte *a, const struct fake_pte *b, uint64_t va)
{
    return a->mem == b->mem && a->generation == b->generation && a->flags == b->flags &&
           a->offset + (va - a->va) == b->offset + (va - b->va);
}

/* Why an address leads nowhere, or elsewhere than the TLB says, and who made it so; since: nobody
 * when its pid is 0. */
static const char *history(struct fake *fake, const struct fake_vm *vm, uint64_t addr,
                           const struct fake_pte *pte, const struct fake_translation *t,
                           struct fake_stamp *since)
{
    const struct fake_mapping *m = fake_vm_mapping(vm, addr);
    bool mapped = m != NULL && m->va != NULL; /* else the kernel's own */
    const struct fake_past *past = fake_history_find(&vm->history, addr);

    if (t->reason == FAKE_FAULT_FREED && !pte->moved) {
        return fake_machine_gone(&fake->machine, pte->mem, pte->generation, since) ? "freed"
                                                                                   : "moved out";
    }
    if (mapped && t->reason == FAKE_FAULT_FREED && m->va->moved.pid != 0) {
        *since = m->va->moved;
        return "moved";
    }
    if (mapped && (past == NULL || m->made.request >= past->end.request)) {
        *since = m->made;
        return t->reason == FAKE_FAULT_NOT_MAPPED
                   ? "its page tables were not written or lost it; mapped"
                   : "mapped so";
    }
    if (past != NULL) {
        *since = past->end;
        return "unmapped";
    }
    *since = (struct fake_stamp){0};
    return vm->history.count <= FAKE_HISTORY ? "never mapped" : "not mapped lately";
}

static void describe(struct fake *fake, struct fake_process *p, const struct fake_vm *vm,
                     const struct fake_pte *pte, struct fake_translation *t)
{
    char when[FAKE_STAMP_TEXT];
    struct fake_stamp since;
    const char *what;
    int n = snprintf(t->text, sizeof(t->text), "GPU %u, %s at 0x%llx: %s%s", t->gpu,
                     access_name(t->access), (unsigned long long)t->va, reasons[t->reason],
                     t->stale ? " (a stale TLB entry)" : "");

    if (vm == NULL || (t->reason == FAKE_FAULT_NONE && !t->stale))
        return;
    what = history(fake, vm, t->va & ADDRESS_MASK, pte, t, &since);
    if (since.pid != 0)
        fake_stamp_print(&since, &p->now, when);
    snprintf(t->text + n, sizeof(t->text) - (size_t)n, "; %s%s%s", what, since.pid != 0 ? " " : "",
             since.pid != 0 ? when : "");
}

/* Finds the page of va; from the TLB first, as hardware does. */
static bool walk(struct fake_vm *vm, uint64_t addr, struct fake_pte *pte,
                 struct fake_translation *out)
{
    const struct fake_pte *cached = fake_tlb_find(&vm->tlb, addr);
    struct fake_pte now;
    bool mapped = fake_pt_find(&vm->pt, addr, &now);

    if (cached == NULL) {
        *pte = now;
        return mapped;
    }
    *pte = *cached;
    out->from_tlb = true;
    out->stale = !mapped || !same_place(cached, &now, addr);
    return true;
}

static bool in_system(struct fake *fake, const struct fake_pte *pte)
{
    const struct fake_shared_bo *bo;

    if (!fake_machine_in_place(&fake->machine, pte->mem, pte->generation, pte->moves))
        return false;
    bo = fake_machine_bo(&fake->machine, pte->mem);
    return bo->domain != FAKE_DOMAIN_VRAM || bo->pinned_gtt != 0 || bo->evicted;
}

/* Process lock held. The entry that serves the access goes to pte; fill: as an access would. */
static enum fake_fault_reason translate(struct fake *fake, struct fake_process *p, uint32_t gpu,
                                        uint64_t va, enum fake_access access, bool fill,
                                        struct fake_pte *pte, struct fake_translation *out)
{
    struct fake_vm *vm = p->gpus[gpu].file != NULL ? p->gpus[gpu].file->vm : NULL;
    uint64_t addr = va & ADDRESS_MASK;

    memset(out, 0, sizeof(*out));
    out->va = va;
    out->gpu = gpu;
    out->access = access;
    if (vm == NULL)
        out->reason = FAKE_FAULT_NO_VM;
    else if ((va >= HOLE_START && va < HOLE_END) || !walk(vm, addr, pte, out))
        out->reason = FAKE_FAULT_NOT_MAPPED;
    else if (pte->flags & FAKE_PTE_PRT)
        out->flags = FAKE_PTE_PRT;
    else {
        out->object = (uint64_t)pte->generation << 32 | pte->mem;
        out->offset = pte->offset + (addr - pte->va);
        out->flags = pte->flags;
        out->page_size = out->from_tlb ? pte->size : fake_pte_page(pte, addr);
        out->reason = check_rights(pte->flags, access);
        out->system = in_system(fake, pte);
        if (out->reason == FAKE_FAULT_NONE &&
            (pte->moved ||
             !fake_machine_in_place(&fake->machine, pte->mem, pte->generation, pte->moves)))
            out->reason = FAKE_FAULT_FREED;
        if (fill && out->reason == FAKE_FAULT_NONE && !out->from_tlb)
            fake_tlb_fill(&vm->tlb, pte, addr);
    }
    describe(fake, p, vm, pte, out);
    return out->reason;
}

static int enter(struct fake *fake, uint32_t gpu, struct fake_process **p)
{
    int err;

    if (gpu >= fake->profile->gpu_count)
        return kfd_fail(-EINVAL, "GPU %u of %u", gpu, fake->profile->gpu_count);
    *p = fake_process_get(fake, &err);
    if (*p == NULL)
        return err;
    fake_process_lock(*p);
    return 0;
}

int fake_gpu_translate(struct fake *fake, uint32_t gpu, uint64_t va, enum fake_access access,
                       struct fake_translation *out)
{
    struct fake_process *p;
    struct fake_pte pte = {0};
    int err = enter(fake, gpu, &p);

    if (err != 0)
        return err;
    err = translate(fake, p, gpu, va, access, false, &pte, out) == FAKE_FAULT_NONE ? 0 : -EFAULT;
    fake_process_unlock(p);
    return err;
}

/* A run of bytes in one memory, moved with one call. */
struct run {
    uint32_t mem;
    bool sparse;
    uint64_t offset, size;
};

static int move_file(struct fake *fake, const struct run *run, void *buf, bool write)
{
    int fd = fake_machine_open_bo(&fake->machine, run->mem, O_RDWR | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return fd;
    n = write ? pwrite(fd, buf, run->size, (off_t)run->offset)
              : pread(fd, buf, run->size, (off_t)run->offset);
    if (n < 0)
        n = -errno;
    close(fd);
    return n == (ssize_t)run->size ? 0 : n < 0 ? (int)n : -EIO;
}

static int move(struct fake *fake, struct fake_process *p, const struct run *run, void *buf,
                bool write)
{
    const struct fake_mem *mem = run->sparse ? NULL : fake_map_get(&p->mems, run->mem);

    if (run->size == 0)
        return 0;
    if (run->sparse) {
        if (!write)
            memset(buf, 0, run->size);
        return 0;
    }
    if (mem == NULL || mem->domain != FAKE_DOMAIN_USERPTR)
        return move_file(fake, run, buf, write);
    if (write)
        return fake_copy_out(mem->userptr + run->offset, buf, run->size);
    return fake_copy_in(buf, mem->userptr + run->offset, run->size);
}

static uint64_t page_rest(const struct fake_translation *t)
{
    uint64_t page = t->page_size != 0 ? t->page_size : FAKE_PAGE;

    return page - (t->va & (page - 1));
}

/* What the driver does with a fault: the process's events and SMI descriptors hear of it. */
static int report_fault(struct fake *fake, struct fake_process *p, const struct fake_translation *t)
{
    char text[64];

    fake_events_memory_fault(fake, p, t->gpu, t->va, t->reason, t->access);
    snprintf(text, sizeof(text), "%x:%s", (unsigned int)p->pid, program_invocation_short_name);
    fake_smi_send(p, t->gpu, FAKE_SMI_VMFAULT, text);
    return kfd_fail(-EFAULT, "%s", t->text);
}

/* Adds n bytes at t to the run that ends at end, moving what does not go on from there. */
static int extend(struct fake *fake, struct fake_process *p, struct run *run,
                  const struct fake_translation *t, uint32_t mem, uint64_t n, char *end, bool write)
{
    bool sparse = (t->flags & FAKE_PTE_PRT) != 0;
    int err = 0;

    if (run->size == 0 || run->sparse != sparse || run->mem != mem ||
        run->offset + run->size != t->offset) {
        err = move(fake, p, run, end - run->size, write);
        *run = (struct run){.mem = mem, .sparse = sparse, .offset = t->offset};
    }
    run->size += n;
    return err;
}

static int access_memory(struct fake *fake, uint32_t gpu, uint64_t va, char *buf, size_t size,
                         bool write, struct fake_translation *fault)
{
    enum fake_access access = write ? FAKE_WRITE : FAKE_READ;
    struct fake_translation t;
    struct run run = {0};
    struct fake_process *p;
    struct fake_pte pte = {0};
    size_t done = 0;
    int err = enter(fake, gpu, &p), stop = 0;

    if (err != 0)
        return err;
    memset(&t, 0, sizeof(t));
    while (err == 0 && done < size) {
        uint64_t n;

        if (translate(fake, p, gpu, va + done, access, true, &pte, &t) != FAKE_FAULT_NONE)
            stop = report_fault(fake, p, &t);
        else if (t.stale)
            stop = fake_strict_text(fake, 0, t.text);
        if (stop != 0)
            break;
        n = page_rest(&t);
        if (n > size - done)
            n = size - done;
        err = extend(fake, p, &run, &t, pte.mem, n, buf + done, write);
        done += n;
    }
    /* What came before a fault has happened. */
    if (err == 0)
        err = move(fake, p, &run, buf + done - run.size, write);
    fake_process_unlock(p);
    if (fault != NULL)
        *fault = t;
    return err != 0 ? err : stop;
}

int fake_gpu_read(struct fake *fake, uint32_t gpu, uint64_t va, void *buf, size_t size,
                  struct fake_translation *fault)
{
    return access_memory(fake, gpu, va, buf, size, false, fault);
}

int fake_gpu_write(struct fake *fake, uint32_t gpu, uint64_t va, const void *buf, size_t size,
                   struct fake_translation *fault)
{
    return access_memory(fake, gpu, va, (char *)(uintptr_t)buf, size, true, fault);
}
