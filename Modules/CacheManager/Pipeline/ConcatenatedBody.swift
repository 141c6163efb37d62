internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

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
