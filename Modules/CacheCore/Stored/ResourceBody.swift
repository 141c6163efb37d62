public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A stream of bytes: pulled, used once. Dropping or cancelling it stops the transfer behind it.
///
/// ```swift
/// for try await chunk in response.body { try await file.write(chunk) }
/// ```
public struct ResourceBody: AsyncSequence, Sendable {
  public typealias Element = Data
  public typealias Failure = CacheError

  /// Where a body's bytes come from. An object, so that letting go of it can stop the transfer.
  public protocol Source: AnyObject, Sendable {
    /// The next bytes (never empty), or nil at the end. An error is final.
    func next() async throws(CacheError) -> Data?
    /// Stops the transfer; a pending or later ``next()`` throws a cancellation.
    func cancel()
    /// Fields that came after the last byte; nil before the end.
    var trailers: HTTPFields? { get }
  }

  /// Bytes, where it is known beforehand.
  public let length: Int64?
  /// Where the bytes come from.
  public let source: any Source
  /// All bytes, where they are at hand: reading them costs no stream.
  public let data: Data?

  /// A body that streams.
  public init(length: Int64?, source: any Source) {
    self.length = length
    self.source = source
    data = nil
  }

  /// A body whose bytes are all at hand.
  public init(_ data: Data) {
    length = Int64(data.count)
    source = DataSource(data)
    self.data = data
  }

  /// Pulls chunk by chunk.
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
  /// - Parameter limit: bytes; a longer body throws ``CacheError/Code/bodyTooLarge`` and is cancelled.
  public func collect(limit: Int64 = .max) async throws(CacheError) -> Data {
    if let length, length > limit { throw reject(limit) }
    if let data { return data }
    guard var whole = try await source.next() else { return Data() }
    guard Int64(whole.count) <= limit else { throw reject(limit) }
    // The length is a server's word: it may size a buffer only as far as that does no harm.
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

/// Bytes that are all at hand, as a stream of one chunk.
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
