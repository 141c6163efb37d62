internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A body that follows a writer and waits for more bytes without polling.
///
/// It does not verify checksums, because this process has just written the bytes.
final class SpoolBody: ResourceBody.Source {
  private struct State {
    var offset: Int64 = 0
    var isPulling = false
    var isCancelled = false
    var hasEnded = false
  }

  private let spool: Spool
  private let executor: IOExecutor
  private let path: String
  private let state = Lock(State())

  init(_ spool: Spool, _ executor: IOExecutor, path: String) {
    self.spool = spool
    self.executor = executor
    self.path = path
  }

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
      case .read(let file, let count): return advance(try await read(file, count, at: spool.bodyOffset + start))
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

  private func read(_ file: FileDescriptor, _ count: Int, at offset: Int64) async throws(CacheError) -> Data {
    try await executor.run(.unordered) { [path] () throws(CacheError) in
      do throws(SystemError) {
        let memory = try FileMemory(file, at: offset, count: count)
        guard memory.count == count else { throw .ioFailure }
        return memory.data(0..<count)
      } catch {
        throw error.error("read a temporary file", path)
      }
    }
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
