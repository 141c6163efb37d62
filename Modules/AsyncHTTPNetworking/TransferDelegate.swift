#if AsyncHTTP
internal import AsyncHTTPClient
internal import CacheCore
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1

/// Hands on what async-http-client tells of a request without a body.
///
/// Its delegate calls come on one event loop and cost nothing between it and the reader; requests with a body go the way of ``Upload``.
final class TransferDelegate: HTTPClientResponseDelegate {
  private let transfer: Transfer
  private let method: HTTPRequest.Method
  private let hasSent = Lock(false)

  init(_ transfer: Transfer, method: HTTPRequest.Method) {
    self.transfer = transfer
    self.method = method
  }

  func didSendRequestHead(task: HTTPClient.Task<Void>, _ head: HTTPRequestHead) {
    let isSecond = hasSent.withLock { hasSent in
      defer { hasSent = true }
      return hasSent
    }
    // Only a client of the caller's own can do so.
    guard !isSecond else { return transfer.fail(.followsRedirects) }
    transfer.sent()
  }

  func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
    transfer.receive(
      ReceivedHead(status: Int(head.status.code), version: head.version, headers: head.headers, method: method))
    return task.eventLoop.makeSucceededVoidFuture()
  }

  func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
    transfer.receive(buffer, on: task.eventLoop) ?? task.eventLoop.makeSucceededVoidFuture()
  }

  func didFinishRequest(task: HTTPClient.Task<Void>) { transfer.finish() }

  func didReceiveError(task: HTTPClient.Task<Void>, _ error: any Error) { transfer.fail(clientError: error) }
}
#endif
