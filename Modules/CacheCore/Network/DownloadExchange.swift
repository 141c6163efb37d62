public import HTTPTypes
private import Synchronization

/// A request and its attempt number, as ``DownloaderHooks`` receive it.
public struct DownloadExchange: Hashable, Sendable, Identifiable {
  /// An identifier that is unique in this process.
  public let id: UInt64
  /// The request that is sent.
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
