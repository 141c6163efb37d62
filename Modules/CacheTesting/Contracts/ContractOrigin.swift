#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An origin that a ``DownloaderContract`` can be run against. `LoopbackOrigin` is one for real engines, ``ScriptedDownloader``
/// is its own.
public protocol ContractOrigin: Sendable {
  /// Whether answers cross a wire, so that connections, bytes and pace mean something: ``DownloaderContract/Trait/sockets``.
  var hasSockets: Bool { get }
  /// Answers the requests for the returned URL, which is new, one after another as `answers` say; the last one answers all that
  /// follow.
  ///
  /// - Throws: ``ContractViolation`` for an answer that this origin can't give.
  func serve(_ answers: [ContractAnswer]) async throws -> URL
  /// What was asked of a URL, in order.
  func received(at url: URL) async -> [ContractRequest]
  /// Returns when so many bytes of request bodies have come for a URL, those of unfinished requests included; early when the task
  /// is cancelled.
  func waitForRequestBody(at url: URL, bytes: Int) async
  /// Body bytes that went out for a URL; nil where nobody counts them.
  func bodyBytesSent(at url: URL) async -> Int?
  /// A URL at which nobody listens.
  func refusingURL() async throws -> URL
  /// A URL with a host that no name service knows.
  func unresolvableURL() async throws -> URL
}

extension ContractOrigin {
  /// Answers every request for the returned URL, which is new, as `answer` says.
  public func serve(_ answer: ContractAnswer) async throws -> URL { try await serve([answer]) }
}
