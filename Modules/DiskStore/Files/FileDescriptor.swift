internal import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// An open file, closed when nobody holds it any more: so no path, error or cancellation leaks one.
///
/// Opened without following a link in the last place, without waiting (a pipe that somebody put there would wait for ever), and
/// not inherited.
final class FileDescriptor: Sendable {
  enum Access { case read, readAndWrite, createNew, folder }

  let raw: Int32
  /// Reads what the system has in memory, where nothing else is to be read; nil: what there is.
  private let readCached: (@Sendable (Int32, UnsafeMutableRawBufferPointer, Int64) -> Result<Int, SystemError>)?

  init(_ path: UnsafePointer<CChar>, _ access: Access) throws(SystemError) {
    raw = try Self.opened(path, access)
    readCached = nil
  }

  /// A file that is read as far as the system has it in memory. Whatever would wait throws ``SystemError/wouldBlock``.
  init(cached path: UnsafePointer<CChar>, _ calls: FileCalls) throws(SystemError) {
    raw = try calls.openCached(path).get()
    readCached = calls.readCached
  }

  /// Whether nobody may wait who reads this file.
  var isCachedAlone: Bool { readCached != nil }

  private static func opened(_ path: UnsafePointer<CChar>, _ access: Access) throws(SystemError) -> Int32 {
    let flags: Int32 =
      switch access {
      case .read: O_RDONLY
      case .readAndWrite: O_RDWR
      case .createNew: O_RDWR | O_CREAT | O_EXCL
      case .folder: O_RDONLY | O_DIRECTORY
      }
    var descriptor: Int32
    repeat {
      descriptor = open(path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0o600)
    } while descriptor < 0 && errno == EINTR
    guard descriptor >= 0 else { throw .last }
    return descriptor
  }

  /// A folder in an open one.
  init(_ name: UnsafePointer<CChar>, in folder: Int32) throws(SystemError) {
    var descriptor: Int32
    repeat {
      descriptor = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    } while descriptor < 0 && errno == EINTR
    guard descriptor >= 0 else { throw .last }
    raw = descriptor
    readCached = nil
  }

  /// A text that is handed to C as an argument is copied first; so it is not.
  convenience init(_ path: String, _ access: Access) throws(SystemError) {
    try self.init(path.withCString { path in Result { () throws(SystemError) in try Self.opened(path, access) } }.get())
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

  /// Fills `buffer` from `offset` on; returns fewer bytes than it holds only where the file ends.
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

  /// Takes the file's lock among processes and among openings of one process; it is let go of with the descriptor, but for a
  /// child process that is being made at that moment and has a copy of it: who unlocks doesn't depend on that. Where the file
  /// system has no locks, none is taken.
  ///
  /// - Throws: ``SystemError/wouldBlock`` when somebody else holds it all the time: who is suspended never lets go.
  func waitForLock(_ calls: FileCalls) throws(SystemError) {
    for attempt in 1...calls.lockAttempts {
      guard tryLocking() == .wouldBlock else { return }
      if attempt < calls.lockAttempts { calls.pause() }
    }
    throw .wouldBlock
  }

  /// - Returns: false when somebody else holds the lock, or when the file system has none.
  @discardableResult
  func lockExclusively() -> Bool { tryLocking() == nil }

  /// Takes the lock together with others who do, unless somebody has it exclusively.
  func lockShared() { _ = lock(LOCK_SH | LOCK_NB) }

  /// Takes the lock if it is free. ``SystemError/wouldBlock``: somebody else holds it; other errors mean that the file system has
  /// no locks.
  func tryLocking() -> SystemError? { lock(LOCK_EX | LOCK_NB) }

  private func lock(_ operation: Int32) -> SystemError? {
    var result: Int32
    repeat { result = flock(raw, operation) } while result != 0 && errno == EINTR
    return result == 0 ? nil : .last
  }

  /// Lets go of the lock, whoever has copies of the descriptor.
  func unlock() { _ = flock(raw, LOCK_UN) }

  /// Sets the time of the last use, which is what the file's modification time stands for here.
  @discardableResult
  func setModified(_ time: Timestamp) -> Bool {
    withUnsafeTemporaryAllocation(of: timespec.self, capacity: 2) { times in
      times.initialize(repeating: timespec(time))
      return futimens(raw, times.baseAddress) == 0
    }
  }
}
