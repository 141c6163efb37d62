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
/// Until then, the file at the destination stays unchanged. The partial file has a name that depends only on the destination, so
/// a later load can continue it: see ``PartRecord``. If another load uses that name, or if files in the folder cannot be locked,
/// the partial file has a unique name, and cannot be continued. Only one task at a time uses a partial file, apart from a
/// transfer that has not noticed its end.
///
/// All writes run in one queue in the order of their offsets.
final class PartialFile: Sendable {
  /// The bytes of an earlier load, with which the body begins.
  struct Part: Sendable {
    let record: PartRecord
    let plan: ResumptionPlan
    /// The number of bytes in the file that may be used.
    let count: Int64
  }

  /// The open file. It changes only in the queue.
  private struct OpenFile {
    let path: String
    /// The path of the record, or `nil` for a file that cannot be continued.
    let recordPath: String?
    let descriptor: Int32
    /// The permissions of the complete file, or `nil` if the partial file has them.
    let permissions: mode_t?
  }

  private struct State {
    var file: OpenFile
    /// Bytes that were accepted and not written yet, so that many small chunks become one call.
    var pending = Data()
    /// Whether a job in the queue is about to write them.
    var isDraining = false
    /// The position in the current body up to which bytes were written or were already in the file.
    var written: Int64 = 0
    /// The bytes in the file and their record, or `nil` if they cannot be continued. They change only in the queue.
    var recorded: RecordedBytes?
    /// Whether the file may have bytes or a record that are not of the current body. They are removed before the first write.
    var isOutdated = false
    /// Whether the file may have bytes.
    var hasBytes = false
    var failure: CacheError?
    var isSealed = false
    /// Whether the partial file still has its own name.
    var isNamed = true
    /// The exclusive use of the name.
    var claim: OpenParts.Claim?

    var position: Int64 { written + Int64(pending.count) }
    /// The number of bytes of the recorded body that the file certainly has.
    var recordedCount: Int64 { recorded?.count ?? 0 }
    var isContinuable: Bool { (recordedCount > 0 || recorded?.unverifiedSize != nil) && failure == nil }
  }

  /// The number of buffered bytes from which they are written. Most chunks are as large, so little is lost if the process is
  /// killed while the body pauses.
  private static let batch = 16 << 10
  /// The number of buffered bytes from which a body waits until they are written.
  private static let bufferLimit = MemoryBudget.streamed / 2
  /// The number of blocks of a part that are verified at once. Other files share the queue.
  private static let verifiedBlocks = 8

  /// The path of the destination.
  let target: String
  private let isDurable: Bool
  private let calls: FileSystemCalls
  private let queue: DispatchQueue
  private let state: Lock<State>

  private init(
    _ target: String, _ path: String, _ opened: OpenedPart, record recordPath: String?, _ claim: OpenParts.Claim?,
    _ destination: FileDestination, _ queue: DispatchQueue
  ) {
    self.target = target
    self.queue = queue
    isDurable = destination.isDurable
    calls = destination.calls
    let file = OpenFile(
      path: path, recordPath: recordPath, descriptor: opened.descriptor, permissions: opened.permissions)
    state = Lock(State(file: file, recorded: opened.recorded, hasBytes: opened.recorded != nil, claim: claim))
  }

  deinit {
    // The last reference may be released on any thread, including the main thread, and both calls may wait for the disk.
    let (file, isUnused, recorded) = state.withLock { ($0.file, $0.isNamed && !$0.isContinuable, $0.recorded.take()) }
    queue.async { [calls] in
      if isUnused {
        unlink(file.path)
        if let recordPath = file.recordPath { unlink(recordPath) }
      }
      calls.close(file.descriptor)
      // Closes the record.
      _ = recorded
    }
  }

  private var file: OpenFile { state.withLock { $0.file } }

  private static func error(_ number: Int32, _ action: String, _ path: String) -> CacheError {
    let isFull = number == ENOSPC || number == EDQUOT
    return CacheError(
      isFull ? .diskFull : .fileSystem, reason: "could not \(action): \(String(cString: strerror(number))) (\(number))",
      path: path, errno: number)
  }

  // MARK: Opening

