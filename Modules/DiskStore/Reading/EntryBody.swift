internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The body of a large entry, read and checked block by block.
final class EntryBody: ResourceBody.Source {
  private enum State { case reading(Int64), pulling(Int64), ended, failed(CacheError) }

  private let file: EntryFile
  private let end: Int64
  private let engine: DiskEngine
  private let name: EntryName
  private let state: Lock<State>

  init(_ file: EntryFile, _ range: Range<Int64>, _ name: EntryName, _ engine: DiskEngine) {
    self.file = file
    self.name = name
    self.engine = engine
    end = range.upperBound
    state = Lock(range.isEmpty ? .ended : .reading(range.lowerBound))
  }

  func next() async throws(CacheError) -> Data? {
    let start: Int64? = try state.withLock { state throws(CacheError) in
      switch state {
      case .reading(let offset):
        state = .pulling(offset)
        return offset
      case .pulling: throw CacheError(.misuse, reason: "a body was read by two tasks at once")
      case .ended: return nil
      case .failed(let error): throw error
      }
    }
    guard let start else { return nil }
    do throws(CacheError) {
      let chunk = try await engine.executor.run(.entry(name.lane)) { [self] () throws(CacheError) in try pull(start) }
      return try finish(start + Int64(chunk.count), chunk)
    } catch {
      state.withLock { if case .pulling = $0 { $0 = .failed(error) } }
      throw error
    }
  }

  private func finish(_ offset: Int64, _ chunk: Data) throws(CacheError) -> Data {
    try state.withLock { state throws(CacheError) in
      if case .failed(let error) = state { throw error }
      state = offset < end ? .reading(offset) : .ended
    }
    return chunk
  }

  private func pull(_ offset: Int64) throws(CacheError) -> Data {
    let block = Int64(BlockChecksums.blockSize)
    let first = offset / block * block
    let memory: FileMemory?
    do throws(SystemError) {
      memory = try file.blocks(from: first, upTo: end, checks: engine.configuration.checksBodies)
    } catch {
      throw error.error("read an entry", engine.folder.path(name))
    }
    guard let memory else {
      engine.discardDamaged(name, file.status.identity)
      throw CacheError(.damagedEntry, reason: "the stored body is damaged", path: engine.folder.path(name))
    }
    let last = min(first + Int64(memory.count), end)
    return memory.data(Int(offset - first)..<Int(last - first))
  }

  /// Reads the rest of the body on the caller's thread.
  ///
  /// - Returns: The number of bytes read.
  func readAll() throws(CacheError) -> Int {
    guard case .reading(let start) = state.withLock({ $0 }) else { return 0 }
    var offset = start
    while offset < end { offset += Int64(try pull(offset).count) }
    return Int(offset - start)
  }

  func cancel() {
    state.withLock { state in
      switch state {
      case .reading, .pulling: state = .failed(.cancelled)
      case .ended, .failed: break
      }
    }
  }

  var trailers: HTTPFields? {
    state.withLock { state in
      if case .ended = state { file.metadata.trailers } else { nil }
    }
  }
}
