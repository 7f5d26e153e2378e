/* SPDX-License-Identifier: MIT */
#include "kfd/notes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/error.h"

int kfd_notes_add(struct kfd_notes *notes, const char *fmt, ...)
{
    char line[512];
    va_list args;
    char *copy;

    if (notes->count == notes->room) {
        uint32_t room = notes->room ? notes->room * 2 : 8;
        char **text = realloc(notes->text, room * sizeof(*text));

        if (!text)
            return kfd_fail(-ENOMEM, "no memory for a list of %u notes", room);
        notes->text = text;
        notes->room = room;
    }
    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    copy = strdup(line);
    if (!copy)
        return kfd_fail(-ENOMEM, "no memory for a note");
    notes->text[notes->count++] = copy;
    return 0;
}

void kfd_notes_free(struct kfd_notes *notes)
{
    for (uint32_t i = 0; i < notes->count; i++)
        free(notes->text[i]);
    free(notes->text);
    *notes = (struct kfd_notes){0};
}
