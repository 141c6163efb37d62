#ifndef C_ALLOCATION_COUNT_H
#define C_ALLOCATION_COUNT_H

#include <stdint.h>

/// How often the calling thread has called malloc since it began; 0 for ever where malloc can't be replaced.
uint64_t etagere_allocation_count(void);

#endif
