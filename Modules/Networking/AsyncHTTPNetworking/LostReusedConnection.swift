#if AsyncHTTP
internal import AsyncHTTPClient
internal import CacheCore
internal import NIOCore
internal import NIOHTTP1

/// The loss of a connection that had served an earlier request, before a byte of the response arrived.
///
/// A server may close an idle connection at any time, and a client finds out when it uses the connection. Such a request can be
/// sent again (RFC 9110 §9.2.2, RFC 9112 §9.3.1).
struct LostReusedConnection: Error {
  /// The error without this information.
  var cause: any Error

  /// Adds a handler that reports such a loss to an HTTP/1.1 connection. Call it on the connection's event loop.
  static func reportLosses(of channel: any Channel) throws {
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(Handler(), position: .after(pipeline.handler(type: HTTPRequestEncoder.self)))
  }

  /// The handler is below the parser, so it notices the first byte of a head.
  private final class Handler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    private var hasSentRequest = false
    private var isReused = false
    /// Whether a request was written, and nothing has arrived since.
    private var isAwaiting = false

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      if case .head = unwrapOutboundIn(data) {
        isReused = hasSentRequest
        hasSentRequest = true
        isAwaiting = true
      }
      context.write(data, promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      isAwaiting = false
      context.fireChannelRead(data)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      guard isReused, isAwaiting, CacheError(clientError: error).code == .connectionLost else {
        return context.fireErrorCaught(error)
      }
      isAwaiting = false
      context.fireErrorCaught(LostReusedConnection(cause: error))
    }

    func channelInactive(context: ChannelHandlerContext) {
      if isReused, isAwaiting {
        isAwaiting = false
        context.fireErrorCaught(LostReusedConnection(cause: HTTPClientError.remoteConnectionClosed))
      }
      context.fireChannelInactive()
    }
  }
}
#endif