  /// Opens the partial file of a destination, with the bytes of an earlier load if there are any.
  ///
  /// - Parameters:
  ///   - parts: The partial files of the manager, or `nil` for a file that no later load continues.
  ///   - isEnding: Whether the load that opens the file was cancelled. Another load then waits for its end.
  /// - Throws: `CacheError.Code.fileSystem` or `CacheError.Code.diskFull`, with path and number. Reasons are a missing folder, a
  ///   folder at the destination, or missing permission.
  static func open(
    _ destination: FileDestination, in parts: OpenParts? = nil, isEnding: @escaping @Sendable () -> Bool = { false }
  ) async throws(CacheError) -> PartialFile {
    let target = try destination.path()
    let queue = FileQueues.next()
    let names = PartNames(target: target)
    let claim = try await parts?.claim(names.part, isEnding: isEnding)
    return try await queue.perform { () throws(CacheError) in
      guard !target.hasSuffix("/") else { throw error(EISDIR, "write the file", target) }
      var status = stat()
      let permissions = stat(target, &status) == 0 ? status.st_mode & 0o777 : nil
      if permissions != nil, status.st_mode & S_IFMT == S_IFDIR { throw error(EISDIR, "write the file", target) }
      let locks = destination.calls.canLock(in: names.folder)
      let file: PartialFile
      if locks, let claim, let opened = OpenedPart(names, permissions) {
        file = PartialFile(target, names.part, opened, record: names.record, claim, destination, queue)
      } else {
        let path = PartNames.unique(beside: target)
        guard let opened = OpenedPart(unique: path, permissions, locks: locks) else {
          throw error(errno, "create a temporary file beside it", target)
        }
        file = PartialFile(target, path, opened, record: nil, nil, destination, queue)
      }
      parts?.removeOldFiles(beside: names, locks: locks)
      return file
    }
  }

  // MARK: Continuing

  /// Returns the bytes that a load may continue, or `nil` if there are none. Reads those of an earlier load, to verify them.
  ///
  /// - Parameter isWanted: Whether the bytes with this record are those of the requested response.
  /// - Throws: A cancellation of the task. The part is then left as it is.
  func part(where isWanted: (PartRecord) -> Bool) async throws(CacheError) -> Part? {
    guard let record = state.withLock({ $0.recorded?.record }), isWanted(record) else { return nil }
    while try await queue.perform({ [self] () throws(CacheError) in verify() }) {
      if Task.isCancelled { throw .cancelled }
    }
    return try await queue.perform { [self] () throws(CacheError) -> Part? in
      drainIfCurrent()
      return state.withLock { state in
        guard !state.isSealed, state.failure == nil else { return nil }
        state.recorded?.removeLastBlockIfComplete()
        return state.recordedCount > 0 ? Part(record: record, plan: record.plan, count: state.recordedCount) : nil
      }
    }
  }

  /// Verifies the next blocks of a part. After the last one that matches, the file is cut off.
  ///
  /// - Returns: Whether there are more blocks.
  private func verify() -> Bool {
    // A file that is sealed can already belong to another load.
    let (file, recorded) = state.withLock { ($0.file, $0.isSealed ? nil : $0.recorded) }
    guard var recorded, let size = recorded.unverifiedSize else { return false }
    recorded.verify(file.descriptor, limit: Self.verifiedBlocks)
    let isIncomplete = recorded.unverifiedSize != nil
    let isUsable = isIncomplete || recorded.count == size || ftruncate(file.descriptor, off_t(recorded.count)) == 0
    state.withLock { $0.recorded = isUsable ? recorded : nil }
    return isIncomplete
  }

  /// Returns the progress of the current body. The bytes of an earlier load are included from the start.
  func completed(_ progress: LoadProgress) -> LoadProgress {
    let count = state.withLock { $0.recorded == nil || $0.isOutdated ? 0 : max($0.recordedCount, $0.position) }
    return progress.received < count ? LoadProgress(received: count, expected: progress.expected) : progress
  }

  /// Uses the bytes of the part as the beginning of the current body. They are passed to ``write(_:)`` again, which skips them.
  func resume() {
    state.withLock { state in
      if !state.isSealed { (state.isOutdated, state.written) = (false, 0) }
    }
  }

  /// Removes the bytes of earlier bodies, and records how the body that begins now can be continued.
  func begin(_ record: PartRecord) async throws(CacheError) {
    try await queue.perform { [self] () throws(CacheError) in
      let (file, isSealed) = state.withLock { ($0.file, $0.isSealed) }
      guard let recordPath = file.recordPath, !isSealed else { return }
      try removeContent()
      var record = record
      if let permissions = file.permissions { record.permissions = UInt32(permissions) }
      // Without its record, the part cannot be continued.
      let recorded = PartRecordFile.create(recordPath, record).map { RecordedBytes(record, $0) }
      state.withLock { $0.recorded = recorded }
    }
  }

