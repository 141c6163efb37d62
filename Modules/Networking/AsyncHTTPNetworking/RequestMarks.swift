#if AsyncHTTP
internal import CacheCore
internal import HTTPTypes
internal import NIOCore
internal import NIOHPACK
internal import NIOHTTP1
internal import NIOHTTP2

/// Fields that a request has for the handlers of its connection: its exact target, and the receiver of interim responses. The
/// handlers are below async-http-client, and remove the fields before the request is written.
final class RequestMarks: Sendable {
  /// The name of the field with the exact target, which is sent unchanged.
  ///
  /// async-http-client parses a URL with Foundation, which encodes characters that RFC 3986 does not allow: `|`, `[`, a `%` that
  /// begins no escape. The client takes a path whose escapes are not UTF-8 for an empty one. Such targets are in use, and a
  /// signature over one is valid for no other. The handler puts the target into the request line. It works over HTTP/1.1 only.
  static let exactTarget = "Etagere-Exact-Target"

  /// The name of the field with the key of the receiver of interim responses (1xx), which async-http-client drops before its
  /// delegate sees them.
  static let interimReport = "Etagere-Interim-Report"

  typealias InterimReport = @Sendable (HTTPResponse) -> Void

  private struct State {
    var last: UInt64 = 0
    var reports: [String: InterimReport] = [:]
  }

  private let state = Lock(State())

  /// Adds a receiver of interim responses. Returns its key, which is the value of the field.
  func add(_ report: @escaping InterimReport) -> String {
    state.withLock { state in
      state.last += 1
      let key = String(state.last)
      state.reports[key] = report
      return key
    }
  }

  /// Removes a receiver.
  func remove(_ key: String) { _ = state.withLock { $0.reports.removeValue(forKey: key) } }

  private func report(_ key: String) -> InterimReport? { state.withLock { $0.reports[key] } }

  /// Adds the handler to an HTTP/1.1 connection, above the check of heads. Call it on the connection's event loop.
  func install(in channel: any Channel) throws {
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(Handler(self), position: .after(pipeline.handler(type: ResponseGuard.HeadCheck.self)))
  }

  /// Adds the handler to a stream of an HTTP/2 connection, above the check of heads. Call it on the connection's event loop.
  func install(inStream channel: any Channel) throws {
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(StreamHandler(self), position: .after(pipeline.handler(type: ResponseGuard.StreamHeadCheck.self)))
  }

  /// Whether a response with this status is reported. No request asks for another protocol.
  private static func isInterim(_ code: Int) -> Bool { (100...199).contains(code) && code != 101 }

  private final class Handler: ChannelDuplexHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    private let marks: RequestMarks
    /// The key of the receiver for the current request.
    private var key: String?

    init(_ marks: RequestMarks) { self.marks = marks }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      guard case .head(var head) = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
      let target = head.headers.first(name: exactTarget)
      key = head.headers.first(name: interimReport)
      guard target != nil || key != nil else { return context.write(data, promise: promise) }
      if let target { head.uri = target }
      head.headers.remove(name: exactTarget)
      head.headers.remove(name: interimReport)
      context.write(wrapOutboundOut(.head(head)), promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      if let key, case .head(let head) = unwrapInboundIn(data), isInterim(Int(head.status.code)) {
        marks.report(key)?(
          HTTPResponse(status: .init(code: Int(head.status.code)), headerFields: HTTPFields(received: head.headers)))
      }
      context.fireChannelRead(data)
    }
  }

  private final class StreamHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTP2Frame.FramePayload
    typealias InboundOut = HTTP2Frame.FramePayload
    typealias OutboundIn = HTTP2Frame.FramePayload
    typealias OutboundOut = HTTP2Frame.FramePayload

    private let marks: RequestMarks
    private var key: String?

    init(_ marks: RequestMarks) { self.marks = marks }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      guard case .headers(var block) = unwrapOutboundIn(data), let key = block.headers.first(name: interimReport) else {
        return context.write(data, promise: promise)
      }
      self.key = key
      block.headers.remove(name: interimReport)
      context.write(wrapOutboundOut(.headers(block)), promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      if let key, case .headers(let block) = unwrapInboundIn(data),
        let code = block.headers.first(name: ":status").flatMap({ Int($0) }), isInterim(code)
      {
        let fields = block.headers.filter { !$0.name.hasPrefix(":") }.map { ($0.name, $0.value) }
        marks.report(key)?(
          HTTPResponse(status: .init(code: code), headerFields: HTTPFields(received: HTTPHeaders(fields))))
      }
      context.fireChannelRead(data)
    }
  }
}
#endif
