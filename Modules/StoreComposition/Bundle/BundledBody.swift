internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The body of a large shipped file, read on demand.
final class BundledBody: ResourceBody.Source {
  private enum State { case reading(Int64), pulling, ended, failed(CacheError) }

  private static let pull: Int64 = 262_144

  private let file: BundledFile
  private let end: Int64
  private let folder: BundledFolder
  private let state: Lock<State>

  init(_ file: BundledFile, _ range: Range<Int64>, _ folder: BundledFolder) {
    (self.file, self.folder) = (file, folder)
    end = range.upperBound
    state = Lock(range.isEmpty ? .ended : .reading(range.lowerBound))
  }

  func next() async throws(CacheError) -> Data? {
    let start: Int64? = try state.withLock { state throws(CacheError) in
      switch state {
      case .reading(let offset):
        state = .pulling
        return offset
      case .pulling: throw CacheError(.misuse, reason: "a body was read by two tasks at once")
      case .ended: return nil
      case .failed(let error): throw error
      }
    }
    guard let start else { return nil }
    let range = start..<min(end, start + Self.pull)
    do throws(CacheError) {
      let bytes = try await folder.run { [file] () throws(CacheError) in try file.read(range) }
      return try state.withLock { state throws(CacheError) in
        if case .failed(let error) = state { throw error }
        state = range.upperBound < end ? .reading(range.upperBound) : .ended
        return bytes
      }
    } catch {
      state.withLock { if case .pulling = $0 { $0 = .failed(error) } }
      throw error
    }
  }

  func cancel() {
    state.withLock { state in
      switch state {
      case .reading, .pulling: state = .failed(.cancelled)
      case .ended, .failed: break
      }
    }
  }

  var trailers: HTTPFields? { nil }
}
