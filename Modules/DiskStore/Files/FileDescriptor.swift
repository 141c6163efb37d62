internal import CChecksum
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
  /// Reads bytes that the system has in memory, if the file may be read only in this way.
  private let readCached: (@Sendable (Int32, UnsafeMutableRawBufferPointer, Int64) -> Result<Int, SystemError>)?

  /// Opens a file, by a path from an open folder if there is one.
  init(_ path: UnsafePointer<CChar>, _ access: Access, in folder: FileDescriptor? = nil) throws(SystemError) {
    raw = try Self.opened(path, access, in: folder)
    readCached = nil
  }

  /// Opens a file to read only the bytes that the system has in memory. A read that would wait throws ``SystemError/wouldBlock``.
  init(cached path: UnsafePointer<CChar>, in folder: FileDescriptor?, _ calls: FileCalls) throws(SystemError) {
    raw = try calls.openCached(folder?.raw ?? AT_FDCWD, path).get()
    readCached = calls.readCached
  }

  /// Whether reads of this file must not wait.
  var isCachedAlone: Bool { readCached != nil }

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
    return descriptor
  }

  private static func opened(_ path: UnsafePointer<CChar>, _ flags: Int32, in folder: Int32) -> Int32 {
    var descriptor: Int32
    repeat {
      descriptor = openat(folder, path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0o600)
    } while descriptor < 0 && errno == EINTR
    return descriptor
  }

  /// Opens a folder inside an open folder.
  init(_ name: UnsafePointer<CChar>, in folder: Int32) throws(SystemError) {
    var descriptor: Int32
    repeat {
      descriptor = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    } while descriptor < 0 && errno == EINTR
    guard descriptor >= 0 else { throw .last }
    raw = descriptor
    readCached = nil
  }

  /// The implicit conversion of a string argument to a C string would copy it first.
  convenience init(_ path: String, _ access: Access) throws(SystemError) {
    try self.init(path.withCString { path in Result { () throws(SystemError) in try Self.opened(path, access, in: nil) } }.get())
  }

  private init(_ raw: Int32) {
    self.raw = raw
    readCached = nil
  }

  deinit { close(raw) }

  func status() throws(SystemError) -> FileStatus {
    var status = stat()
    guard fstat(raw, &status) == 0 else { throw .last }
    return FileStatus(status)
  }

  /// Fills `buffer` with bytes from `offset` on. Returns fewer bytes only at the end of the file.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) -> Int {
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

  /// Reads `count` bytes from `offset` on.
  init(_ file: FileDescriptor, at offset: Int64, count: Int) throws(SystemError) {
    // `malloc`, because Swift's own allocation is slower with a stated alignment.
    guard let start = malloc(max(count, 1)) else { throw .outOfMemory }
    do throws(SystemError) {
      self.count = try file.read(into: UnsafeMutableRawBufferPointer(start: start, count: count), at: offset)
      self.start = start
    } catch {
      free(start)
      throw error
    }
  }

  deinit { free(start) }

  func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
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
