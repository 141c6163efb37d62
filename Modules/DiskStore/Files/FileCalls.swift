internal import CChecksum
internal import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The system calls that can fail for reasons that a test cannot cause on a real disk. A test replaces them to inject such
/// failures.
package struct FileCalls: Sendable {
  /// Writes at an offset, possibly fewer bytes than given.
  package var write: @Sendable (Int32, UnsafeRawBufferPointer, Int64) -> Result<Int, SystemError>
  /// Overwrites a counter in place, which needs no space.
  package var writeCounter: @Sendable (Int32, UnsafeRawBufferPointer, Int64) -> Result<Int, SystemError>
  /// Takes the `flock` lock of a file, in the given mode.
  package var lock: @Sendable (Int32, _ mode: Int32) -> SystemError?
  /// Makes the content of a file or folder durable.
  package var sync: @Sendable (Int32) -> SystemError?
  /// Moves a file and replaces the one at the target.
  package var rename: @Sendable (_ from: String, _ to: String) -> SystemError?
  /// Removes a file.
  package var unlink: @Sendable (String) -> SystemError?
  /// Removes a file in an open folder.
  package var unlinkInside: @Sendable (_ folder: Int32, _ name: UnsafePointer<CChar>) -> SystemError?
  /// Whether this process can change a folder's contents. A missing folder is assumed to be creatable.
  package var isWritable: @Sendable (String) -> Bool
  /// Opens a file for reading, by a path from an open folder, if that needs no wait for the disk.
  package var openCached: @Sendable (_ folder: Int32, UnsafePointer<CChar>) -> Result<Int32, SystemError>
  /// Reads bytes at an offset that the system has in memory, possibly fewer than requested.
  package var readCached: @Sendable (Int32, UnsafeMutableRawBufferPointer, Int64) -> Result<Int, SystemError>
  /// Waits 20 ms for a lock that is taken.
  package var pause: @Sendable () -> Void
  /// The number of attempts to take a lock, with a pause between two of them: two seconds in all.
  package var lockAttempts = 100

  /// The real system calls.
  package static let system = FileCalls(
    write: { descriptor, bytes, offset in writeFile(descriptor, bytes, offset) },
    writeCounter: { descriptor, bytes, offset in writeFile(descriptor, bytes, offset) },
    lock: { descriptor, mode in lockFile(descriptor, mode) },
    sync: { descriptor in
      #if canImport(Darwin)
      // On Apple platforms `fsync` leaves the bytes in the drive's own cache.
      if fcntl(descriptor, F_FULLFSYNC) == 0 { return nil }
      #endif
      return fsync(descriptor) == 0 ? nil : .last
    },
    rename: { from, to in renameFile(from, to) },
    unlink: { path in unlinkFile(path) },
    unlinkInside: { folder, name in unlinkat(folder, name, 0) == 0 ? nil : .last },
    isWritable: { path in path.withCString { access($0, W_OK) } == 0 || errno == ENOENT || errno == ENOTDIR },
    openCached: { folder, path in
      let descriptor = cchecksum_open_cached(folder, path)
      return descriptor >= 0 ? .success(descriptor) : .failure(.last)
    },
    readCached: { descriptor, bytes, offset in
      let count = cchecksum_read_cached(descriptor, bytes.baseAddress, bytes.count, offset)
      return count >= 0 ? .success(count) : .failure(.last)
    },
    pause: { usleep(20_000) })

  /// Writes all of `bytes`, despite interruptions and short writes.
  func writeAll(_ file: FileDescriptor, _ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) {
    var rest = bytes
    var place = offset
    while !rest.isEmpty {
      switch write(file.raw, rest, place) {
      case .success(0): throw .ioFailure
      case .success(let count):
        rest = rest.part(count..<rest.count)
        place += Int64(count)
      case .failure(.interrupted): continue
      case .failure(let error): throw error
      }
    }
  }

  func writeAll(_ file: FileDescriptor, _ bytes: [UInt8], at offset: Int64) throws(SystemError) {
    try bytes.withUnsafeBytes { bytes in
      Result { () throws(SystemError) in try writeAll(file, bytes, at: offset) }
    }.get()
  }

  func synchronize(_ file: FileDescriptor) throws(SystemError) {
    while let error = sync(file.raw) {
      if error != .interrupted { throw error }
    }
  }
}

// Declared outside the type, where the names refer to the system's functions.
private func renameFile(_ from: String, _ to: String) -> SystemError? {
  from.withCString { from in to.withCString { rename(from, $0) } } == 0 ? nil : .last
}

private func writeFile(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ offset: Int64) -> Result<Int, SystemError> {
  let count = pwrite(descriptor, bytes.baseAddress, bytes.count, off_t(offset))
  return count >= 0 ? .success(count) : .failure(.last)
}

private func lockFile(_ descriptor: Int32, _ mode: Int32) -> SystemError? {
  var result: Int32
  repeat { result = flock(descriptor, mode) } while result != 0 && errno == EINTR
  return result == 0 ? nil : .last
}

private func unlinkFile(_ path: String) -> SystemError? { path.withCString { unlink($0) } == 0 ? nil : .last }

/// The error number of a failed system call.
package struct SystemError: Error, Hashable, Sendable {
  package let number: Int32

  package init(number: Int32) { self.number = number }

  /// The error number of the call that has just failed.
  static var last: SystemError { SystemError(number: errno) }

  static let interrupted = SystemError(number: EINTR)
  static let notFound = SystemError(number: ENOENT)
  static let exists = SystemError(number: EEXIST)
  static let isLink = SystemError(number: ELOOP)
  static let notPermitted = SystemError(number: EPERM)
  static let notAFolder = SystemError(number: ENOTDIR)
  static let wouldBlock = SystemError(number: EWOULDBLOCK)
  static let outOfMemory = SystemError(number: ENOMEM)
  static let ioFailure = SystemError(number: EIO)
  package static let diskFull = SystemError(number: ENOSPC)
  package static let readOnly = SystemError(number: EROFS)

  /// Whether the file system does not support hard links.
  var meansNoLinks: Bool { [EPERM, ENOTSUP, EOPNOTSUPP, ENOSYS, EMLINK].contains(number) }

  /// Whether the system lacks a call, or a sandbox or the file system refuses it.
  var meansNoSuchCall: Bool { [ENOSYS, EPERM, EOPNOTSUPP, ENOTSUP, EINVAL, E2BIG].contains(number) }

  /// Whether the disk or the quota is full.
  var meansDiskFull: Bool { number == ENOSPC || number == EDQUOT }

  /// Returns the error of a failed `action` on the file at `path`.
  func error(_ action: String, _ path: String) -> CacheError {
    // A lock is the only thing that the store's calls wait for.
    let text = self == .wouldBlock ? "another process holds its lock" : String(cString: strerror(number))
    return CacheError(
      meansDiskFull ? .diskFull : .fileSystem, reason: "could not \(action): \(text) (\(number))", path: path, errno: number)
  }
}
