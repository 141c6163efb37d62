#if AsyncHTTP
internal import AsyncHTTPClient
internal import CacheCore
internal import NIOCore
internal import NIOHTTP1

/// Hands on what async-http-client tells of a request without a body.
///
/// Its delegate calls come on one event loop and cost nothing between it and the reader; requests with a body go the way of
/// ``Upload``.
final class TransferDelegate: HTTPClientResponseDelegate {
  private let plain: PlainRequest
  private let connectionsMade: Int?
  private let hasSent = Lock(false)

  private var transfer: Transfer { plain.transfer }

  /// - Parameters:
  ///   - plain: what is sent.
  ///   - connectionsMade: connections that had been made when it was handed to the client.
  init(_ plain: PlainRequest, connectionsMade: Int?) {
    self.plain = plain
    self.connectionsMade = connectionsMade
  }

  func didSendRequestHead(task: HTTPClient.Task<Void>, _ head: HTTPRequestHead) {
    let isSecond = hasSent.withLock { hasSent in
      defer { hasSent = true }
      return hasSent
    }
    // Only a client of the caller's own can do so.
    guard !isSecond else { return transfer.fail(.followsRedirects) }
    transfer.sent(overKeptConnection: connectionsMade != nil && connectionsMade == plain.connections?.made)
  }

  func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
    transfer.receive(
      ReceivedHead(status: Int(head.status.code), version: head.version, headers: head.headers, method: plain.method))
    return task.eventLoop.makeSucceededVoidFuture()
  }

  func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
    transfer.receive(buffer, on: task.eventLoop) ?? task.eventLoop.makeSucceededVoidFuture()
  }

  func didFinishRequest(task: HTTPClient.Task<Void>) { transfer.finish() }

  func didReceiveError(task: HTTPClient.Task<Void>, _ error: any Error) {
    guard plain.isIdempotent, transfer.maySendAgain(after: error) else { return transfer.fail(clientError: error) }
    // A moment later, when the client is done with the connection that is lost.
    task.eventLoop.execute { [plain] in plain.launchAgain() }
  }
}
#endif
