import CacheCore
import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension StoredMetadata {
  /// Returns metadata for a transform's input.
  static func whole(of data: Data) -> StoredMetadata {
    StoredMetadata(
      request: HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/a.jpg"),
      response: HTTPResponse(status: .ok), requestTime: Timestamp(nanoseconds: 1), responseTime: Timestamp(nanoseconds: 2),
      bodyLength: Int64(data.count), revision: .random(),
      freshness: Freshness(generatedAt: Timestamp(nanoseconds: 1), freshUntil: .distantFuture))
  }
}
