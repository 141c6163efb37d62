#if AsyncHTTP
internal import AsyncHTTPClient
internal import CacheCore
internal import HTTPTypes
internal import NIOCore

/// A request without a body.
struct PlainRequest: Sendable {
  let transfer: Transfer
  let client: HTTPClient
  let request: HTTPClient.Request
  let method: HTTPRequest.Method
  /// The connection counter, or `nil` for a caller's client, whose connections are not counted.
  let connections: ConnectionCount?

  /// The methods that may be sent again if no response arrived (RFC 9110 §9.2.2).
  private static let idempotent: Set<HTTPRequest.Method> = [.get, .head, .options, .trace, .put, .delete]

  /// Whether sending the request twice has the effect of sending it once.
  var isIdempotent: Bool { Self.idempotent.contains(method) }

  /// Passes the request to the client. Returns a closure that cancels it.
  func launch() -> @Sendable () -> Void {
    let task = client.execute(
      request: request, delegate: TransferDelegate(self, connectionsMade: connections?.made), eventLoop: .indifferent)
    // A client that has been shut down does not call its delegate. The downloader's own client lives as long as its transfers.
    if connections == nil {
      task.futureResult.whenFailure { [transfer] error in
        if error as? HTTPClientError == .alreadyShutdown { transfer.fail(clientError: error) }
      }
    }
    return { task.cancel() }
  }

  /// Passes the request to the client again.
  func launchAgain() {
    let attempt = transfer.metrics.attempts
    transfer.launched(attempt: attempt, launch())
  }
}
#endif
