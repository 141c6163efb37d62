import CacheCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Lets go of a file's lock. Closing alone does not, while a child process is being made that has a copy of the descriptor.
func unlockAndClose(_ descriptor: Int32) {
  _ = flock(descriptor, LOCK_UN)
  close(descriptor)
}

extension TemporaryFolder {
  /// What a process that changes names raises before it (`started`) and after it (`finished`), as
  /// `Modules/DiskStore/DiskStore.docc/DiskFormat.md` says.
  enum Counter: Int { case started = 64, finished = 128 }

  func raise(_ counter: Counter) throws {
    let descriptor = open(root + "/generation", O_RDWR | O_CLOEXEC)
    defer { close(descriptor) }
    var number: UInt64 = 0
    guard pread(descriptor, &number, 8, off_t(counter.rawValue)) == 8 else {
      throw CacheError(.fileSystem, reason: "no counters")
    }
    number += 1
    guard pwrite(descriptor, &number, 8, off_t(counter.rawValue)) == 8 else {
      throw CacheError(.fileSystem, reason: "no counters")
    }
  }

  /// Puts an entry's file into its place as another process does.
  func place(_ data: Data, _ path: String) throws {
    try raise(.started)
    try put(data, path)
    try raise(.finished)
  }
}
