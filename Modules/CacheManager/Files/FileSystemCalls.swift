#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The system calls that write a caller's file and can fail for reasons that a test can't bring about: a seam, so that it can
/// bring them about all the same. Each returns the error's number; nil, or a count, when it went well.
package struct FileSystemCalls: Sendable {
  /// The number of a system call's failure.
  package struct Failure: Error {
    package var number: Int32

    package init(number: Int32) { self.number = number }
  }

  /// Writes at an offset; may write less.
  package var write: @Sendable (Int32, UnsafeRawBufferPointer, Int64) -> Result<Int, Failure>
  /// Makes the content durable.
  package var sync: @Sendable (Int32) -> Failure?
  /// Moves a file to where another may be, which it replaces.
  package var rename: @Sendable (_ from: String, _ to: String) -> Failure?
  /// Closes the file; it may wait for the disk.
  package var close: @Sendable (Int32) -> Void

  /// The system's own.
  package static let system = FileSystemCalls(
    write: { descriptor, bytes, offset in
      let count = pwrite(descriptor, bytes.baseAddress, bytes.count, off_t(offset))
      return count >= 0 ? .success(count) : .failure(Failure(number: errno))
    },
    sync: { descriptor in
      #if canImport(Darwin)
      // `fsync` leaves the bytes in the drive's own cache there.
      if fcntl(descriptor, F_FULLFSYNC) == 0 { return nil }
      #endif
      return fsync(descriptor) == 0 ? nil : Failure(number: errno)
    },
    rename: { from, to in move(from, to) == 0 ? nil : Failure(number: errno) },
    close: { letGo(of: $0) })
}

// Outside the type, where the names mean the system's functions and not the members.
private func move(_ from: String, _ to: String) -> Int32 { rename(from, to) }
private func letGo(of descriptor: Int32) { close(descriptor) }
