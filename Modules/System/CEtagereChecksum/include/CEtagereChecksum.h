#ifndef CCHECKSUM_H
#define CCHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Continues a CRC32C (Castagnoli, RFC 3720 appendix B.4) over `count` bytes. `crc` is 0 for a new one. Uses the
/// processor's CRC instruction if it has one, and its 512-bit multiplication where that is faster.
uint32_t cchecksum_crc32c(uint32_t crc, const void *bytes, size_t count);

/// Computes the CRC32C with only the CRC instruction, if the processor has one.
uint32_t cchecksum_crc32c_instruction(uint32_t crc, const void *bytes, size_t count);

/// Computes the CRC32C with only tables.
uint32_t cchecksum_crc32c_portable(uint32_t crc, const void *bytes, size_t count);

/// Returns whether `cchecksum_crc32c` uses the processor's instruction.
bool cchecksum_uses_hardware(void);

/// Returns the flag of `open` that leaves the access time of a file unchanged, or 0 if the system has none. Swift does not
/// import this flag. Linux allows it for the owner of the file and for a process with `CAP_FOWNER`, and otherwise returns
/// `EPERM`.
///
/// Without the flag, the first read after a write changes the inode, and can wait while the file system commits its journal.
int cchecksum_no_access_time(void);

/// Opens a file for reading, like `openat`, if the whole path lookup is cached in memory. Otherwise returns -1 with
/// `errno`: `EAGAIN` if the disk is needed, `ENOSYS` if the system has no such call (Linux has it since 5.12).
int cchecksum_open_cached(int folder, const char *path);

/// Reads, like `pread`, the part of a file that is cached in memory. Otherwise returns -1 with `errno`: `EAGAIN` if
/// nothing is cached, `EOPNOTSUPP` if the file system does not support the call.
ptrdiff_t cchecksum_read_cached(int file, void *bytes, size_t count, int64_t offset);

#ifdef __cplusplus
}
#endif

#endif
