public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A writer that collects the body in memory, for a store that writes a whole body at once.
///
/// It implements the end of the entry and the errors for misuse. The store provides a closure:
///
/// ```swift
/// func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
///   CollectingWriter(metadata) { metadata, body throws(CacheError) in try await database.replace(key, metadata, body) }
/// }
/// ```
///
/// The body stays in memory until the entry has ended.
public final class CollectingWriter: EntryWriter {
  private let metadata: StoredMetadata
  private let sizeLimit: Int
  private let publish: @Sendable (StoredMetadata, Data) async throws(CacheError) -> Void
  /// The bytes, or `nil` if the entry accepts no more.
  private let collected = Lock<Data?>(Data())

  /// Creates a writer for one entry.
  ///
  /// - Parameters:
  ///   - metadata: The metadata of the entry.
  ///   - sizeLimit: The largest body in bytes. The write that exceeds it throws `CacheError.Code.entryTooLarge`. A load then
  ///     continues without the store, but a prefetch and `ResourceManager.store(_:for:)` fail.
  ///   - publish: Makes the entry visible. It is called at most once, with the complete metadata and the whole body. If it
  ///     throws, the entry is aborted.
  public init(
    _ metadata: StoredMetadata, sizeLimit: Int = .max,
    publish: @escaping @Sendable (StoredMetadata, Data) async throws(CacheError) -> Void
  ) {
    self.metadata = metadata
    self.sizeLimit = sizeLimit
    self.publish = publish
  }

  public func write(_ chunk: Data) async throws(CacheError) { try append(chunk) }

  public func writeWithoutWaiting(_ chunk: Data) throws(CacheError) -> Bool {
    try append(chunk)
    return true
  }

  private func append(_ chunk: Data) throws(CacheError) {
    try collected.withLock { bytes throws(CacheError) in
      guard let count = bytes?.count else {
        throw CacheError(.misuse, reason: "cannot write: the entry was committed or aborted")
      }
      guard chunk.count <= sizeLimit - count else {
        throw CacheError(.entryTooLarge, reason: "the entry exceeds the store's limit of \(sizeLimit) bytes")
      }
      bytes?.append(chunk)
    }
  }

  public func commit(trailers: HTTPFields?) async throws(CacheError) -> StoredMetadata {
    var complete = metadata
    complete.trailers = trailers
    return try await commit(complete)
  }

  public func commitPart(as metadata: StoredMetadata) async throws(CacheError) -> StoredMetadata? { try await commit(metadata) }

  private func commit(_ metadata: StoredMetadata) async throws(CacheError) -> StoredMetadata {
    guard let body = collected.withLock({ $0.take() }) else {
      throw CacheError(.misuse, reason: "cannot commit: the entry was committed or aborted")
    }
    var complete = metadata
    complete.bodyLength = Int64(body.count)
    try await publish(complete, body)
    return complete
  }

  public func abort() { _ = collected.withLock { $0.take() } }
}