  /// Removes all bytes. A record file that describes them does no harm, because its checksums do not match other bytes.
  private func removeContent() throws(CacheError) {
    let (file, hasBytes, recorded) = state.withLock { state in
      defer { (state.isOutdated, state.hasBytes) = (false, false) }
      return (state.file, state.hasBytes, state.recorded.take())
    }
    // Closes the record outside the lock.
    _ = recorded
    guard !hasBytes || ftruncate(file.descriptor, 0) == 0 else { throw Self.error(errno, "empty its temporary file", target) }
  }

  // MARK: Writing

  /// Whether the content is final.
  var isSealed: Bool { state.withLock { $0.isSealed } }

  /// Seals the file, because its content is the result of a load. Later writes have no effect.
  func seal() { state.withLock { $0.isSealed = true } }

  /// Begins another body. The bytes of earlier bodies are removed with its first write, unless it continues them.
  func restart() {
    state.withLock { state in
      guard !state.isSealed else { return }
      (state.pending, state.written, state.isOutdated) = (Data(), 0, state.hasBytes || state.recorded != nil)
    }
  }

  /// Appends bytes. Waits until they are written if many are buffered. An error of writing is thrown by this call or a later one.
  func write(_ chunk: Data) async throws(CacheError) {
    let (isFull, drains) = try state.withLock { state throws(CacheError) in
      if let failure = state.failure { throw failure }
      guard !state.isSealed else { return (false, false) }
      let repeated = state.isOutdated ? 0 : max(0, min(state.recordedCount - state.position, Int64(chunk.count)))
      state.written += repeated
      let rest = chunk.dropFirst(Int(repeated))
      // A large chunk is written without a copy.
      if state.pending.isEmpty { state.pending = rest } else { state.pending.append(rest) }
      let isFull = state.pending.count >= Self.bufferLimit
      // While a write is in progress, further chunks become one.
      let drains = !isFull && !state.isDraining && state.pending.count >= Self.batch
      if drains { state.isDraining = true }
      return (isFull, drains)
    }
    if isFull { return try await flush() }
    guard drains else { return }
    // After `restart()`, a drain without bytes would remove those that the next body may continue.
    queue.async { [self] in try? drain(onlyPending: true) }
  }

  /// Writes the buffered bytes.
  func flush() async throws(CacheError) {
    try await queue.perform { [self] () throws(CacheError) in try drain() }
  }

  /// The bytes for one write, and what has to be done before.
  private struct Batch {
    let file: OpenFile
    let bytes: Data
    let offset: Int64
    let recorded: RecordedBytes?
    /// The record of an earlier body. It is closed outside the lock.
    let outdated: RecordedBytes?
    /// Whether the bytes of earlier bodies are removed first.
    let empties: Bool
  }

  /// Takes the buffered bytes. In one step, because the next body can begin at any time.
  private func takeBatch(onlyPending: Bool) throws(CacheError) -> Batch? {
    try state.withLock { state throws(CacheError) in
      state.isDraining = false
      if let failure = state.failure { throw failure }
      if onlyPending, state.pending.isEmpty { return nil }
      let replaces = state.isOutdated && !state.isSealed
      let batch = Batch(
        file: state.file, bytes: state.pending, offset: state.written, recorded: replaces ? nil : state.recorded,
        outdated: replaces ? state.recorded : nil, empties: replaces && state.hasBytes)
      if replaces { (state.recorded, state.isOutdated, state.hasBytes) = (nil, false, false) }
      state.written += Int64(state.pending.count)
      (state.pending, state.hasBytes) = (Data(), state.hasBytes || !state.pending.isEmpty)
      return batch
    }
  }

  /// Writes the buffered bytes, after the bytes of earlier bodies were removed.
  ///
  /// - Parameter onlyPending: Whether nothing is done if no bytes are buffered.
  private func drain(onlyPending: Bool = false) throws(CacheError) {
    do throws(CacheError) {
      guard let taken = try takeBatch(onlyPending: onlyPending) else { return }
      let (file, batch, offset) = (taken.file, taken.bytes, taken.offset)
      guard !taken.empties || ftruncate(file.descriptor, 0) == 0 else {
        throw Self.error(errno, "empty its temporary file", target)
      }
      guard !batch.isEmpty else { return }
      var added = taken.recorded
      let failure = batch.withUnsafeBytes { bytes in
        added?.add(bytes)
        return calls.writeAll(file.descriptor, bytes, at: offset)
      }
      if let failure { throw Self.error(failure.number, "write the file", target) }
      state.withLock { $0.recorded = added }
    } catch {
      state.withLock { $0.failure = error }
      throw error
    }
  }

