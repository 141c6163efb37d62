#include "CAllocationCount.h"

#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif

static _Thread_local uint64_t count;

#if defined(__GLIBC__) && !defined(SANITIZED)
/* The program's own definition is found before the library's, by every library that it is linked with. */
extern void *__libc_malloc(size_t size);

void *malloc(size_t size) {
  count++;
  return __libc_malloc(size);
}
#endif

uint64_t etagere_allocation_count(void) { return count; }
