internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Takes one body, chunk by chunk, to where a load wants it. Who pulls waits for it, so nothing piles up in between.
struct BodySink: Sendable {
  private let target: BodyTarget
  private let limit: Int64
  /// The bytes, where they go into memory; else none.
  private(set) var data = Data()
  /// How many have been taken.
  private(set) var count: Int64 = 0

  private let load: ResolvedRequest
  private let share: MemoryReservation?

  /// - Parameter share: what the bytes take of the memory budget; nil: nobody counts them.
  init(_ load: ResolvedRequest, _ share: MemoryReservation? = nil) {
    self.load = load
    self.share = share
    target = load.target
    limit = load.maximumBodySize
  }

  /// Begins: what an earlier body (a redirect's, one that broke off, a damaged entry's) has left in the file goes.
  func begin(expecting length: Int64?) async throws(CacheError) {
    if let length, length > limit { throw load.bodyTooLarge }
    if target.isMemory {
      try await share?.begin(announcing: length)
    } else {
      try await share?.begin(holding: MemoryBudget.streamed)
    }
    if case .file(let draft) = target { try await draft.restart() }
  }

  /// - Parameters:
  ///   - chunk: the next bytes.
  ///   - length: of the whole body, as far as it was announced.
  mutating func take(_ chunk: Data, of length: Int64?) async throws(CacheError) {
    guard count + Int64(chunk.count) <= limit else { throw load.bodyTooLarge }
    count += Int64(chunk.count)
    switch target {
    case .memory:
      try await share?.grow(to: count, most: min(length ?? limit, limit))
      guard !data.isEmpty else {
        data = chunk
        // A server's word may size a buffer only as far as that does no harm.
        if let length, length > chunk.count { data.reserveCapacity(Int(min(length, 64 << 20))) }
        return
      }
      data.append(chunk)
    case .file(let draft): try await draft.write(chunk)
    case .store: break
    }
  }

  /// Hands over what is still on its way.
  func finish() async throws(CacheError) {
    if case .file(let draft) = target { try await draft.flush() }
    share?.end(at: Int64(data.count), isTypical: target.isMemory)
  }
}
