/* SPDX-License-Identifier: MIT */
#include "kfd/process.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint generation;

static void before_fork(void)
{
    pthread_mutex_lock(&open_lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&open_lock);
}

static void in_child(void)
{
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
    pthread_mutex_unlock(&open_lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

uint32_t kfd_process_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

void kfd_process_lock(void)
{
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&open_lock);
}

void kfd_process_unlock(void)
{
    pthread_mutex_unlock(&open_lock);
}
