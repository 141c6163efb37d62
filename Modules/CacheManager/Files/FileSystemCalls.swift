#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The system calls that write a caller's file. Tests replace them, to cause failures that they cannot cause otherwise. Each call
/// returns the number of its error, or `nil` or a count if it succeeds.
package struct FileSystemCalls: Sendable {
  /// The number of a system call's error.
  package struct Failure: Error {
    package var number: Int32

    package init(number: Int32) { self.number = number }
  }

  /// Writes at an offset. It may write fewer bytes than it is given.
  package var write: @Sendable (Int32, UnsafeRawBufferPointer, Int64) -> Result<Int, Failure>
  /// Makes the content durable.
  package var sync: @Sendable (Int32) -> Failure?
  /// Moves a file to a path, and replaces a file that is there.
  package var rename: @Sendable (_ from: String, _ to: String) -> Failure?
  /// Closes the file. It may wait for the disk.
  package var close: @Sendable (Int32) -> Void

  /// The calls of the system.
  package static let system = FileSystemCalls(
    write: { descriptor, bytes, offset in
      let count = pwrite(descriptor, bytes.baseAddress, bytes.count, off_t(offset))
      return count >= 0 ? .success(count) : .failure(Failure(number: errno))
    },
    sync: { descriptor in
      #if canImport(Darwin)
      // There, `fsync` leaves the bytes in the drive's own cache.
      if fcntl(descriptor, F_FULLFSYNC) == 0 { return nil }
      #endif
      return fsync(descriptor) == 0 ? nil : Failure(number: errno)
    },
    rename: { from, to in move(from, to) == 0 ? nil : Failure(number: errno) },
    close: { letGo(of: $0) })
}

// Outside the type, because the names mean the system's functions here and not the members.
private func move(_ from: String, _ to: String) -> Int32 { rename(from, to) }
private func letGo(of descriptor: Int32) { close(descriptor) }
