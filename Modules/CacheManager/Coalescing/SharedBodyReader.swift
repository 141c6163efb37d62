internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// One reader of a ``SharedBody``.
final class SharedBodyReader: ResourceBody.Source {
  private struct State {
    var chunks = 0
    var bytes: Int64 = 0
    var spool: ResourceBody?
  }

  private let shared: SharedBody
  private let id: Int
  private let state = Lock(State())

  init(_ shared: SharedBody, _ id: Int) {
    self.shared = shared
    self.id = id
  }

  deinit { shared.leave(id) }

  func cancel() {
    shared.leave(id)
    state.withLock { $0.spool }?.source.cancel()
  }

  var trailers: HTTPFields? { shared.trailers }

  func next() async throws(CacheError) -> Data? {
    while true {
      let (chunks, bytes, spool) = state.withLock { ($0.chunks, $0.bytes, $0.spool) }
      switch shared.step(of: id, after: chunks, bytes, isSpooled: spool != nil) {
      case .bytes(let chunk):
        state.withLock { state in
          state.chunks += 1
          state.bytes += Int64(chunk.count)
        }
        return chunk
      case .spooled: return try await read(from: spool, after: bytes)
      case .end: return nil
      case .failed(let error): throw error
      case .wait(let pull): try await wait(for: pull)
      case .pull(let pull):
        await shared.run(pull)
        try await wait(for: pull)
      }
    }
  }

  private func wait(for pull: SharedBody.Pull) async throws(CacheError) {
    if await pull.end.value(for: id) == nil { throw .cancelled }
  }

  private func read(from known: ResourceBody?, after bytes: Int64) async throws(CacheError) -> Data {
    var chunk: Data?
    if let known {
      chunk = try await known.source.next()
    } else {
      let spool = try shared.spool()
      state.withLock { $0.spool = spool }
      chunk = try await skip(bytes, of: spool)
    }
    guard let chunk else { throw CacheError(.truncatedBody, reason: "what was stored of the body ended before the body") }
    state.withLock { $0.bytes += Int64(chunk.count) }
    return chunk
  }

  /// Returns the first spooled bytes after those that were read before the reader changed to the spool.
  private func skip(_ bytes: Int64, of spool: ResourceBody) async throws(CacheError) -> Data? {
    var left = bytes
    while let chunk = try await spool.source.next() {
      if Int64(chunk.count) > left { return left == 0 ? chunk : Data(chunk.dropFirst(Int(left))) }
      left -= Int64(chunk.count)
    }
    return nil
  }
}
