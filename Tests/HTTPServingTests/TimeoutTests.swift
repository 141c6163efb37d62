#if Service
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOExtras
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
    await idle.testingEventLoop.advanceTime(by: .milliseconds(400))
    #expect(idle.isActive)
    for channel in [idle, busy] { await channel.testingEventLoop.advanceTime(by: .milliseconds(200)) }
    #expect(!idle.isActive)
    #expect(busy.isActive)
  }

  @Test("a request in that moment gets a response with Connection: close")
  func lastCall() async throws {
    let channel = try await Self.connection()
    try await channel.eventLoop.submit { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }.get()
    await channel.testingEventLoop.advanceTime(by: .milliseconds(400))
    try await channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\nHost: h\r\n\r\n"))
    let response = String(buffer: try await channel.waitForOutboundWrite(as: ByteBuffer.self))
    #expect(response.hasPrefix("HTTP/1.1 "))
    #expect(response.contains("\r\nConnection: close\r\n"))
  }

  /// A body whose pieces come from the test.
  private final class PieceSource: ResourceBody.Source {
    let pieces = WatchedState<[Data]>([])

    func next() async throws(CacheError) -> Data? {
      await pieces.wait { !$0.isEmpty }
      guard let piece = pieces.update({ $0.isEmpty ? nil : $0.removeFirst() }) else { throw .cancelled }
      return piece
    }

    func cancel() {}
    var trailers: HTTPFields? { nil }
  }

  private struct BodyResponder: HTTPResponder {
    let source = PieceSource()

    func respond(to request: ServerRequest) async -> ServerResponse {
      ServerResponse(head: HTTPResponse(status: .ok), body: ResourceBody(length: nil, source: source))
    }

    func respond(to refusal: RequestRefusal, peer: SocketAddress?) -> ServerResponse {
      ServerResponse(head: HTTPResponse(status: refusal.status), body: ResourceBody(Data()))
    }
  }

  @Test("a client that has closed its side gets a long response, until nothing was written for five seconds")
  func halfClosed() async throws {
    let responder = BodyResponder()
    let channel = try await Self.connection(responder)
    try await channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\nHost: h\r\n\r\n"))
    try await channel.eventLoop.submit {
      channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }.get()
    _ = try await channel.waitForOutboundWrite(as: ByteBuffer.self)
    for number in 1...4 {
      await channel.testingEventLoop.advanceTime(by: .seconds(4))
      responder.source.pieces.update { $0.append(Data("\(number)".utf8)) }
      let piece = String(buffer: try await channel.waitForOutboundWrite(as: ByteBuffer.self))
      #expect(piece == "1\r\n\(number)\r\n")
    }
    await channel.testingEventLoop.advanceTime(by: .seconds(4))
    #expect(channel.isActive)
    await channel.testingEventLoop.advanceTime(by: .seconds(2))
    #expect(!channel.isActive)
  }
}
#endif
