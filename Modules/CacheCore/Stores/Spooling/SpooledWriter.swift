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
  private let phase = Lock(Phase.idle)

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
    try enter()
    do throws(CacheError) {
      // An abort takes effect only before this point.
      if case .busy(isAborted: true) = phase.withLock({ $0 }) { throw Self.aborted }
      var stored = metadata
      let body = body.withLock { $0 }
      stored.bodyLength = body.length
      stored.trailers = trailers ?? metadata.trailers
      try await storage.commit(stored, tail: body.pending, at: body.flushed, in: body.location)
      phase.withLock { $0 = .committed }
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

  /// Ends the writer and removes the partial entry.
  private func fail(_ error: CacheError) {
    phase.withLock { $0 = .failed(error) }
    if error.code != Self.aborted.code { storage.note(error) }
    if let location = body.withLock({ $0.location }) { storage.discard(location) }
  }
}
