public import HTTPTypes
private import Synchronization

/// One request as ``DownloaderHooks`` see it, and what tells it from others.
public struct DownloadExchange: Hashable, Sendable, Identifiable {
  /// Unlike any other request's of this process.
  public let id: UInt64
  /// The request: in the first call as it would go out, then as that call left it.
  public internal(set) var request: HTTPRequest
  /// Counted from 1: how often the resource has been asked for, this time included.
  public let attempt: Int

  init(request: HTTPRequest, attempt: Int) {
    id = Self.serial.wrappingAdd(1, ordering: .relaxed).newValue
    self.request = request
    self.attempt = attempt
  }

  private static let serial = Atomic<UInt64>(0)
}