/// A writer for stores that divide a body into chunks. A large body goes into the store as it arrives, where lookups do not find
/// it before the commit.
package final class SpooledWriter<Storage: SpoolStorage>: EntryWriter {
  /// The bytes that the writer has received. The first ones are in the store as whole chunks.
  private struct Body {
    var location: Storage.Location?
    /// The number of bytes in the store.
    var flushed: Int64 = 0
    /// The bytes that are in memory only.
    var pending = Data()

    var length: Int64 { flushed + Int64(pending.count) }
  }

  /// The number of bytes that are collected in memory before they go into the store.
  private static var pendingLimit: Int { 8 * Storage.chunkSize }

  private let metadata: StoredMetadata
  private let storage: Storage
  private let body = Lock(Body())
  private let phase = Lock(WriterPhase())

  /// - Throws: `CacheError.Code.entryTooLarge` if the metadata states a length that the store does not accept.
  package init(_ metadata: StoredMetadata, _ storage: Storage) throws(CacheError) {
    (self.metadata, self.storage) = (metadata, storage)
    try storage.requireAllowedSize(metadata.bodyLength ?? 0)
  }

  deinit { abort() }

  // MARK: Writing

  package func writeWithoutWaiting(_ chunk: Data) throws(CacheError) -> Bool {
    guard body.withLock({ $0.pending.count }) + chunk.count < Self.pendingLimit else { return false }
    try enter()
    do throws(CacheError) {
      try storage.requireAllowedSize(body.withLock { $0.length } + Int64(chunk.count))
      body.withLock { $0.pending.append(chunk) }
    } catch {
      fail(error)
      throw error
    }
    try leave()
    return true
  }

  package func write(_ chunk: Data) async throws(CacheError) {
    if try writeWithoutWaiting(chunk) { return }
    try enter()
    do throws(CacheError) {
      try storage.requireAllowedSize(body.withLock { $0.length } + Int64(chunk.count))
      var rest = chunk
      while !rest.isEmpty {
        let pending = body.withLock { body in
          body.pending.append(rest.prefix(Self.pendingLimit))
          return body.pending.count
        }
        rest = rest.dropFirst(Self.pendingLimit)
        if pending >= Self.pendingLimit { try await flush() }
      }
    } catch {
      fail(error)
      throw error
    }
    try leave()
  }

  private func enter() throws(CacheError) { try phase.withLock { phase throws(CacheError) in try phase.enter() } }

  private func leave() throws(CacheError) {
    guard phase.withLock({ $0.isAborted(leaving: true) }) else { return }
    fail(WriterPhase.aborted)
    throw WriterPhase.aborted
  }

  private func flush() async throws(CacheError) {
    let body = body.withLock { $0 }
    let count = body.pending.count / Storage.chunkSize * Storage.chunkSize
    let location = try await storage.append(Data(body.pending.prefix(count)), at: body.flushed, to: body.location)
    self.body.withLock { body in
      body.location = location
      body.flushed += Int64(count)
      body.pending = Data(body.pending.dropFirst(count))
    }
  }

  // MARK: The end

  package func commit(trailers: HTTPFields?) async throws(CacheError) -> StoredMetadata {
    var stored = metadata
    if let trailers { stored.trailers = trailers }
    return try await commit(stored)
  }

  package func commitPart(as metadata: StoredMetadata) async throws(CacheError) -> StoredMetadata? { try await commit(metadata) }

  private func commit(_ metadata: StoredMetadata) async throws(CacheError) -> StoredMetadata {
    try enter()
    do throws(CacheError) {
      // An abort takes effect only before this point.
      if phase.withLock({ $0.isAborted() }) { throw WriterPhase.aborted }
      var stored = metadata
      let body = body.withLock { $0 }
      stored.bodyLength = body.length
      try await storage.commit(stored, tail: body.pending, at: body.flushed, in: body.location)
      phase.withLock { $0.end() }
      return stored
    } catch {
      fail(error)
      throw error
    }
  }

  package func abort() {
    if phase.withLock({ $0.abort() }) { fail(WriterPhase.aborted) }
  }

  /// Ends the writer and removes the partial entry.
  private func fail(_ error: CacheError) {
    phase.withLock { $0.end(error) }
    if error.code != WriterPhase.aborted.code { storage.note(error) }
    if let location = body.withLock({ $0.location }) { storage.discard(location) }
  }
}

/// The phase of a writer, which one task uses at a time, and which another one may abort meanwhile.
package struct WriterPhase: Sendable {
  private enum Phase {
    case idle
    /// A write or a commit is in progress. It does the cleanup if the writer is aborted meanwhile.
    case busy(isAborted: Bool)
    case committed
    case failed(CacheError)
  }

  private var phase = Phase.idle

  package init() {}

  package static var aborted: CacheError { CacheError(.truncatedBody, reason: "the writer of the entry was aborted") }

  /// Begins a write or a commit.
  package mutating func enter() throws(CacheError) {
    switch phase {
    case .idle: phase = .busy(isAborted: false)
    case .busy: throw CacheError(.misuse, reason: "a writer was used by two tasks at once")
    case .committed: throw CacheError(.misuse, reason: "the entry is already committed")
    case .failed(let error): throw error
    }
  }

  /// Returns whether the writer was aborted during the write or the commit in progress.
  ///
  /// - Parameter ends: Whether the write ends, unless the writer was aborted.
  package mutating func isAborted(leaving ends: Bool = false) -> Bool {
    if case .busy(isAborted: true) = phase { return true }
    if ends { phase = .idle }
    return false
  }

  /// Ends the writer with a commit, or with an error.
  package mutating func end(_ error: CacheError? = nil) { phase = error.map { .failed($0) } ?? .committed }

  /// Aborts the writer.
  ///
  /// - Returns: Whether no write is in progress and the writer has not ended, so that the caller does the cleanup.
  package mutating func abort() -> Bool {
    switch phase {
    case .idle: return true
    case .busy:
      phase = .busy(isAborted: true)
      return false
    case .committed, .failed: return false
    }
  }
}

