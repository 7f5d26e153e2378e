/* SPDX-License-Identifier: MIT */
/* Version of the library, and the mark of an exported function. */
#ifndef KFDIRECT_VERSION_H
#define KFDIRECT_VERSION_H

#define KFDIRECT_VERSION_MAJOR 0
#define KFDIRECT_VERSION_MINOR 1
#define KFDIRECT_VERSION_PATCH 0
#define KFDIRECT_VERSION_STRING "0.1.0"

#define KFDIRECT_API __attribute__((visibility("default")))

#if defined(__GNUC__)
#define KFDIRECT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define KFDIRECT_PRINTF(fmt, args)
#endif

#endif
