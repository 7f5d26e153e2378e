/* SPDX-License-Identifier: MIT */
/* A growing list of sentences: what was left out, and why. Not thread-safe; owned by its holder. */
#ifndef KFD_NOTES_H
#define KFD_NOTES_H

#include <stdint.h>

#include <kfdirect/version.h>

struct kfd_notes {
    char **text;
    uint32_t count, room;
};

/* 0 or -ENOMEM. */
int kfd_notes_add(struct kfd_notes *notes, const char *fmt, ...) KFDIRECT_PRINTF(2, 3);
void kfd_notes_free(struct kfd_notes *notes);

#endif
