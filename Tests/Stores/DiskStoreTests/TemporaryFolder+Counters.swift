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

/// Releases a file's lock. Closing alone does not while a child process that is being spawned has a copy of the descriptor.
func unlockAndClose(_ descriptor: Int32) {
  _ = flock(descriptor, LOCK_UN)
  close(descriptor)
}

extension TemporaryFolder {
  /// The counters that a process increments before (`started`) and after (`finished`) a change of names, by their offsets in the
  /// file.
  enum Counter: Int { case started = 64, finished = 128 }

  /// Increments a counter as another process would. A cache that considers itself the only one looks at the counters again when
  /// its lease is over, so a second cache must have the folder open.
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

  /// Moves an entry's file into place as another process would. A second cache must have the folder open.
  func place(_ data: Data, _ path: String) throws {
    try raise(.started)
    try put(data, path)
    try raise(.finished)
  }
}
