#if Server
import HTTPServing
import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1

/// Repetitions of reading a request or writing a response, in a channel without a socket.
struct ParsingJob: Job {
  static let name = "parsing"

  enum Work: String, Codable, Hashable, Sendable, CaseIterable {
    /// Reads a GET request with 12 fields.
    case get
    /// Reads a POST request whose body is 64 chunks of 1 KiB.
    case chunks
    /// Writes the head of a response with 12 fields.
    case response
  }

  let work: Work
  /// Whether the parser and the writer are those of `HTTPServing`, and not SwiftNIO's.
  let usesHTTPServing: Bool
  let repetitions: Int

  func run() async throws -> Measurement {
    // The handlers of one connection stay for all its requests.
    let channel = EmbeddedChannel()
    let (read, written) = (ReadCounter(), WrittenCounter())
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(written)
    try usesHTTPServing
      ? pipeline.addHandler(ServingHandler())
      : pipeline.addHandlers(
        ByteToMessageHandler(HTTPRequestDecoder()), HTTPResponseEncoder(), HTTP1ToHTTPServerCodec(secure: false))
    try pipeline.addHandler(read)
    channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
    var measurement = Measurement()
    // The first batch is the warm-up.
    for batch in 0...5 {
      (read.count, written.count) = (0, 0)
      let watch = Stopwatch()
      for _ in 0..<repetitions { repeatWork(pipeline) }
      if batch > 0 { watch.stop(&measurement) }
      measurement.check("fields and bytes", read.count + written.count, is: repetitions * expected)
    }
    return measurement
  }

  /// The correct count of one repetition: the fields and the bytes of the body of a request, or the bytes of a head.
  private var expected: Int {
    // The codec of swift-nio-extras moves Host out of the fields.
    let fields = ParsingMessages.fieldCount - (usesHTTPServing ? 0 : 1)
    return switch work {
    case .get: fields
    case .chunks: fields + ParsingMessages.chunkCount * ParsingMessages.chunkBytes
    case .response: ParsingMessages.responseHeadBytes
    }
  }

  private func repeatWork(_ pipeline: ChannelPipeline.SynchronousOperations) {
    switch work {
    case .get: pipeline.fireChannelRead(NIOAny(ParsingMessages.get))
    case .chunks: for part in ParsingMessages.post { pipeline.fireChannelRead(NIOAny(part)) }
    case .response:
      pipeline.write(NIOAny(HTTPResponsePart.head(ParsingMessages.response)), promise: nil)
      pipeline.write(NIOAny(HTTPResponsePart.end(nil)), promise: nil)
    }
    pipeline.fireChannelReadComplete()
    pipeline.flush()
  }
}

/// The last handler, which counts the fields of requests and the bytes of their bodies.
private final class ReadCounter: ChannelInboundHandler {
  typealias InboundIn = HTTPRequestPart

  var count = 0

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): count += head.headerFields.count
    case .body(let bytes): count += bytes.readableBytes
    case .end: break
    }
  }
}

/// The first handler, which counts the written bytes and drops them.
private final class WrittenCounter: ChannelOutboundHandler {
  typealias OutboundIn = IOData

  var count = 0

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    count += unwrapOutboundIn(data).readableBytes
    promise?.succeed()
  }
}

/// The parser and the writer of `HTTPServing` as a handler with the types of SwiftNIO's codec.
private final class ServingHandler: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = ByteBuffer

  private var parser = RequestParser()

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    parser.append(unwrapInboundIn(data))
    do throws(RequestRefusal) {
      while let part = try parser.next() {
        switch part {
        case .head(let head): context.fireChannelRead(wrapInboundOut(.head(head.request)))
        case .body(let bytes): context.fireChannelRead(wrapInboundOut(.body(bytes)))
        case .end: context.fireChannelRead(wrapInboundOut(.end(nil)))
        }
      }
    } catch {
      context.fireErrorCaught(error)
    }
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard case .head(let head) = unwrapOutboundIn(data) else {
      promise?.succeed()
      return
    }
    var buffer = context.channel.allocator.buffer(capacity: 1024)
    ResponseHeadWriter(framing: .length(ParsingMessages.responseLength), keepsAlive: true, isHTTP10: false)
      .write(head, to: &buffer)
    context.write(wrapOutboundOut(buffer), promise: promise)
  }
}

/// The messages that are read and written.
private enum ParsingMessages {
  static let fieldCount = 12
  static let chunkCount = 64
  static let chunkBytes = 1024
  static let responseLength: Int64 = 20_480

  static let get = ByteBuffer(string: "GET /photos/2026/11/cat.jpg?width=400 HTTP/1.1\r\n\(requestFields)\r\n")

  /// The request with chunks, as parts of up to 16 KiB, which is what a socket returns.
  static let post: [ByteBuffer] = {
    // A Content-Length would be refused beside the chunks.
    var text = "POST /photos HTTP/1.1\r\n\(requestFields.replacing("DNT: 1", with: "Transfer-Encoding: chunked"))\r\n"
    let chunk = String(repeating: "x", count: chunkBytes)
    for _ in 0..<chunkCount { text += "400\r\n\(chunk)\r\n" }
    var rest = ByteBuffer(string: text + "0\r\n\r\n")
    var parts: [ByteBuffer] = []
    while let part = rest.readSlice(length: min(16_384, rest.readableBytes)), part.readableBytes > 0 {
      // A copy, because each read of a socket has memory of its own.
      parts.append(ByteBuffer(bytes: part.readableBytesView))
    }
    return parts
  }()

  static let response = HTTPResponse(
    status: .ok,
    headerFields: [
      .date: "Sun, 06 Nov 1994 08:49:37 GMT", .server: "etagere", .contentType: "image/webp", .contentLength: "20480",
      .lastModified: "Sat, 05 Nov 1994 08:49:37 GMT", .eTag: "\"65a-1f2e3d4c\"",
      .cacheControl: "public, max-age=3600, stale-while-revalidate=60", .vary: "Accept", .acceptRanges: "bytes",
      .age: "12", .xContentTypeOptions: "nosniff", .contentSecurityPolicy: "script-src 'none'",
    ])

  static let responseHeadBytes =
    "HTTP/1.1 200 OK\r\n\r\n".utf8.count
    + response.headerFields.reduce(0) { $0 + "\($1.name.rawName): \($1.value)\r\n".utf8.count }

  private static let requestFields = """
    Host: images.example.com\r
    Connection: keep-alive\r
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36\r
    Accept: image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8\r
    DNT: 1\r
    Sec-Fetch-Site: same-origin\r
    Sec-Fetch-Mode: no-cors\r
    Sec-Fetch-Dest: image\r
    Referer: https://example.com/gallery\r
    Accept-Encoding: gzip, deflate, br\r
    Accept-Language: en-US,en;q=0.9\r
    If-None-Match: "65a-1f2e3d4c"\r

    """
}
#endif
