#if Server
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import NIOCore
import NIOEmbedded
import Testing

@testable import HTTPServing

@Suite("Connections of slow clients")
struct TimeoutTests {
  /// A connection with a clock that the test advances.
  private static func connection(_ responder: any HTTPResponder = StatusResponder()) async throws -> NIOAsyncTestingChannel {
    let settings = ConnectionSettings { ($0.clientTimeout, $0.lingerTime) = (.seconds(60), .seconds(2)) }
    let channel = NIOAsyncTestingChannel()
    try await channel.eventLoop.submit {
      try channel.pipeline.syncOperations.addHandler(ConnectionHandler(responder, settings, channel: channel))
    }.get()
    try await channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).get()
    return channel
  }

  private struct StatusResponder: HTTPResponder {
    func respond(to request: ServerRequest) async -> ServerResponse {
      ServerResponse(head: HTTPResponse(status: .ok), body: ResourceBody(Data()))
    }

    func respond(to refusal: RequestRefusal, peer: SocketAddress?) -> ServerResponse {
      ServerResponse(head: HTTPResponse(status: refusal.status), body: ResourceBody(Data()))
    }
  }

  @Test("a connection without a request is closed without a response")
  func idle() async throws {
    let channel = try await Self.connection()
    await channel.testingEventLoop.advanceTime(by: .seconds(59))
    #expect(channel.isActive)
    await channel.testingEventLoop.advanceTime(by: .seconds(2))
    #expect(!channel.isActive)
    #expect(try await channel.readOutbound(as: ByteBuffer.self) == nil)
  }

  @Test("a head that arrives too slowly is a 408")
  func trickle() async throws {
    let channel = try await Self.connection()
    for _ in 0..<6 {
      try await channel.writeInbound(ByteBuffer(string: "G"))
      await channel.testingEventLoop.advanceTime(by: .seconds(11))
    }
    let response = try #require(try await channel.readOutbound(as: ByteBuffer.self))
    #expect(String(buffer: response).hasPrefix("HTTP/1.1 408 Request Timeout\r\n"))
  }

  @Test("a shutdown closes idle connections after a moment, and leaves a connection with a partial head open")
  func quiesce() async throws {
    let (idle, busy) = (try await Self.connection(), try await Self.connection())
    try await busy.writeInbound(ByteBuffer(string: "GET / HT"))
    for channel in [idle, busy] {
      try await channel.eventLoop.submit { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }.get()
    }
    await idle.testingEventLoop.advanceTime(by: .milliseconds(1_900))
    #expect(idle.isActive)
    for channel in [idle, busy] { await channel.testingEventLoop.advanceTime(by: .milliseconds(200)) }
    #expect(!idle.isActive)
    #expect(busy.isActive)
  }

  @Test("a request in that moment gets a response with Connection: close")
  func lastCall() async throws {
    let channel = try await Self.connection()
    try await channel.eventLoop.submit { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }.get()
    await channel.testingEventLoop.advanceTime(by: .milliseconds(1_900))
    try await channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\nHost: h\r\n\r\n"))
    let response = String(buffer: try await channel.waitForOutboundWrite(as: ByteBuffer.self))
    #expect(response.hasPrefix("HTTP/1.1 "))
    #expect(response.contains("\r\nConnection: close\r\n"))
  }

  @Test("a shutdown during a response leaves the connection open for the next request that its head promised")
  func promisedRequest() async throws {
    let responder = BodyResponder()
    let channel = try await Self.connection(responder)
    try await channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\nHost: h\r\n\r\n"))
    responder.source.give("a")
    let head = String(buffer: try await channel.waitForOutboundWrite(as: ByteBuffer.self))
    #expect(!head.contains("Connection"))
    try await channel.eventLoop.submit { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }.get()
    responder.source.give(nil)
    var text = ""
    while !text.hasSuffix("0\r\n\r\n") { text += String(buffer: try await channel.waitForOutboundWrite(as: ByteBuffer.self)) }
    await channel.testingEventLoop.advanceTime(by: .milliseconds(1_900))
    try await channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\nHost: h\r\n\r\n"))
    responder.source.give(nil)
    text = ""
    while !text.hasSuffix("0\r\n\r\n") { text += String(buffer: try await channel.waitForOutboundWrite(as: ByteBuffer.self)) }
    #expect(text.contains("\r\nConnection: close\r\n"))
    try await Polling.until {
      await channel.testingEventLoop.run()
      return !channel.isActive
    }
  }

  @Test("a shutdown closes a connection that sends nothing after the promised response")
  func unusedPromise() async throws {
    let responder = BodyResponder()
    let channel = try await Self.connection(responder)
    try await channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\nHost: h\r\n\r\n"))
    responder.source.give("a")
    _ = try await channel.waitForOutboundWrite(as: ByteBuffer.self)
    try await channel.eventLoop.submit { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }.get()
    responder.source.give(nil)
    var text = ""
    while !text.hasSuffix("0\r\n\r\n") { text += String(buffer: try await channel.waitForOutboundWrite(as: ByteBuffer.self)) }
    #expect(channel.isActive)
    await channel.testingEventLoop.advanceTime(by: .milliseconds(2_100))
    #expect(!channel.isActive)
  }

  @Test("empty lines before a request do not extend the time of an idle connection")
  func emptyLines() async throws {
    let channel = try await Self.connection()
    for _ in 0..<5 {
      try await channel.writeInbound(ByteBuffer(string: "\r\n"))
      await channel.testingEventLoop.advanceTime(by: .seconds(11))
    }
    #expect(channel.isActive)
    await channel.testingEventLoop.advanceTime(by: .seconds(6))
    #expect(!channel.isActive)
    #expect(try await channel.readOutbound(as: ByteBuffer.self) == nil)
  }

  @Test(
    "the bytes of chunk sizes and trailers do not extend the time for a body",
    arguments: ["", "1;", "1\r\na\r\n0\r\nA: "])
  func framingBytes(_ start: String) async throws {
    let channel = try await Self.connection(ReadingResponder())
    try await channel.writeInbound(
      ByteBuffer(string: "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + start))
    let timer = Task { [channel] in
      let response = String(buffer: try await channel.waitForOutboundWrite(as: ByteBuffer.self))
      #expect(response.hasPrefix("HTTP/1.1 408 "), "\(response)")
    }
    for _ in 0..<7 where channel.isActive {
      // A digit of a chunk size, a byte of an extension, or a byte of a trailer.
      _ = try? await channel.writeInbound(ByteBuffer(string: "0"))
      await channel.testingEventLoop.advanceTime(by: .seconds(11))
    }
    try await timer.value
  }

  /// A responder that reads the body of a request, and reports its error.
  private struct ReadingResponder: HTTPResponder {
    func respond(to request: ServerRequest) async -> ServerResponse {
      do throws(CacheError) {
        while try await request.body?.source.next() != nil {}
        return ServerResponse(head: HTTPResponse(status: .ok), body: ResourceBody(Data()))
      } catch {
        return ServerResponse(head: HTTPResponse(status: .init(code: error.status ?? 500)), body: ResourceBody(Data()))
      }
    }

    func respond(to refusal: RequestRefusal, peer: SocketAddress?) -> ServerResponse {
      ServerResponse(head: HTTPResponse(status: refusal.status), body: ResourceBody(Data()))
    }
  }

  /// A body whose pieces come from the test.
  private final class PieceSource: ResourceBody.Source {
    struct State: Sendable {
      var pieces: [Result<Data?, CacheError>] = []
      /// The number of calls of `next()`.
      var reads = 0
    }

    let state = WatchedState(State())

    /// Gives the next piece, or the end.
    func give(_ text: String?) { state.update { $0.pieces.append(.success(text.map { Data($0.utf8) })) } }

    func next() async throws(CacheError) -> Data? {
      state.update { $0.reads += 1 }
      await state.wait { !$0.pieces.isEmpty }
      guard let piece = state.update({ $0.pieces.isEmpty ? nil : $0.pieces.removeFirst() }) else { throw .cancelled }
      return try piece.get()
    }

    func cancel() {}
    var trailers: HTTPFields? { nil }
  }

  private struct BodyResponder: HTTPResponder {
    let source = PieceSource()
    var length: Int64?

    func respond(to request: ServerRequest) async -> ServerResponse {
      var response = ServerResponse(head: HTTPResponse(status: .ok), body: ResourceBody(length: length, source: source))
      response.onFailure = { ServerResponse(head: HTTPResponse(status: .badGateway), body: ResourceBody(Data($0.reason.utf8))) }
      return response
    }

    func respond(to refusal: RequestRefusal, peer: SocketAddress?) -> ServerResponse {
      ServerResponse(head: HTTPResponse(status: refusal.status), body: ResourceBody(Data()))
    }
  }

  @Test("a client that has closed its side gets a long response, until nothing was written for a second")
  func halfClosed() async throws {
    let responder = BodyResponder()
    let channel = try await Self.connection(responder)
    try await channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\nHost: h\r\n\r\n"))
    try await channel.eventLoop.submit {
      channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }.get()
    await responder.source.state.wait { $0.reads > 0 }
    await channel.testingEventLoop.advanceTime(by: .milliseconds(20))
    _ = try await channel.waitForOutboundWrite(as: ByteBuffer.self)
    for number in 1...4 {
      // The head counts as written at its flush.
      await channel.testingEventLoop.advanceTime(by: .milliseconds(number == 1 ? 985 : 900))
      responder.source.give("\(number)")
      let piece = String(buffer: try await channel.waitForOutboundWrite(as: ByteBuffer.self))
      #expect(piece == "1\r\n\(number)\r\n")
    }
    await channel.testingEventLoop.advanceTime(by: .milliseconds(900))
    #expect(channel.isActive)
    await channel.testingEventLoop.advanceTime(by: .milliseconds(200))
    #expect(!channel.isActive)
  }

  @Test("a client that has closed its side and gets nothing for a second loses its request")
  func goneClient() async throws {
    let responder = BodyResponder()
    let channel = try await Self.connection(responder)
    try await channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\nHost: h\r\n\r\n"))
    try await channel.eventLoop.submit { channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }.get()
    await channel.testingEventLoop.advanceTime(by: .milliseconds(1_100))
    #expect(!channel.isActive)
  }

  @Test(
    "a body that fails before the first byte of its response was written becomes an error response",
    arguments: ["GET", "HEAD"], [nil, 4] as [Int64?])
  func failingBody(_ method: String, length: Int64?) async throws {
    let responder = BodyResponder(length: length)
    let channel = try await Self.connection(responder)
    responder.source.state.update { $0.pieces = [.failure(CacheError(.malformedResponse, reason: "no chunk"))] }
    try await channel.writeInbound(ByteBuffer(string: "\(method) / HTTP/1.1\r\nHost: h\r\n\r\n"))
    let text = String(buffer: try await channel.waitForOutboundWrite(as: ByteBuffer.self))
    #expect(text.hasPrefix("HTTP/1.1 502 Bad Gateway\r\n") && text.hasSuffix(method == "HEAD" ? "\r\n\r\n" : "\r\n\r\nno chunk"))
    #expect(channel.isActive)
  }

  @Test("a body with a wrong length becomes an error response, if no byte was written", arguments: ["12345", nil])
  func wrongLength(_ piece: String?) async throws {
    let responder = BodyResponder(length: 4)
    let channel = try await Self.connection(responder)
    responder.source.give(piece)
    responder.source.give(nil)
    try await channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\nHost: h\r\n\r\n"))
    let text = String(buffer: try await channel.waitForOutboundWrite(as: ByteBuffer.self))
    #expect(text.hasPrefix("HTTP/1.1 502 Bad Gateway\r\n"))
  }
}
#endif
