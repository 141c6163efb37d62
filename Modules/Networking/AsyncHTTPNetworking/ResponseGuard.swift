#if AsyncHTTP
internal import CacheCore
internal import NIOCore
internal import NIOHPACK
internal import NIOHTTP1
internal import NIOHTTP2

/// The handlers below async-http-client that repair a response or refuse its head.
///
/// async-http-client 1.37 and swift-nio-http2 1.46 end the process for a status below 100, for a negative or empty `:status`, and
/// for a 101 over HTTP/2 that another head follows. No such head reaches them.
enum ResponseGuard {
  /// Adds the handlers to an HTTP/1.1 connection. Call it on the connection's event loop.
  static func install(in channel: any Channel) throws {
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(Repair(), position: .after(pipeline.handler(type: HTTPRequestEncoder.self)))
    let parser = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
    try pipeline.addHandler(HeadCheck(), position: .after(parser))
  }

  /// Adds the handler to a stream of an HTTP/2 connection. Call it on the connection's event loop.
  static func install(inStream channel: any Channel) throws {
    try channel.pipeline.syncOperations.addHandler(StreamHeadCheck(), position: .first)
  }

  /// Returns the error for an invalid status (RFC 9110 §15), or for a switch of protocols, which no request asks for.
  static func refusal(ofStatus code: Int) -> CacheError? {
    guard code != 101 else {
      return CacheError(
        .malformedResponse, reason: "the response has the interim status 101, but no other protocol was requested")
    }
    guard !(100...999).contains(code) else { return nil }
    return CacheError(.malformedResponse, reason: "the response has an invalid status (\(code))")
  }

  /// Feeds ``ResponseRepair``, between the socket and the parser.
  private final class Repair: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    private var repair = ResponseRepair()
    private var hasFailed = false

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      if case .head(let head) = unwrapOutboundIn(data) { repair.expectResponse(isHead: head.method == .HEAD) }
      context.write(data, promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard !hasFailed else { return }
      do {
        if let bytes = try repair.repair(unwrapInboundIn(data)) { context.fireChannelRead(wrapInboundOut(bytes)) }
      } catch {
        hasFailed = true
        context.fireErrorCaught(error)
      }
    }

    func channelInactive(context: ChannelHandlerContext) {
      // The parser reports a response that ends in the middle of a line.
      if !hasFailed, let rest = repair.takeHeld() { context.fireChannelRead(wrapInboundOut(rest)) }
      context.fireChannelInactive()
    }
  }

  /// Refuses heads that the parser accepts, and whose rest nothing above reads correctly.
  final class HeadCheck: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart

    private var hasRefused = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard !hasRefused else { return }
      guard case .head(var head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
      let codings = head.headers["Transfer-Encoding"]
      if let error = refusal(ofStatus: Int(head.status.code)) ?? unknownCoding(in: codings) {
        hasRefused = true
        return context.fireErrorCaught(error)
      }
      guard !codings.isEmpty, head.version == .http1_0 else { return context.fireChannelRead(data) }
      // The framing of such a response is not reliable, so its connection ends with it (RFC 9112 §6.1).
      let options = head.headers[canonicalForm: "Connection"].filter { $0.lowercased() != "keep-alive" }
      head.headers.replaceOrAdd(name: "Connection", value: (options + ["close"]).joined(separator: ", "))
      context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    /// The parser undoes exactly one `chunked`. For everything else it returns the coded bytes up to the end of the connection.
    private func unknownCoding(in codings: [String]) -> CacheError? {
      guard let first = codings.first, codings.count > 1 || first.lowercased() != "chunked" else { return nil }
      return .unknownTransferCoding(codings.joined(separator: ", "))
    }
  }

  /// Refuses heads of an HTTP/2 stream before they are converted.
  final class StreamHeadCheck: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame.FramePayload
    typealias InboundOut = HTTP2Frame.FramePayload

    private var hasHead = false
    private var hasRefused = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard !hasRefused else { return }
      guard !hasHead, case .headers(let block) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
      let values = block.headers[":status"]
      // An interim response cannot end a stream (RFC 9113 §8.1).
      guard let value = values.first, values.count == 1, value.utf8.count == 3, let code = Int(value), code > 0,
        code >= 200 || !block.endStream
      else { return refuse(CacheError(.malformedResponse, reason: "the response has an invalid status or none"), context) }
      if let error = refusal(ofStatus: code) { return refuse(error, context) }
      hasHead = code >= 200
      context.fireChannelRead(data)
    }

    private func refuse(_ error: CacheError, _ context: ChannelHandlerContext) {
      hasRefused = true
      context.fireErrorCaught(error)
    }
  }
}
#endif
