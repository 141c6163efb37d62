#if AsyncHTTP
internal import AsyncHTTPClient
internal import CacheCore
internal import NIOCore
internal import NIOHTTP1

/// The client's delegate for a request without a body.
///
/// Its calls run on one event loop and need no task between the client and the reader. Requests with a body use ``Upload``.
final class TransferDelegate: HTTPClientResponseDelegate {
  private let plain: PlainRequest
  private let connectionsMade: Int?
  private let hasSent = Lock(false)

  private var transfer: Transfer { plain.transfer }

  /// - Parameters:
  ///   - plain: The request.
  ///   - connectionsMade: The number of connections created before the request was passed to the client.
  init(_ plain: PlainRequest, connectionsMade: Int?) {
    self.plain = plain
    self.connectionsMade = connectionsMade
  }

  func didSendRequestHead(task: HTTPClient.Task<Void>, _ head: HTTPRequestHead) {
    let isSecond = hasSent.withLock { hasSent in
      defer { hasSent = true }
      return hasSent
    }
    // A second head means a redirect, which only a caller's client follows.
    guard !isSecond else { return transfer.fail(.followsRedirects) }
    transfer.sent(overReusedConnection: connectionsMade != nil && connectionsMade == plain.connections?.made)
  }

  func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
    do throws(CacheError) {
      transfer.receive(
        try ReceivedHead(
          status: Int(head.status.code), version: head.version, headers: head.headers, method: plain.method))
    } catch {
      transfer.fail(error)
    }
    return task.eventLoop.makeSucceededVoidFuture()
  }

  func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
    transfer.receive(buffer, on: task.eventLoop) ?? task.eventLoop.makeSucceededVoidFuture()
  }

  func didFinishRequest(task: HTTPClient.Task<Void>) { transfer.finish() }

  func didReceiveError(task: HTTPClient.Task<Void>, _ error: any Error) {
    guard plain.isIdempotent, transfer.maySendAgain(after: error) else { return transfer.fail(clientError: error) }
    // Deferred until the client has removed the lost connection.
    task.eventLoop.execute { [plain] in plain.launchAgain() }
  }
}
#endif
