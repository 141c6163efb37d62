#if AsyncHTTP
internal import AsyncHTTPClient
internal import CacheCore
internal import HTTPTypes
internal import NIOCore

/// A request without a body on its way.
struct PlainRequest: Sendable {
  let transfer: Transfer
  let client: HTTPClient
  let request: HTTPClient.Request
  let method: HTTPRequest.Method
  /// nil: a client of the caller's own, whose connections nobody counts.
  let connections: ConnectionCount?

  /// Methods that may be sent again when an answer did not come (RFC 9110 §9.2.2).
  private static let idempotent: Set<HTTPRequest.Method> = [.get, .head, .options, .trace, .put, .delete]

  /// Whether sending it twice is as good as once.
  var isIdempotent: Bool { Self.idempotent.contains(method) }

  /// Hands it to the client; returns what stops it.
  func launch() -> @Sendable () -> Void {
    let task = client.execute(
      request: request, delegate: TransferDelegate(self, connectionsMade: connections?.made), eventLoop: .indifferent)
    // A client that has been shut down tells its delegate nothing. One of the downloader's own lives as long as its transfers.
    if connections == nil {
      task.futureResult.whenFailure { [transfer] error in
        if error as? HTTPClientError == .alreadyShutdown { transfer.fail(clientError: error) }
      }
    }
    return { task.cancel() }
  }

  /// Hands it to the client once more.
  func launchAgain() {
    let attempt = transfer.metrics.attempts
    transfer.launched(attempt: attempt, launch())
  }
}
#endif
