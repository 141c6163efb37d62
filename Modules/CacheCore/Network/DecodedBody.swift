public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A body that was handed over to its end, as its reader got it.
public struct DecodedBody: Hashable, Sendable {
  /// Status and fields; they describe these bytes.
  public var head: HTTPResponse
  /// How many bytes there were.
  public var count: Int64
  /// The bytes; nil when there were more than ``DownloaderHooks/decodedDataLimit``.
  public var data: Data?

  /// A body of its parts.
  public init(head: HTTPResponse, count: Int64, data: Data?) {
    self.head = head
    self.count = count
    self.data = data
  }
}
