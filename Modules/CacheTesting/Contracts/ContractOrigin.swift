#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An origin for running a ``DownloaderContract``. `LoopbackOrigin` is an origin for downloaders with sockets. A
/// ``ScriptedDownloader`` is its own origin.
public protocol ContractOrigin: Sendable {
  /// Whether responses cross a wire, so that connections, bytes and pace have a meaning:
  /// ``DownloaderContract/Trait/sockets``.
  var hasSockets: Bool { get }
  /// Returns a new URL whose requests get the given responses in order. The last one is repeated.
  ///
  /// - Throws: ``ContractViolation`` for a response that this origin cannot give.
  func serve(_ responses: [ContractResponse]) async throws -> URL
  /// Returns the requests for a URL, in order.
  func received(at url: URL) async -> [ContractRequest]
  /// Returns when the given number of request body bytes has arrived for a URL, including those of unfinished requests,
  /// or when the task is cancelled.
  func waitForRequestBody(at url: URL, bytes: Int) async
  /// Returns the number of body bytes sent for a URL, or `nil` if the origin does not count them.
  func bodyBytesSent(at url: URL) async -> Int?
  /// Returns a URL with a port on which no process listens.
  func refusingURL() async throws -> URL
  /// Returns a URL with a host name that does not resolve.
  func unresolvableURL() async throws -> URL
}

extension ContractOrigin {
  /// Returns a new URL whose requests all get the given response.
  public func serve(_ response: ContractResponse) async throws -> URL { try await serve([response]) }
}
