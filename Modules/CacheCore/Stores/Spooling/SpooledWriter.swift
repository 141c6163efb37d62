package import HTTPTypes

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A writer for stores that divide a body into chunks. A large body goes into the store as it arrives, where lookups do not find
/// it before the commit.
package final class SpooledWriter<Storage: SpoolStorage>: EntryWriter {
  private enum Phase {
    case idle
    /// A write or a commit is in progress. It does the cleanup if the writer is aborted meanwhile.
    case busy(isAborted: Bool)
    case committed
    case failed(CacheError)
  }

  /// The number of bytes that are collected in memory before they go into the store.
  private static var pendingLimit: Int { 8 * Storage.chunkSize }

  private let metadata: StoredMetadata
  private let storage: Storage
  private let spool = BodySpool<Storage.Location>(chunkSize: Storage.chunkSize)
  private let phase = Lock(Phase.idle)

  /// - Throws: `CacheError.Code.entryTooLarge` if the metadata states a length that the store does not accept.
  package init(_ metadata: StoredMetadata, _ storage: Storage) throws(CacheError) {
    (self.metadata, self.storage) = (metadata, storage)
    try storage.requireAllowedSize(metadata.bodyLength ?? 0)
  }

  deinit { abort() }

  // MARK: Writing

  package func writeWithoutWaiting(_ chunk: Data) throws(CacheError) -> Bool {
    guard spool.pending.count + chunk.count < Self.pendingLimit else { return false }
    try enter()
    do throws(CacheError) {
      try storage.requireAllowedSize(spool.length + Int64(chunk.count))
      if !chunk.isEmpty { spool.append(chunk) }
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
      try storage.requireAllowedSize(spool.length + Int64(chunk.count))
      var rest = chunk
      while !rest.isEmpty {
        spool.append(Data(rest.prefix(Self.pendingLimit)))
        rest = rest.dropFirst(Self.pendingLimit)
        if spool.pending.count >= Self.pendingLimit { try await flush() }
      }
    } catch {
      fail(error)
      throw error
    }
    try leave()
  }

  private func enter() throws(CacheError) {
    try phase.withLock { phase throws(CacheError) in
      switch phase {
      case .idle: phase = .busy(isAborted: false)
      case .busy: throw CacheError(.misuse, reason: "a writer was used by two tasks at once")
      case .committed: throw CacheError(.misuse, reason: "the entry is already committed")
      case .failed(let error): throw error
      }
    }
  }

  private func leave() throws(CacheError) {
    let isAborted = phase.withLock { phase in
      if case .busy(isAborted: true) = phase { return true }
      phase = .idle
      return false
    }
    guard isAborted else { return }
    fail(Self.aborted)
    throw Self.aborted
  }

  private static var aborted: CacheError { CacheError(.truncatedBody, reason: "the writer of the entry was aborted") }

  private func flush() async throws(CacheError) {
    let pending = spool.pending
    let count = pending.count / Storage.chunkSize * Storage.chunkSize
    let (location, flushed) = spool.flushed
    spool.flush(count, try await storage.append(Data(pending.prefix(count)), at: flushed, to: location))
  }

  // MARK: Reading

  package func reader() throws(CacheError) -> ResourceBody {
    if case .failed(let error) = phase.withLock({ $0 }) { throw error }
    return ResourceBody(length: metadata.bodyLength, source: SpooledBody(spool, storage))
  }

  // MARK: The end

  package func commit(trailers: HTTPFields?) async throws(CacheError) -> StoredMetadata {
    try enter()
    do throws(CacheError) {
      // An abort takes effect only before this point.
      if case .busy(isAborted: true) = phase.withLock({ $0 }) { throw Self.aborted }
      var stored = metadata
      stored.bodyLength = spool.length
      stored.trailers = trailers ?? metadata.trailers
      let (location, flushed) = spool.flushed
      try await storage.commit(stored, tail: spool.pending, at: flushed, in: location)
      phase.withLock { $0 = .committed }
      spool.finish(.committed(stored.trailers))
      return stored
    } catch {
      fail(error)
      throw error
    }
  }

  package func abort() {
    let isNew = phase.withLock { phase in
      switch phase {
      case .idle: return true
      case .busy:
        phase = .busy(isAborted: true)
        return false
      case .committed, .failed: return false
      }
    }
    if isNew { fail(Self.aborted) }
  }

  /// Ends the writer: readers throw `error`, and the partial entry is removed.
  private func fail(_ error: CacheError) {
    phase.withLock { $0 = .failed(error) }
    spool.finish(.failed(error))
    if error.code != Self.aborted.code { storage.note(error) }
    if let location = spool.flushed.location { storage.discard(location) }
  }
}
