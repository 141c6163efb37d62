internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Writes one entry into a temporary file and moves it into place.
///
/// A body of up to 64 KiB stays in memory until the commit, which writes the whole entry with one call.
final class DiskEntryWriter: EntryWriter {
  private struct State {
    var phase = WriterPhase()
    var checksums = BlockChecksums()
    /// The temporary file, or `nil` before the first write, and its path.
    var file: FileDescriptor?
    var path: String?
    /// The number of body bytes in the file.
    var flushed: Int64 = 0
    /// The bytes that are in memory only.
    var pending = Data()

    var length: Int64 { flushed + Int64(pending.count) }
  }

  /// The number of bytes that stay in memory before they are written to the file.
  private static let pendingLimit = 65_536

  private let key: CacheKey
  private let metadata: StoredMetadata
  private let engine: DiskEngine
  private let name: EntryName
  /// The offset of the body in the file.
  private let bodyOffset: Int64
  private let state = Lock(State())

  init(_ key: CacheKey, _ metadata: StoredMetadata, _ engine: DiskEngine) throws(CacheError) {
    guard KeySection.length(key) <= KeySection.lengthLimit else {
      throw CacheError(.entryTooLarge, reason: "the key is larger than \(KeySection.keyLimit) bytes", path: engine.folder.root)
    }
    self.metadata = metadata
    self.engine = engine
    name = EntryName(key, hashKey: engine.folder.key)
    self.key = key
    bodyOffset = Int64(EntryHeader.bodyOffset(keyLength: KeySection.length(key)))
    try requireAllowedSize(metadata.bodyLength ?? 0)
  }

  deinit { abort() }

  private func storing(_ bytes: Int) -> IOExecutor.Lane { .storing(name.lane, bytes: bytes) }

  private func requireAllowedSize(_ length: Int64, payload: Int = 0) throws(CacheError) {
    let limit = engine.configuration.bodyLimit
    guard length <= limit else {
      throw CacheError(.entryTooLarge, reason: "the body is larger than \(limit) bytes", path: engine.folder.path(name))
    }
    let mark = engine.configuration.sizeMark
    let size = EntryHeader.fileSize(keyLength: KeySection.length(key), bodyLength: length, payload: payload)
    let folder = name.member == nil ? 0 : FileStatus.blockSize
    guard FileStatus.allocatedSize(of: Int64(clamping: size)) <= mark - folder else {
      throw CacheError(.entryTooLarge, reason: "the entry is larger than \(mark) bytes", path: engine.folder.path(name))
    }
  }

  // MARK: Writing

  func writeWithoutWaiting(_ chunk: Data) throws(CacheError) -> Bool {
    guard pending.count + chunk.count < Self.pendingLimit else { return false }
    try enter()
    do throws(CacheError) {
      try requireAllowedSize(length + Int64(chunk.count))
      append(chunk)
    } catch {
      fail(error)
      throw error
    }
    try leave()
    return true
  }

  func write(_ chunk: Data) async throws(CacheError) {
    if try writeWithoutWaiting(chunk) { return }
    try enter()
    do throws(CacheError) {
      try requireAllowedSize(length + Int64(chunk.count))
      try await engine.executor.run(storing(pending.count + chunk.count)) { [self] () throws(CacheError) in
        try flush(chunk)
      }
    } catch {
      fail(error)
      throw error
    }
    try leave()
  }

  private func enter() throws(CacheError) { try state.withLock { state throws(CacheError) in try state.phase.enter() } }

  private func leave() throws(CacheError) {
    guard state.withLock({ $0.phase.isAborted(leaving: true) }) else { return }
    fail(WriterPhase.aborted)
    throw WriterPhase.aborted
  }

  private var pending: Data { state.withLock { $0.pending } }

  private var flushed: Int64 { state.withLock { $0.flushed } }

  private var length: Int64 { state.withLock { $0.length } }

  /// Appends bytes in memory.
  private func append(_ chunk: Data) {
    // The first chunk is shared, not copied: most small bodies consist of one chunk.
    state.withLock { if $0.pending.isEmpty { $0.pending = chunk } else { $0.pending.append(chunk) } }
  }

