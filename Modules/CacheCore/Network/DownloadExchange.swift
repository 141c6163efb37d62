public import HTTPTypes
private import Synchronization

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A request and its response, as far as they are known when ``DownloaderHooks`` are called.
public struct DownloadExchange: Sendable, Identifiable {
  /// An identifier that is unique in this process.
  public let id: UInt64
  /// The request that is sent.
  public let request: HTTPRequest
  /// The number of the request for this resource, counted from 1.
  public let attempt: Int
  /// The status and the fields of the response, or `nil` before they have arrived.
  public internal(set) var response: HTTPResponse?
  /// The bytes that a call is about: a chunk, or the whole body. Empty in the other calls.
  public internal(set) var data = Data()
  /// The error with which the request ended, or `nil` if it has not ended or the response is complete.
  public internal(set) var error: CacheError?

  /// Creates an exchange for a test of a hook.
  public init(
    request: HTTPRequest, attempt: Int = 1, response: HTTPResponse? = nil, data: Data = Data(), error: CacheError? = nil
  ) {
    id = Self.serial.wrappingAdd(1, ordering: .relaxed).newValue
    self.request = request
    self.attempt = attempt
    self.response = response
    self.data = data
    self.error = error
  }

  private static let serial = Atomic<UInt64>(0)
}
