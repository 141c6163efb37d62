internal import CacheCore
internal import Dispatch

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A file that is written beside its destination, and then replaces it in one step.
///
/// Until then, the file at the destination stays unchanged. A killed process leaves a file that is named `.etagere-….part`. Only
/// one task at a time uses a partial file, except for the members that state otherwise.
final class PartialFile: Sendable {
  private struct State {
    /// Bytes that were accepted and not written yet, so that many small chunks become one call.
    var pending = Data()
    var written: Int64 = 0
    var isSealed = false
    /// Whether the partial file still has its own name.
    var isNamed = true
  }

  private static let batch = 256 << 10

  /// The path of the destination.
  let target: String
  private let path: String
  private let descriptor: Int32
  private let isDurable: Bool
  private let calls: FileSystemCalls
  private let queue: DispatchQueue
  private let state = Lock(State())

  /// Creates an empty partial file in the folder of the destination.
  ///
  /// - Throws: `CacheError.Code.fileSystem` or `CacheError.Code.diskFull`, with path and number. Reasons are a missing folder, a
  ///   folder at the destination, or missing permission.
  static func open(_ destination: FileDestination) async throws(CacheError) -> PartialFile {
    let target = try destination.path()
    let queue = FileQueues.next()
    return try await queue.perform { () throws(CacheError) in try PartialFile(target, destination, queue) }
  }

  private init(_ target: String, _ destination: FileDestination, _ queue: DispatchQueue) throws(CacheError) {
    guard !target.hasSuffix("/") else { throw Self.error(EISDIR, "write the file", target) }
    let slash = target.lastIndex(of: "/")
    let path = "\(target[..<(slash.map { target.index(after: $0) } ?? target.startIndex)]).etagere-\(Revision.random()).part"
    var status = stat()
    let isThere = stat(target, &status) == 0
    if isThere, status.st_mode & S_IFMT == S_IFDIR { throw Self.error(EISDIR, "write the file", target) }
    var descriptor: Int32
    repeat {
      descriptor = systemOpen(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666)
    } while descriptor < 0 && errno == EINTR
    guard descriptor >= 0 else { throw Self.error(errno, "create a temporary file beside it", target) }
    // The new file gets the permissions of the file that it replaces. If they cannot be set, the file is as private as any new
    // file.
    if isThere { _ = fchmod(descriptor, status.st_mode & 0o777) }
    self.target = target
    self.path = path
    self.descriptor = descriptor
    self.queue = queue
    isDurable = destination.isDurable
    calls = destination.calls
  }

  deinit {
    // The last reference may be released on any thread, including the main thread, and both calls may wait for the disk.
    let isNamed = state.withLock { $0.isNamed }
    queue.async { [path, descriptor, calls] in
      if isNamed { _ = unlink(path) }
      calls.close(descriptor)
    }
  }

  private static func error(_ number: Int32, _ action: String, _ path: String) -> CacheError {
    let isFull = number == ENOSPC || number == EDQUOT
    return CacheError(
      isFull ? .diskFull : .fileSystem, reason: "could not \(action): \(String(cString: strerror(number))) (\(number))",
      path: path, errno: number)
  }

  // MARK: Writing

  /// The number of accepted bytes.
  var count: Int64 { state.withLock { $0.written + Int64($0.pending.count) } }

  /// Whether the content is final. Any task may read it at any time.
  var isSealed: Bool { state.withLock { $0.isSealed } }

  /// Seals the file, because its content is the result of a load. Later writes have no effect.
  func seal() { state.withLock { $0.isSealed = true } }

  /// Removes the content.
  func restart() async throws(CacheError) {
    let wasWritten = state.withLock { state in
      guard !state.isSealed else { return false }
      defer { (state.pending, state.written) = (Data(), 0) }
      return state.written > 0
    }
    guard wasWritten else { return }
    try await queue.perform { [self] () throws(CacheError) in
      guard ftruncate(descriptor, 0) == 0 else { throw Self.error(errno, "empty its temporary file", target) }
    }
  }

  /// Appends bytes. Returns when they are written, or when they are buffered if they are few.
  func write(_ chunk: Data) async throws(CacheError) {
    let isFull = state.withLock { state in
      guard !state.isSealed else { return false }
      // A large chunk is written without a copy.
      if state.pending.isEmpty { state.pending = chunk } else { state.pending.append(chunk) }
      return state.pending.count >= Self.batch
    }
    if isFull { try await flush() }
  }

  /// Writes the buffered bytes.
  func flush() async throws(CacheError) {
    let (batch, offset) = state.withLock { state in
      defer {
        state.written += Int64(state.pending.count)
        state.pending = Data()
      }
      return (state.pending, state.written)
    }
    guard !batch.isEmpty else { return }
    try await queue.perform { [self] () throws(CacheError) in
      if let failure = batch.withUnsafeBytes({ writeAll($0, at: offset) }) {
        throw Self.error(failure.number, "write the file", target)
      }
    }
  }

  private func writeAll(_ bytes: UnsafeRawBufferPointer, at offset: Int64) -> FileSystemCalls.Failure? {
    var done = 0
    while done < bytes.count {
      switch calls.write(descriptor, UnsafeRawBufferPointer(rebasing: bytes[done...]), offset + Int64(done)) {
      case .success(0): return FileSystemCalls.Failure(number: EIO)
      case .success(let count): done += count
      case .failure(let failure):
        if failure.number != EINTR { return failure }
      }
    }
    return nil
  }

  // MARK: The end

  /// Copies the content of another partial file, which is complete.
  func copy(_ other: PartialFile) async throws(CacheError) {
    try await restart()
    let end = other.count
    var offset: Int64 = 0
    while offset < end {
      if Task.isCancelled { throw .cancelled }
      let chunk = try await other.read(Int(min(1 << 20, end - offset)), at: offset)
      try await write(chunk)
      offset += Int64(chunk.count)
    }
    try await flush()
  }

  private func read(_ count: Int, at offset: Int64) async throws(CacheError) -> Data {
    try await queue.perform { [self] () throws(CacheError) in
      var chunk = Data(count: count)
      var result: Int
      repeat {
        result = chunk.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, count, off_t(offset)) }
      } while result < 0 && errno == EINTR
      guard result > 0 else { throw Self.error(result < 0 ? errno : EIO, "read its temporary file", target) }
      return result == count ? chunk : chunk.prefix(result)
    }
  }

  /// Moves the partial file to its destination in one step.
  func place() async throws(CacheError) {
    try await queue.perform { [self] () throws(CacheError) in
      if isDurable, let failure = calls.sync(descriptor) { throw Self.error(failure.number, "flush the file", target) }
      if let failure = calls.rename(path, target) { throw Self.error(failure.number, "move the file into place", target) }
      state.withLock { $0.isNamed = false }
    }
  }

  /// Removes the partial file from its folder. Its bytes exist until the last task that reads or writes it has closed it.
  func discard() async {
    _ = try? await queue.perform { [self] () throws(CacheError) in
      let isNamed = state.withLock { state in
        defer { state.isNamed = false }
        return state.isNamed
      }
      if isNamed { _ = unlink(path) }
    }
  }
}

// Outside the type, where the name means the system's function and not the member.
private func systemOpen(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 { open(path, flags, mode) }

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

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
    rename: { from, to in move(from, to) == 0 ? nil : Failure(number: errno) },
    close: { closeDescriptor(of: $0) })
}

// Outside the type, where the names mean the system's functions and not the members.
private func move(_ from: String, _ to: String) -> Int32 { rename(from, to) }
private func closeDescriptor(of descriptor: Int32) { close(descriptor) }