/// The operations of a store for one entry that ``SpooledWriter`` writes.
package protocol SpoolStorage: Sendable {
  /// The place of a body that is being written.
  associatedtype Location: Sendable

  /// The unit in which a body is stored. Only the last chunk of a body can be shorter.
  static var chunkSize: Int { get }

  /// Throws `CacheError.Code.entryTooLarge` if the store accepts no body of this length.
  func requireAllowedSize(_ length: Int64) throws(CacheError)

  /// Stores whole chunks, which lookups do not find yet.
  ///
  /// - Parameters:
  ///   - bytes: One or more chunks.
  ///   - offset: The position of the bytes in the body.
  ///   - location: The place of the earlier chunks, or `nil` for the first ones.
  /// - Returns: The place of the chunks.
  func append(_ bytes: Data, at offset: Int64, to location: Location?) async throws(CacheError) -> Location

  /// Stores the rest of the body and makes the entry visible in one step.
  ///
  /// - Parameters:
  ///   - metadata: The complete metadata.
  ///   - tail: The bytes after the stored chunks.
  ///   - offset: The position of the tail in the body.
  ///   - location: The place of the chunks, or `nil` if there are none.
  func commit(_ metadata: StoredMetadata, tail: Data, at offset: Int64, in location: Location?) async throws(CacheError)

  /// Removes the chunks of an entry that is not committed.
  func discard(_ location: Location)

  /// Counts a failure of the writer.
  func note(_ error: CacheError)
}

/// The body of a stored entry whose chunks are read when they are needed, for stores that divide a body into chunks.
package final class ChunkedBody: ResourceBody.Source {
  private enum State {
    /// The position after the chunks that have been read but not returned.
    case reading(Int64, [Data])
    case pulling
    case ended
    case failed(CacheError)
  }

  private enum Step { case chunk(Data), read(Int64), end }

  private let end: Int64
  private let finalTrailers: HTTPFields?
  private let read: @Sendable (Int64) async throws(CacheError) -> [Data]
  private let state: Lock<State>

  /// - Parameters:
  ///   - range: The bytes of the body to read.
  ///   - trailers: The trailers of the entry.
  ///   - read: Reads and checks one or more chunks of the range, from a position on.
  package init(
    _ range: Range<Int64>, trailers: HTTPFields?, read: @escaping @Sendable (Int64) async throws(CacheError) -> [Data]
  ) {
    end = range.upperBound
    finalTrailers = trailers
    self.read = read
    state = Lock(range.isEmpty ? .ended : .reading(range.lowerBound, []))
  }

  package func next() async throws(CacheError) -> Data? {
    let step: Step = try state.withLock { state throws(CacheError) in
      switch state {
      case .reading(let offset, var chunks):
        guard !chunks.isEmpty else {
          state = .pulling
          return .read(offset)
        }
        let chunk = chunks.removeFirst()
        state = offset == end && chunks.isEmpty ? .ended : .reading(offset, chunks)
        return .chunk(chunk)
      case .pulling: throw CacheError(.misuse, reason: "a body was read by two tasks at once")
      case .ended: return .end
      case .failed(let error): throw error
      }
    }
    switch step {
    case .chunk(let chunk): return chunk
    case .end: return nil
    case .read(let start): return try await pull(from: start)
    }
  }

  private func pull(from start: Int64) async throws(CacheError) -> Data {
    do throws(CacheError) {
      var chunks = try await read(start)
      let offset = chunks.reduce(start) { $0 + Int64($1.count) }
      let chunk = chunks.removeFirst()
      try state.withLock { state throws(CacheError) in
        if case .failed(let error) = state { throw error }
        state = offset == end && chunks.isEmpty ? .ended : .reading(offset, chunks)
      }
      return chunk
    } catch {
      state.withLock { if case .pulling = $0 { $0 = .failed(error) } }
      throw error
    }
  }

  package func cancel() {
    state.withLock { state in
      switch state {
      case .reading, .pulling: state = .failed(.cancelled)
      case .ended, .failed: break
      }
    }
  }

  package var trailers: HTTPFields? {
    state.withLock { state in
      if case .ended = state { finalTrailers } else { nil }
    }
  }
}
