internal import CEtagereChecksum
internal import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// An open file that is closed with its last reference, so no error or cancellation leaks a descriptor.
///
/// It is opened without following a final link, without blocking (a pipe in its place would block forever), and is not inherited
/// by child processes.
final class FileDescriptor: Sendable {
  enum Access { case read, readAndWrite, createNew, folder }

  let raw: Int32

  /// Opens a file, by a path from an open folder if there is one.
  init(_ path: UnsafePointer<CChar>, _ access: Access, in folder: FileDescriptor? = nil) throws(SystemError) {
    raw = try Self.opened(path, access, in: folder)
  }

  /// Opens a file if that needs no wait for the disk. Otherwise throws ``SystemError/wouldBlock``.
  init(cached path: UnsafePointer<CChar>, in folder: FileDescriptor?, _ calls: FileCalls) throws(SystemError) {
    raw = try calls.openCached(folder?.raw ?? AT_FDCWD, path).get()
  }

  private static func opened(
    _ path: UnsafePointer<CChar>, _ access: Access, in folder: FileDescriptor?
  ) throws(SystemError) -> Int32 {
    let folder = folder?.raw ?? AT_FDCWD
    let flags: Int32 =
      switch access {
      case .read: O_RDONLY | cchecksum_no_access_time()
      case .readAndWrite: O_RDWR
      case .createNew: O_RDWR | O_CREAT | O_EXCL
      case .folder: O_RDONLY | O_DIRECTORY
      }
    var descriptor = opened(path, flags, in: folder)
    // The file belongs to another user, so its access time changes.
    if descriptor < 0, access == .read, errno == EPERM { descriptor = opened(path, O_RDONLY, in: folder) }
    guard descriptor >= 0 else { throw .last }
    if access == .createNew { FileProtection.permitBackground(descriptor) }
    return descriptor
  }

  private static func opened(_ path: UnsafePointer<CChar>, _ flags: Int32, in folder: Int32) -> Int32 {
    var descriptor: Int32
    repeat {
      descriptor = openat(folder, path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0o600)
    } while descriptor < 0 && errno == EINTR
    return descriptor
  }

  /// The implicit conversion of a string argument to a C string would copy it first.
  convenience init(_ path: String, _ access: Access) throws(SystemError) {
    try self.init(path.withCString { path in Result { () throws(SystemError) in try Self.opened(path, access, in: nil) } }.get())
  }

  private init(_ raw: Int32) { self.raw = raw }

  deinit { close(raw) }

  func status() throws(SystemError) -> FileStatus {
    var status = stat()
    guard fstat(raw, &status) == 0 else { throw .last }
    return FileStatus(status)
  }

  /// Fills `buffer` with bytes from `offset` on. Returns fewer bytes only at the end of the file.
  ///
  /// - Parameter readCached: The call that reads only bytes that the system has in memory, or `nil` to wait for the disk. A read
  ///   that would wait throws ``SystemError/wouldBlock``.
  func read(
    into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, _ readCached: FileCalls.CachedRead? = nil
  ) throws(SystemError) -> Int {
    guard let start = buffer.baseAddress else { return 0 }
    var done = 0
    while done < buffer.count {
      if let readCached {
        let count = try readCached(raw, UnsafeMutableRawBufferPointer(rebasing: buffer[done...]), offset + Int64(done)).get()
        if count == 0 { break }
        done += count
        continue
      }
      let count = pread(raw, start + done, buffer.count - done, off_t(offset + Int64(done)))
      if count == 0 { break }
      if count > 0 {
        done += count
      } else if errno != EINTR {
        throw .last
      }
    }
    return done
  }

  /// Takes the file's lock, which excludes other processes and other descriptors of this process. It does nothing if the file
  /// system has no locks.
  ///
  /// Closing the descriptor releases the lock, unless a child process that is being spawned at that moment has a copy of it.
  /// Unlocking explicitly avoids that.
  ///
  /// - Throws: ``SystemError/wouldBlock`` if the lock stays taken. A suspended process never releases its lock.
  func waitForLock(_ calls: FileCalls) throws(SystemError) {
    for attempt in 1...calls.lockAttempts {
      guard tryLocking() == .wouldBlock else { return }
      if attempt < calls.lockAttempts { calls.pause() }
    }
    throw .wouldBlock
  }

  /// - Returns: `false` if the lock is taken or the file system has no locks.
  @discardableResult
  func lockExclusively() -> Bool { tryLocking() == nil }

  /// Takes a shared lock unless another descriptor has an exclusive one. Returns the same errors as ``tryLocking(_:)``.
  func lockShared(_ calls: FileCalls) -> SystemError? { calls.lock(raw, LOCK_SH | LOCK_NB) }

  /// Takes the lock if it is free. Returns ``SystemError/wouldBlock`` if it is taken, or another error if the file system has no
  /// locks.
  func tryLocking(_ calls: FileCalls = .system) -> SystemError? { calls.lock(raw, LOCK_EX | LOCK_NB) }

