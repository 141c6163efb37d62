#ifndef CCHECKSUM_H
#define CCHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The CRC32C (Castagnoli, RFC 3720 appendix B.4) of `count` bytes, going on from `crc`; 0 starts a new one.
/// Uses the processor's instruction where there is one, and its multiplication of 512 bits where that is quicker.
uint32_t cchecksum_crc32c(uint32_t crc, const void *bytes, size_t count);

/// The same by the instruction alone, where there is one.
uint32_t cchecksum_crc32c_instruction(uint32_t crc, const void *bytes, size_t count);

/// The same by tables alone.
uint32_t cchecksum_crc32c_portable(uint32_t crc, const void *bytes, size_t count);

/// Whether `cchecksum_crc32c` uses the processor's instruction.
bool cchecksum_uses_hardware(void);

/// Reads a 64-bit counter in memory that processes share. `counter` is aligned to 8 bytes.
uint64_t cchecksum_shared_load(const void *counter);

/// Adds one to a 64-bit counter in memory that processes share and returns the new value. `counter` is aligned to 8 bytes.
uint64_t cchecksum_shared_increment(void *counter);

/// Adds to a 64-bit counter in memory that processes share. `counter` is aligned to 8 bytes.
void cchecksum_shared_add(void *counter, uint64_t difference);

/// Opens a file for reading if that takes no waiting for a disk: all on its way is in the system's memory. -1 with `errno` else: `EAGAIN` where it would have to wait,
/// `ENOSYS` where the system has no such call (Linux has it since 5.12).
int cchecksum_open_cached(const char *path);

/// Reads, as `pread` does, what of a file is in the system's memory. -1 with `errno` else: `EAGAIN` where nothing of it is, `EOPNOTSUPP` where the file system can't tell.
ptrdiff_t cchecksum_read_cached(int file, void *bytes, size_t count, int64_t offset);

#ifdef __cplusplus
}
#endif

#endif