  private func flush(_ chunk: Data) throws(CacheError) {
    let file = try temporaryFile()
    let (pending, written) = (pending, flushed)
    try guarded("write an entry") { () throws(SystemError) in
      try write(pending, to: file, at: written)
      try write(chunk, to: file, at: written + Int64(pending.count))
    }
    checksum(pending)
    checksum(chunk)
    state.withLock { state in
      state.flushed += Int64(pending.count + chunk.count)
      state.pending = Data()
    }
  }

  private func temporaryFile() throws(CacheError) -> FileDescriptor {
    if let file = state.withLock({ $0.file }) { return file }
    try engine.requireWritable()
    let (path, file) = try engine.folder.makeSpool()
    state.withLock { ($0.file, $0.path) = (file, path) }
    return file
  }

  private func write(_ data: Data, to file: FileDescriptor, at place: Int64) throws(SystemError) {
    let calls = engine.folder.calls
    let offset = bodyOffset + place
    try data.withUnsafeBytes { bytes in
      Result { () throws(SystemError) in try calls.writeAll(file, bytes, at: offset) }
    }.get()
  }

  private func checksum(_ data: Data) {
    // Taken out and put back: an abort may need the lock meanwhile, and only the writer's current operation uses the checksums.
    var checksums = state.withLock { $0.checksums }
    data.withUnsafeBytes { checksums.update($0) }
    state.withLock { $0.checksums = checksums }
  }

  private func guarded(_ action: String, _ work: () throws(SystemError) -> Void) throws(CacheError) {
    do throws(SystemError) { try work() } catch { throw error.error(action, engine.folder.path(name)) }
  }

  // MARK: The end

  func commit(trailers: HTTPFields?) async throws(CacheError) -> StoredMetadata {
    var stored = metadata
    if let trailers { stored.trailers = trailers }
    return try await commit(stored)
  }

  func commitPart(as metadata: StoredMetadata) async throws(CacheError) -> StoredMetadata? { try await commit(metadata) }

  private func commit(_ metadata: StoredMetadata) async throws(CacheError) -> StoredMetadata {
    try enter()
    do throws(CacheError) {
      let stored = try await engine.executor.run(storing(pending.count)) { [self] () throws(CacheError) in
        try finish(metadata)
      }
      state.withLock { $0.phase.end() }
      await engine.waitForEviction()
      return stored
    } catch {
      fail(error)
      throw error
    }
  }

  /// Writes a whole body and commits it, on the caller's thread.
  func writeAndCommit(_ body: Data) throws(CacheError) {
    try enter()
    do throws(CacheError) {
      try requireAllowedSize(Int64(body.count))
      if body.count < Self.pendingLimit { append(body) } else { try flush(body) }
      _ = try finish(metadata)
      state.withLock { $0.phase.end() }
    } catch {
      fail(error)
      throw error
    }
  }

  private func finish(_ metadata: StoredMetadata) throws(CacheError) -> StoredMetadata {
    // An abort takes effect only before this point.
    if state.withLock({ $0.phase.isAborted() }) { throw WriterPhase.aborted }
    var stored = metadata
    stored.bodyLength = length
    let now = engine.now
    let header = EntryHeader(revision: stored.revision, storedAt: now, keyLength: KeySection.length(key), bodyLength: length)
    let (file, size) = try fill(header, stored)
    file.setModified(now)
    if engine.configuration.durability != .none {
      try guarded("flush an entry") { () throws(SystemError) in try engine.folder.calls.synchronize(file) }
    }
    let path = state.withLock { $0.path } ?? ""
    try engine.place(name, size: size) { () throws(CacheError) in
      try engine.folder.place(path, name, syncsFolders: engine.configuration.durability == .fileAndFolder) {
        () throws(CacheError) in try copy(file)
      }
    }
    return stored
  }

