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
