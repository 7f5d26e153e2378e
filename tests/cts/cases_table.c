/* SPDX-License-Identifier: MIT */
/* Page tables as the hardware would read them. */
#include "cts.h"

const struct cts_case cts_table_cases[] = {
    {0},
};