  /// Writes the buffered bytes, unless another body has begun that has not replaced the earlier bytes yet.
  private func drainIfCurrent() {
    if !state.withLock({ $0.isOutdated }) { try? drain() }
  }

  /// Reads bytes at an offset: at least one, and at most `count`.
  func read(_ count: Int, at offset: Int64) async throws(CacheError) -> Data {
    try await queue.perform { [self] () throws(CacheError) in
      let descriptor = file.descriptor
      var chunk = Data(count: count)
      var result: Int
      repeat {
        result = chunk.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, count, off_t(offset)) }
      } while result < 0 && errno == EINTR
      guard result > 0 else { throw Self.error(result < 0 ? errno : EIO, "read its temporary file", target) }
      return result == count ? chunk : chunk.prefix(result)
    }
  }

  // MARK: The end

  /// Moves the partial file to its destination in one step.
  func place() async throws(CacheError) {
    try await queue.perform { [self] () throws(CacheError) in
      let file = self.file
      if let permissions = file.permissions { _ = fchmod(file.descriptor, permissions) }
      if isDurable, let failure = calls.sync(file.descriptor) { throw Self.error(failure.number, "flush the file", target) }
      if let failure = calls.rename(file.path, target) { throw Self.error(failure.number, "move the file into place", target) }
      leave(keepsPart: false)
    }
  }

  /// Leaves the part for a later load, or removes it if no load can or should continue it.
  func leave(after error: CacheError) async {
    _ = try? await queue.perform { [self] () throws(CacheError) in
      drainIfCurrent()
      let (file, isNamed, keepsPart, recorded) = state.withLock { state in
        // The task that writes the file may not have noticed its cancellation yet.
        (state.isSealed, state.pending) = (true, Data())
        let keepsPart = state.isNamed && state.isContinuable && !Self.removing.contains(error.code)
        return (state.file, state.isNamed, keepsPart, state.recorded)
      }
      if keepsPart { recorded?.writeLastChecksum() } else if isNamed { unlink(file.path) }
      leave(keepsPart: keepsPart)
    }
  }

  /// Leaves the part for a later load, and continues with an empty file that has a unique name. A stored response that is used
  /// although it was not confirmed thus does not replace the part of the response that was requested.
  ///
  /// Has no effect if no load can or should continue the part, or if no other file can be created.
  ///
  /// - Parameter error: The reason why the stored response is used, or `nil` if it is not an error.
  func setPartAside(after error: CacheError? = nil) async {
    guard error.map({ !Self.removing.contains($0.code) }) ?? true else { return }
    _ = try? await queue.perform { [self] () throws(CacheError) in
      drainIfCurrent()
      let (file, isContinuable, recorded) = state.withLock { state in
        (state.file, state.isNamed && !state.isSealed && state.isContinuable, state.recorded)
      }
      let path = PartNames.unique(beside: target)
      guard isContinuable, let opened = OpenedPart(unique: path, file.permissions) else { return }
      recorded?.writeLastChecksum()
      leave(keepsPart: true)
      calls.close(file.descriptor)
      state.withLock { state in
        state.file = OpenFile(path: path, recordPath: nil, descriptor: opened.descriptor, permissions: opened.permissions)
        (state.recorded, state.isNamed) = (nil, true)
        (state.pending, state.written, state.hasBytes, state.isOutdated) = (Data(), 0, false, false)
      }
    }
  }

  /// The errors after which the part is removed: it would fill the disk, may be damaged, or cannot become a result.
  private static let removing: Set<CacheError.Code> = [.diskFull, .fileSystem, .bodyTooLarge, .malformedResponse]

  private func leave(keepsPart: Bool) {
    let (file, isNamed, claim) = state.withLock { state in
      defer { state.isNamed = false }
      return (state.file, state.isNamed, state.claim.take())
    }
    if !keepsPart, isNamed, let recordPath = file.recordPath { unlink(recordPath) }
    unlockFile(file.descriptor)
    // Released outside the lock, because it resumes other loads.
    _ = claim
  }
}