  /// Writes the parts that the temporary file lacks.
  ///
  /// - Returns: The file and its size in bytes.
  private func fill(_ header: EntryHeader, _ metadata: StoredMetadata) throws(CacheError) -> (FileDescriptor, Int64) {
    let pending = pending
    checksum(pending)
    var writer = ByteWriter()
    let isWhole = state.withLock { $0.file } == nil
    writer.reserve((isWhole ? Int(header.bodyOffset) + pending.count : 0) + 2 * MetadataRecord.slot + metadata.likelyEncodedCount)
    if isWhole {
      front(header, into: &writer)
      pending.withUnsafeBytes { writer.raw($0) }
    }
    try tail(header, metadata, into: &writer)
    let file = try temporaryFile()
    let calls = engine.folder.calls
    let end = Int64(header.bodyOffset + header.bodyLength)
    guard !isWhole else {
      try guarded("write an entry") { () throws(SystemError) in try calls.writeAll(file, writer.bytes, at: 0) }
      return (file, Int64(writer.bytes.count))
    }
    // The header is written last, so an incomplete file is not a valid entry.
    var front = ByteWriter()
    self.front(header, into: &front)
    try guarded("write an entry") { () throws(SystemError) in
      try write(pending, to: file, at: flushed)
      try calls.writeAll(file, writer.bytes, at: end)
      try calls.writeAll(file, front.bytes, at: 0)
    }
    return (file, end + Int64(writer.bytes.count))
  }

  /// Writes everything in front of the body.
  private func front(_ header: EntryHeader, into writer: inout ByteWriter) {
    header.encode(into: &writer)
    KeySection.encode(key, into: &writer)
    writer.zeros(upTo: Int(header.bodyOffset))
  }

  /// Writes everything behind the body.
  private func tail(_ header: EntryHeader, _ metadata: StoredMetadata, into writer: inout ByteWriter) throws(CacheError) {
    let start = writer.bytes.count
    let end = header.bodyOffset + header.bodyLength
    writer.zeros(upTo: start + Int(header.tableOffset - end))
    state.withLock { $0.checksums }.encode(into: &writer)
    writer.zeros(upTo: start + Int(header.metadataOffset - end))
    let payload = MetadataRecord.encode(sequence: 1, revision: header.revision, into: &writer) { metadata.encode(into: &$0) }
    guard payload <= MetadataRecord.payloadLimit else {
      throw CacheError(
        .entryTooLarge, reason: "the metadata is larger than \(MetadataRecord.payloadLimit) bytes", path: engine.folder.path(name)
      )
    }
    try requireAllowedSize(length, payload: payload)
  }

  /// Writes the temporary file again after it was deleted together with its folder. Its bytes remain readable while it is open.
  private func copy(_ file: FileDescriptor) throws(CacheError) -> String {
    let (path, new) = try engine.folder.makeSpool()
    state.withLock { $0.path = path }
    try guarded("write an entry") { () throws(SystemError) in
      var offset: Int64 = 0
      while true {
        let memory = try FileMemory(file, at: offset, count: 1 << 20)
        if memory.count == 0 { break }
        try memory.withBytes { bytes throws(SystemError) in try engine.folder.calls.writeAll(new, bytes, at: offset) }
        offset += Int64(memory.count)
      }
      new.setModified(engine.now)
      if engine.configuration.durability != .none { try engine.folder.calls.synchronize(new) }
    }
    return path
  }

  func abort() {
    if state.withLock({ $0.phase.abort() }) { fail(WriterPhase.aborted) }
  }

  /// Ends the writer and removes the temporary file.
  private func fail(_ error: CacheError) {
    let path = state.withLock { state in
      state.phase.end(error)
      return state.path.take()
    }
    switch error.code {
    case WriterPhase.aborted.code: break
    case .overloaded: engine.count { $0.refusedWrites += 1 }
    default: engine.count { $0.failedWrites += 1 }
    }
    if let path {
      let calls = engine.folder.calls
      engine.executor.start(.entry(name.lane), whenClosed: true) { _ = calls.unlink(path) }
    }
    if error.code == .diskFull { engine.evictAfterDiskFull() }
  }
}
