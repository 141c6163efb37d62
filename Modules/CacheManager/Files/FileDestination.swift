internal import CacheCore
internal import Dispatch

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

/// The file into which a caller loads a resource.
struct FileDestination: Sendable {
  var url: URL
  /// Whether the bytes are durable before the file appears.
  var isDurable: Bool
  var calls: FileSystemCalls

  /// The path of the file.
  ///
  /// - Throws: An error if the URL is not a valid file URL.
  func path() throws(CacheError) -> String {
    let path = url.path(percentEncoded: false)
    guard url.isFileURL, !path.isEmpty else {
      throw CacheError(
        .invalidConfiguration, reason: "the destination must be a file: URL, not '\(url.address)'")
    }
    guard !path.utf8.contains(0) else {
      throw CacheError(.invalidConfiguration, reason: "the path contains a zero byte", path: path)
    }
    return path
  }
}

/// The queues for the blocking calls that write callers' files. They never block the cooperative pool. There are several, so that
/// one slow file system does not delay all files.
enum FileQueues {
  private static let queues = (0..<4).map { DispatchQueue(label: "etagere.download.\($0)", qos: .utility) }
  private static let turn = Lock(0)

  /// Returns the queue for one file. Work on the file runs in the order in which it was submitted.
  static func next() -> DispatchQueue {
    queues[
      turn.withLock { turn in
        turn = (turn + 1) % queues.count
        return turn
      }]
  }
}

extension DispatchQueue {
  /// Runs blocking work in the queue, and waits for it without blocking.
  func perform<Value: Sendable>(
    _ work: @escaping @Sendable () throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    let result: Result<Value, CacheError> = await withCheckedContinuation { continuation in
      async { continuation.resume(returning: Result(catching: work)) }
    }
    return try result.get()
  }
}

/// The system calls that write a caller's file. Tests replace them to cause failures. Each call returns the number of its error,
/// or `nil` or a count if it succeeds.
package struct FileSystemCalls: Sendable {
  /// The number of a system call's error.
  package struct Failure: Error {
    package var number: Int32

    package init(number: Int32) { self.number = number }
  }

  /// Writes at an offset. It may write fewer bytes than requested.
  package var write: @Sendable (Int32, UnsafeRawBufferPointer, Int64) -> Result<Int, Failure>
  /// Makes the content durable.
  package var sync: @Sendable (Int32) -> Failure?
  /// Moves a file to a path, and replaces an existing file.
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
      // On Apple platforms, `fsync` leaves the bytes in the drive's own cache.
      if fcntl(descriptor, F_FULLFSYNC) == 0 { return nil }
      #endif
      return fsync(descriptor) == 0 ? nil : Failure(number: errno)
    },
    rename: { from, to in moveFile(from, to) ? nil : Failure(number: errno) },
    close: { closeFile($0) })

  /// Writes all bytes at an offset.
  func writeAll(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: Int64) -> Failure? {
    var done = 0
    while done < bytes.count {
      switch write(descriptor, UnsafeRawBufferPointer(rebasing: bytes[done...]), offset + Int64(done)) {
      case .success(0): return Failure(number: EIO)
      case .success(let count): done += count
      case .failure(let failure): if failure.number != EINTR { return failure }
      }
    }
    return nil
  }
}

/// The state of an open file.
enum FileStatus {
  /// Returns the state of a regular file that belongs to this user and has one name, or `nil` for any other file.
  ///
  /// Another user could have put a file into a shared folder: a link, a FIFO, or a file that the user still has open.
  static func own(_ descriptor: Int32) -> stat? {
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid(), status.st_nlink == 1
    else { return nil }
    return status
  }

  /// The time of the last modification, in seconds since 1970.
  static func modified(_ status: stat) -> Int {
    #if canImport(Darwin)
    status.st_mtimespec.tv_sec
    #else
    status.st_mtim.tv_sec
    #endif
  }
}

// The system's functions, under names that members of the types do not have.

/// Opens a file. Returns a negative number and sets `errno` if that fails.
func openFile(_ path: String, _ flags: Int32, _ mode: mode_t = 0) -> Int32 {
  while true {
    let descriptor = open(path, flags, mode)
    if descriptor >= 0 || errno != EINTR { return descriptor }
  }
}

/// Reads bytes at an offset, up to the end of the file. Returns the number of bytes, which is too small after an error.
func readFile(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int {
  var done = 0
  while done < buffer.count {
    let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
    let count = pread(descriptor, rest.baseAddress, rest.count, off_t(offset + Int64(done)))
    if count > 0 { done += count } else if count == 0 || errno != EINTR { break }
  }
  return done
}

func closeFile(_ descriptor: Int32) { close(descriptor) }

func moveFile(_ from: String, _ to: String) -> Bool { rename(from, to) == 0 }

/// Locks an open file against other loads, in this process and in others. Returns `false` if another load has locked it, or if
/// the file system has no locks.
func lockFile(_ descriptor: Int32) -> Bool { flock(descriptor, LOCK_EX | LOCK_NB) == 0 }

func unlockFile(_ descriptor: Int32) { _ = flock(descriptor, LOCK_UN) }
