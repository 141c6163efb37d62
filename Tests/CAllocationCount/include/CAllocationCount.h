#ifndef C_ALLOCATION_COUNT_H
#define C_ALLOCATION_COUNT_H

#include <stdint.h>

/// How often the calling thread has called malloc since it began; 0 for ever where malloc can't be replaced.
uint64_t etagere_allocation_count(void);

/// Starts to count the calls of malloc of all threads, from 0.
void etagere_count_allocations_of_all_threads(void);

/// Stops the count of all threads and returns it; 0 where malloc can't be replaced.
uint64_t etagere_allocations_of_all_threads(void);

#endif
