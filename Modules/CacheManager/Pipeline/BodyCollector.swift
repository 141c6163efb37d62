internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Collects one body at its destination, chunk by chunk.
///
/// The reader waits until the destination has accepted each chunk, so no chunks accumulate.
struct BodyCollector: Sendable {
  private let request: ResolvedRequest
  private let reservation: MemoryReservation?
  /// The announced length in bytes.
  private let length: Int64?
  /// The bytes, if the destination is memory. `nil` for another destination, or if a stream exceeds the limit for memory.
  private(set) var data: Data?
  /// The number of bytes collected.
  private(set) var count: Int64 = 0

  /// - Parameters:
  ///   - request: The request whose destination receives the bytes.
  ///   - length: The announced length in bytes.
  ///   - reservation: The part of the memory budget that the bytes use, or `nil` if they are not counted.
  init(_ request: ResolvedRequest, length: Int64?, _ reservation: MemoryReservation? = nil) {
    self.request = request
    self.length = length
    self.reservation = reservation
    switch request.destination {
    case .memory: data = Data()
    case .stream: data = Self.mayFitInMemory(length, request) ? Data() : nil
    case .file, .store: data = nil
    }
  }

  /// Whether the memory store may accept a streamed body of this length. A body of unknown length (`nil`) may fit.
  static func mayFitInMemory(_ length: Int64?, _ request: ResolvedRequest) -> Bool {
    length ?? 0 <= request.maximumBodyInMemory && request.writes.contains(.memory)
  }

  /// Prepares the destination. A file may contain bytes of an earlier body: of a redirect, or of an interrupted one.
  func begin() async throws(CacheError) {
    if let length, length > limit { throw request.bodyTooLarge }
    switch request.destination {
    case .stream: break
    case .memory: try await reservation?.begin(announcing: length)
    case .store: try await reservation?.begin(holding: MemoryBudget.streamed)
    case .file(let file):
      try await reservation?.begin(holding: MemoryBudget.streamed)
      try await file.restart()
    }
  }

  /// Collects the next bytes.
  mutating func take(_ chunk: Data) async throws(CacheError) {
    guard count + Int64(chunk.count) <= limit else { throw request.bodyTooLarge }
    count += Int64(chunk.count)
    switch request.destination {
    case .memory:
      try await reservation?.grow(to: count, most: min(length ?? limit, limit))
      append(chunk)
    case .stream: if count > request.maximumBodyInMemory { data = nil } else { append(chunk) }
    case .file(let file): try await file.write(chunk)
    case .store: break
    }
  }

  private mutating func append(_ chunk: Data) {
    guard let isEmpty = data?.isEmpty else { return }
    guard isEmpty else {
      data?.append(chunk)
      return
    }
    data = chunk
    // The length is the server's claim, so it must not reserve a large buffer.
    if let length, length > chunk.count { data?.reserveCapacity(Int(min(length, 64 << 20))) }
  }

  /// Completes the body at its destination.
  func finish() async throws(CacheError) {
    if case .file(let file) = request.destination { try await file.flush() }
    reservation?.end(at: Int64(data?.count ?? 0), isTypical: request.destination.isMemory)
  }

  private var limit: Int64 { request.destination.isStream ? .max : request.maximumBodySize }
}

/// The destination of a response's bytes.
enum BodyDestination: Sendable {
  /// A caller that reads the bytes as a stream. A body that is small enough is also stored in memory.
  case stream
  /// Memory, for the waiters, and every layer that may be written.
  case memory
  /// A caller's file, and the durable store. The memory store receives no bytes.
  case file(PartialFile)
  /// The durable store alone.
  case store

  /// Whether the memory store may receive the bytes.
  var includesMemory: Bool {
    switch self {
    case .stream, .memory: true
    case .file, .store: false
    }
  }

  var isMemory: Bool { if case .memory = self { true } else { false } }

  var isStore: Bool { if case .store = self { true } else { false } }

  var isStream: Bool { if case .stream = self { true } else { false } }
}

/// A body that consists of two bodies, one after the other.
final class ConcatenatedBody: ResourceBody.Source {
  private let first: ResourceBody
  private let second: ResourceBody
  private let isFirstRead = Lock(false)

  init(_ first: ResourceBody, _ second: ResourceBody) { (self.first, self.second) = (first, second) }

  func next() async throws(CacheError) -> Data? {
    if !isFirstRead.withLock({ $0 }) {
      if let chunk = try await first.source.next() { return chunk }
      isFirstRead.withLock { $0 = true }
    }
    return try await second.source.next()
  }

  func cancel() {
    first.source.cancel()
    second.source.cancel()
  }

  var trailers: HTTPFields? { second.source.trailers }
}
