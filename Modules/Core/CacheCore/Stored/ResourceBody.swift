public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A stream of bytes that the reader pulls and that can be read once. Releasing or cancelling it stops the transfer.
///
/// ```swift
/// for try await chunk in response.body { try await file.write(chunk) }
/// ```
public struct ResourceBody: AsyncSequence, Sendable {
  public typealias Element = Data
  public typealias Failure = CacheError

  /// A source of a body's bytes. It is an object, so that releasing it can stop the transfer.
  public protocol Source: AnyObject, Sendable {
    /// Returns the next bytes, which are never empty, or `nil` at the end. An error is final.
    func next() async throws(CacheError) -> Data?
    /// Stops the transfer. A pending or later ``next()`` throws a cancellation.
    func cancel()
    /// The fields after the last byte, or `nil` before the end.
    var trailers: HTTPFields? { get }
  }

  /// The length in bytes, if it is known in advance.
  public let length: Int64?
  /// The source of the bytes.
  public let source: any Source
  /// All bytes, if they are in memory. Reading them needs no stream.
  public let data: Data?

  /// Creates a streamed body.
  public init(length: Int64?, source: any Source) {
    self.length = length
    self.source = source
    data = nil
  }

  /// Creates a body whose bytes are all in memory.
  public init(_ data: Data) {
    length = Int64(data.count)
    source = DataSource(data)
    self.data = data
  }

  /// An iterator over the chunks of a body.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let source: any Source

    public mutating func next() async throws(CacheError) -> Data? { try await source.next() }

    public mutating func next(isolation actor: isolated (any Actor)?) async throws(CacheError) -> Data? {
      try await source.next()
    }
  }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source: source) }

  /// Reads to the end and returns all bytes.
  ///
  /// - Parameter limit: The maximum number of bytes, at least zero.
  /// - Throws: ``CacheError/Code/bodyTooLarge`` if the body is longer than the limit. The body is cancelled.
  public func collect(limit: Int64 = .max) async throws(CacheError) -> Data {
    if limit < 0 { source.cancel() }
    try CacheError.require("limit", limit, in: 0...)
    if let length, length > limit { throw reject(limit) }
    if let data { return data }
    guard var whole = try await source.next() else { return Data() }
    guard Int64(whole.count) <= limit else { throw reject(limit) }
    // The server states the length, so it determines the size of the buffer only up to a harmless limit.
    if let length, length > whole.count { whole.reserveCapacity(Int(Swift.min(length, 64 << 20))) }
    while let chunk = try await source.next() {
      guard Int64(whole.count) + Int64(chunk.count) <= limit else { throw reject(limit) }
      whole.append(chunk)
    }
    return whole
  }

  private func reject(_ limit: Int64) -> CacheError {
    source.cancel()
    return CacheError(.bodyTooLarge, reason: "the body is larger than \(limit) bytes")
  }
}

/// A source with a single chunk of bytes in memory.
private final class DataSource: ResourceBody.Source {
  private enum State { case unread(Data), read, cancelled }
  private let state: Lock<State>

  init(_ data: Data) { state = Lock(data.isEmpty ? .read : .unread(data)) }

  func next() async throws(CacheError) -> Data? {
    try state.withLock { state throws(CacheError) in
      switch state {
      case .unread(let data):
        state = .read
        return data
      case .read: return nil
      case .cancelled: throw .cancelled
      }
    }
  }

  func cancel() { state.withLock { $0 = .cancelled } }

  var trailers: HTTPFields? { nil }
}