  /// Takes the lock of a file that another process may remove while it is not locked. Returns `false` if the lock is taken, or
  /// the file is no longer the one at `path`.
  func takeLock(ofFileAt path: String) -> Bool {
    guard tryLocking() != .wouldBlock, let identity = try? status().identity else { return false }
    return (try? FileStatus(path: path))?.identity == identity
  }

  /// Releases the lock, even if other processes have copies of the descriptor.
  func unlock() { _ = flock(raw, LOCK_UN) }

  /// Sets the modification time, which records the last use.
  @discardableResult
  func setModified(_ time: Timestamp) -> Bool {
    withUnsafeTemporaryAllocation(of: timespec.self, capacity: 2) { times in
      times.initialize(repeating: timespec(time))
      return futimens(raw, times.baseAddress) == 0
    }
  }
}

/// Bytes of a file, in memory that was not zeroed before the read.
// Proof of `@unchecked Sendable`: only `init` writes the memory, and afterwards it is only read.
final class FileMemory: @unchecked Sendable {
  /// The size up to which copying is cheaper than retaining the whole memory.
  private static let copyLimit = 4096

  private let start: UnsafeMutableRawPointer
  /// The number of bytes that could be read, which is less than requested at the end of the file.
  let count: Int

  /// Reads `count` bytes from `offset` on: see ``FileDescriptor/read(into:at:_:)``.
  init(
    _ file: FileDescriptor, at offset: Int64, count: Int, _ readCached: FileCalls.CachedRead? = nil
  ) throws(SystemError) {
    // `malloc`, because Swift's own allocation is slower with a stated alignment.
    guard let start = malloc(max(count, 1)) else { throw .outOfMemory }
    do throws(SystemError) {
      self.count = try file.read(into: UnsafeMutableRawBufferPointer(start: start, count: count), at: offset, readCached)
      self.start = start
    } catch {
      free(start)
      throw error
    }
  }

  deinit { free(start) }

  func withBytes<Result, Failure: Error>(_ body: (UnsafeRawBufferPointer) throws(Failure) -> Result) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(start: start, count: count))
  }

  /// Returns a range of the memory as `Data` with indices from zero. Large ranges are not copied.
  func data(_ range: Range<Int>) -> Data {
    guard !range.isEmpty else { return Data() }
    if range.count <= Self.copyLimit { return Data(bytes: start + range.lowerBound, count: range.count) }
    return Data(
      bytesNoCopy: start + range.lowerBound, count: range.count, deallocator: .custom { _, _ in withExtendedLifetime(self) {} })
  }
}

/// The system calls that can fail for reasons that a test cannot cause on a real disk. A test replaces them to inject such
/// failures.
package struct FileCalls: Sendable {
  package typealias CachedRead = @Sendable (Int32, UnsafeMutableRawBufferPointer, Int64) -> Result<Int, SystemError>

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
  package var readCached: CachedRead
  /// Waits 20 ms for a lock that is taken.
  package var pause: @Sendable () -> Void
  /// The number of attempts to take a lock, with a pause between two of them: two seconds in all.
  package var lockAttempts = 100
  /// The system that suspends this process, or `nil` if there is none.
  package var suspension = SuspensionSystem.current
  /// Returns a text that differs after each start of the system, or `nil` if the system does not tell.
  package var bootID: @Sendable () -> String? = { BootID.name }
  /// Whether no lock may be taken because the process can be suspended, or `nil` if that never happens.
  var refusesChanges: (@Sendable () -> Bool)?

  /// Whether no lock may be taken, because the process can be suspended with it.
  var isSuspended: Bool { refusesChanges?() ?? false }

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
  /// The version of a folder that a later version of this package has made, or `nil` for the error of a system call.
  private(set) var laterVersion: UInt32?

  package init(number: Int32) { self.number = number }

  /// Returns the error for a folder that must not be read or changed.
  static func laterFolder(version: UInt32) -> SystemError {
    var error = SystemError(number: ENOTSUP)
    error.laterVersion = version
    return error
  }

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
  /// The process can be suspended, so the store must not take a lock.
  static let suspended = SystemError(number: ECANCELED)
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
    if let laterVersion {
      let cause = "the folder has version \(laterVersion), but this store supports only version \(FolderKey.version)"
      return CacheError(.unsupported, reason: "could not \(action): \(cause)", path: path)
    }
    if self == .suspended {
      return CacheError(
        .storeUnavailable, reason: "could not \(action): the app can be suspended, or the folder is locked", path: path,
        errno: number)
    }
    // A lock is the only thing that the store's calls wait for.
    let text = self == .wouldBlock ? "another process holds its lock" : String(cString: strerror(number))
    return CacheError(
      meansDiskFull ? .diskFull : .fileSystem, reason: "could not \(action): \(text) (\(number))", path: path, errno: number)
  }
}
