import Etagere
import Foundation
import Synchronization

/// Collects a body, and makes it visible in one step. Letting go of a writer aborts it.
final class DictionaryWriter: EntryWriter {
  private struct Spool {
    var body = Data()
    var followers: [AsyncThrowingStream<Data, any Error>.Continuation] = []
    var isOver = false
  }

  private let metadata: StoredMetadata
  private let publish: @Sendable (DictionaryStore.Stored) -> Void
  private let spool = Mutex(Spool())

  init(_ metadata: StoredMetadata, publish: @escaping @Sendable (DictionaryStore.Stored) -> Void) {
    self.metadata = metadata
    self.publish = publish
  }

  deinit { abort() }

  func write(_ chunk: Data) async throws(CacheError) {
    // Told under the lock: a follower that joins now gets these bytes once, with what is there or on their own.
    try spool.withLock { spool throws(CacheError) in
      guard !spool.isOver else { throw CacheError(.misuse, reason: "written to after its end") }
      spool.body.append(chunk)
      for follower in spool.followers where !chunk.isEmpty { follower.yield(chunk) }
    }
  }

  func reader() throws(CacheError) -> ResourceBody {
    let (stream, continuation) = AsyncThrowingStream<Data, any Error>.makeStream()
    try spool.withLock { spool throws(CacheError) in
      guard !spool.isOver else { throw CacheError(.misuse, reason: "followed after its end") }
      if !spool.body.isEmpty { continuation.yield(spool.body) }
      spool.followers.append(continuation)
    }
    return ResourceBody(length: nil, source: Follower(stream: stream, continuation: continuation))
  }

  func commit(trailers: HTTPFields?) async throws(CacheError) -> StoredMetadata {
    let body = try end(throwing: nil)
    var complete = metadata
    complete.trailers = trailers
    complete.bodyLength = Int64(body.count)
    publish(DictionaryStore.Stored(metadata: complete, body: body))
    return complete
  }

  func abort() { _ = try? end(throwing: CacheError(.truncatedBody, reason: "the writer was aborted")) }

  private func end(throwing error: CacheError?) throws(CacheError) -> Data {
    let (body, followers) = try spool.withLock { spool throws(CacheError) in
      guard !spool.isOver else { throw CacheError(.misuse, reason: "committed after its end") }
      spool.isOver = true
      defer { spool.followers = [] }
      return (spool.body, spool.followers)
    }
    for follower in followers { follower.finish(throwing: error) }
    return body
  }

  private final class Follower: ResourceBody.Source {
    let stream: AsyncThrowingStream<Data, any Error>
    let continuation: AsyncThrowingStream<Data, any Error>.Continuation

    init(stream: AsyncThrowingStream<Data, any Error>, continuation: AsyncThrowingStream<Data, any Error>.Continuation) {
      self.stream = stream
      self.continuation = continuation
    }

    var trailers: HTTPFields? { nil }

    func next() async throws(CacheError) -> Data? {
      do {
        for try await chunk in stream { return chunk }
      } catch {
        throw error as? CacheError ?? .cancelled
      }
      // A stream shows a cancelled consumer a normal end, and a short body must never pass for a whole one.
      if Task.isCancelled { throw .cancelled }
      return nil
    }

    func cancel() { continuation.finish(throwing: CacheError.cancelled) }
  }
}
