#if AsyncHTTP
internal import NIOCore
internal import NIOHTTP1

/// Sends request targets unchanged.
///
/// async-http-client parses a URL with Foundation, which encodes characters that RFC 3986 does not allow: `|`, `[`, a `%` that
/// begins no escape. The client takes a path whose escapes are not UTF-8 for an empty one. Such targets are in use, and a
/// signature over one is valid for no other. The exact target is therefore passed to the connection in a separate field. A
/// handler below the client puts it into the request line.
///
/// It works over HTTP/1.1 only. An HTTP/2 connection has no handler between the client and the encoding of the fields.
enum ExactTarget {
  /// The name of the field, which is removed before the request is written.
  static let fieldName = "Etagere-Exact-Target"

  /// Adds the handler below the client's in an HTTP/1.1 connection. Call it on the connection's event loop.
  static func install(in channel: any Channel) throws {
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(Handler(), position: .after(pipeline.handler(type: HTTPRequestEncoder.self)))
  }

  private final class Handler: ChannelOutboundHandler {
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      guard case .head(var head) = unwrapOutboundIn(data), let target = head.headers.first(name: fieldName) else {
        return context.write(data, promise: promise)
      }
      head.uri = target
      head.headers.remove(name: fieldName)
      context.write(wrapOutboundOut(.head(head)), promise: promise)
    }
  }
}
#endif
