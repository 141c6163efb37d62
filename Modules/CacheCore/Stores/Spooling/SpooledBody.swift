internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A body that follows a writer and waits for more bytes without polling.
final class SpooledBody<Storage: SpoolStorage>: ResourceBody.Source {
  private struct State {
    var offset: Int64 = 0
    var isPulling = false
    var isCancelled = false
    var hasEnded = false
  }

  private let spool: BodySpool<Storage.Location>
  private let storage: Storage
  private let state = Lock(State())

  init(_ spool: BodySpool<Storage.Location>, _ storage: Storage) { (self.spool, self.storage) = (spool, storage) }

  func next() async throws(CacheError) -> Data? {
    let start = try state.withLock { state throws(CacheError) in
      guard !state.isCancelled else { throw .cancelled }
      guard !state.isPulling else { throw CacheError(.misuse, reason: "a body was read by two tasks at once") }
      state.isPulling = true
      return state.offset
    }
    defer { state.withLock { $0.isPulling = false } }
    while true {
      guard !Task.isCancelled, !state.withLock({ $0.isCancelled }) else { throw .cancelled }
      switch spool.step(at: start) {
      case .bytes(let data): return advance(data)
      case .read(let location, let range, let length): return advance(try await storage.read(range, of: length, at: location))
      case .failed(let error): throw error
      case .end:
        state.withLock { $0.hasEnded = true }
        return nil
      case .wait: await spool.wait(beyond: start, unless: { self.state.withLock { $0.isCancelled } })
      }
    }
  }

  private func advance(_ data: Data) -> Data {
    state.withLock { $0.offset += Int64(data.count) }
    return data
  }

  func cancel() {
    state.withLock { $0.isCancelled = true }
    spool.nudge()
  }

  var trailers: HTTPFields? {
    guard state.withLock({ $0.hasEnded }), case .committed(let trailers) = spool.end else { return nil }
    return trailers
  }
}
