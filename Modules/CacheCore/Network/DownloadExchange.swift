public import HTTPTypes
private import Synchronization

/// A request as ``DownloaderHooks`` see it.
public struct DownloadExchange: Hashable, Sendable, Identifiable {
  /// An identifier that no other request of this process has.
  public let id: UInt64
  /// The request as it is sent.
  public let request: HTTPRequest
  /// The number of the request for this resource, counted from 1.
  public let attempt: Int

  init(request: HTTPRequest, attempt: Int) {
    id = Self.serial.wrappingAdd(1, ordering: .relaxed).newValue
    self.request = request
    self.attempt = attempt
  }

  private static let serial = Atomic<UInt64>(0)
}
