#ifndef C_ALLOCATION_COUNT_H
#define C_ALLOCATION_COUNT_H

#include <stdint.h>

/// Returns the number of malloc calls of the current thread so far, or 0 if malloc cannot be replaced.
uint64_t etagere_allocation_count(void);

/// Starts counting the malloc calls of all threads, from 0.
void etagere_count_allocations_of_all_threads(void);

/// Stops counting the calls of all threads and returns their number, or 0 if malloc cannot be replaced.
uint64_t etagere_allocations_of_all_threads(void);

#endif
