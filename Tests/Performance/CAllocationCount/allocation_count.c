#include "CAllocationCount.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif

static _Thread_local uint64_t count;
static atomic_bool counts_all;
static _Atomic uint64_t all;

#if defined(__GLIBC__) && !defined(SANITIZED)
/* The program's definition takes precedence over that of the libraries, including their own calls. */
extern void *__libc_malloc(size_t size);

void *malloc(size_t size) {
  count++;
  /* Usually only read: a variable that all threads write would slow down the measured code. */
  if (atomic_load_explicit(&counts_all, memory_order_relaxed)) atomic_fetch_add_explicit(&all, 1, memory_order_relaxed);
  return __libc_malloc(size);
}
#endif

uint64_t etagere_allocation_count(void) { return count; }

void etagere_count_allocations_of_all_threads(void) {
  atomic_store(&all, 0);
  atomic_store(&counts_all, true);
}

uint64_t etagere_allocations_of_all_threads(void) {
  atomic_store(&counts_all, false);
  return atomic_load(&all);
}
