#if Server
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import NIOCore
import NIOPosix
import Testing

@testable import HTTPServing

@Suite("Requests and responses of a connection", .timeLimit(.minutes(30)))
struct ResponseTests {
  private struct State: Sendable {
    var requests: [ServerRequest] = []
    var deliveries: [ServerResponse.Delivery] = []
  }

  /// A responder with one body for all requests.
  private struct BodyResponder: HTTPResponder {
    let body: Data
    let state = WatchedState(State())

    init(bytes count: Int) { body = Data(repeating: UInt8(ascii: "b"), count: count) }

    func respond(to request: ServerRequest) async -> ServerResponse {
      state.update { $0.requests.append(request) }
      return response(.ok)
    }

    func respond(to refusal: RequestRefusal, peer: SocketAddress?) -> ServerResponse { response(refusal.status) }

    private func response(_ status: HTTPResponse.Status) -> ServerResponse {
      var response = ServerResponse(head: HTTPResponse(status: status), body: ResourceBody(body))
      response.onEnd = { [state] delivery in state.update { $0.deliveries.append(delivery) } }
      return response
    }
  }

  private typealias Client = NIOAsyncChannel<ByteBuffer, ByteBuffer>

  /// Opens a port with small buffers, and a connection to it that does not read yet.
  private static func connection(_ responder: some HTTPResponder) async throws -> (server: any Channel, client: Client) {
    let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelOption(.autoRead, value: false)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelOption(.socketOption(.so_sndbuf), value: 4_096)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          // Test machines are busy, so no test depends on this time.
          let settings = ConnectionSettings { $0.halfClosedTime = .seconds(600) }
          try channel.pipeline.syncOperations.addHandler(ConnectionHandler(responder, settings, channel: channel))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    let client = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelOption(.autoRead, value: false)
      .channelOption(.socketOption(.so_rcvbuf), value: 4_096)
      .connect(to: try #require(server.localAddress)) { channel in
        channel.eventLoop.makeCompletedFuture { try Client(wrappingChannelSynchronously: channel) }
      }
    return (server, client)
  }

  /// Reads until the other side ends the connection.
  private static func rest(of client: Client) async throws -> String {
    // If the other side has ended the connection already, its bytes wait in the channel, and the option cannot be set.
    try? await client.channel.setOption(.autoRead, value: true).get()
    return try await client.executeThenClose { inbound, _ in
      var text = ""
      for try await bytes in inbound { text += String(buffer: bytes) }
      return text
    }
  }

  @Test(
    "a slow client gets all bytes of the last response, also if it has closed its side",
    arguments: ["GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n", "invalid\r\n\r\n"],
    [false, true])
  func lastResponse(_ request: String, halfCloses: Bool) async throws {
    // Less than the limit above which a write waits.
    let responder = BodyResponder(bytes: 60_000)
    let (server, client) = try await Self.connection(responder)
    try await client.channel.writeAndFlush(ByteBuffer(string: request)).get()
    if halfCloses { try await client.channel.close(mode: .output).get() }
    if request != "invalid\r\n\r\n" {
      // The rest of the response waits for the client.
      await responder.state.wait { !$0.requests.isEmpty }
      #expect(responder.state.read { $0.deliveries.isEmpty })
    }
    let text = try await Self.rest(of: client)
    #expect(text.hasSuffix("\r\n\r\n" + String(repeating: "b", count: 60_000)), "\(text.utf8.count) bytes")
    await responder.state.wait { $0.deliveries.count == 1 }
    #expect(responder.state.read { $0.deliveries.map(\.isComplete) } == [true])
    #expect(responder.state.read { $0.deliveries.map(\.bodyBytes) } == [60_000])
    try await server.close().get()
  }

  /// A responder that sends interim responses before its response, and one for the former request.
  private struct HintingResponder: HTTPResponder {
    let former = WatchedState<ServerRequest?>(nil)

    func respond(to request: ServerRequest) async -> ServerResponse {
      former.read { $0 }?.sendInterimResponse(HTTPResponse(status: .earlyHints, headerFields: [.server: "late"]))
      former.update { $0 = request }
      let fields: HTTPFields = [.server: "s", .connection: "Age", .age: "1"]
      for status: HTTPResponse.Status in [.init(code: 102), .switchingProtocols, .ok, .earlyHints] {
        request.sendInterimResponse(HTTPResponse(status: status, headerFields: fields))
      }
      return ServerResponse(head: HTTPResponse(status: .noContent), body: ResourceBody(Data()))
    }

    func respond(to refusal: RequestRefusal, peer: SocketAddress?) -> ServerResponse {
      ServerResponse(head: HTTPResponse(status: refusal.status), body: ResourceBody(Data()))
    }
  }

  @Test("interim responses are sent before the response to their own request, and to no client of HTTP/1.0")
  func interim() async throws {
    let (server, client) = try await Self.connection(HintingResponder())
    try await client.channel.writeAndFlush(
      ByteBuffer(string: "GET / HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    ).get()
    let hints = "HTTP/1.1 102 Processing\r\nServer: s\r\n\r\nHTTP/1.1 103 Early Hints\r\nServer: s\r\n\r\n"
    let text = try await Self.rest(of: client)
    #expect(
      text == "\(hints)HTTP/1.1 204 No Content\r\n\r\n\(hints)HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
    try await server.close().get()

    let (old, oldClient) = try await Self.connection(HintingResponder())
    try await oldClient.channel.writeAndFlush(ByteBuffer(string: "GET / HTTP/1.0\r\n\r\n")).get()
    #expect(try await Self.rest(of: oldClient) == "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
    try await old.close().get()
  }

  @Test("a client that leaves during a response gets an incomplete delivery with an error")
  func leaving() async throws {
    let responder = BodyResponder(bytes: 1 << 20)
    let (server, client) = try await Self.connection(responder)
    try await client.channel.writeAndFlush(ByteBuffer(string: "GET / HTTP/1.1\r\nHost: h\r\n\r\n")).get()
    await responder.state.wait { !$0.requests.isEmpty }
    try await client.executeThenClose { _, _ in }
    await responder.state.wait { $0.deliveries.count == 1 }
    let delivery = try #require(responder.state.read { $0.deliveries.first })
    #expect(!delivery.isComplete && delivery.error != nil)
    try await server.close().get()
  }

  @Test("a request has all fields of the client, also those that Connection names")
  func fields() async throws {
    let responder = BodyResponder(bytes: 1)
    let (server, client) = try await Self.connection(responder)
    let request = "GET /a?b HTTP/1.1\r\nHost: h\r\nConnection: close, X-Forwarded-For\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n"
    try await client.channel.writeAndFlush(ByteBuffer(string: request)).get()
    _ = try await Self.rest(of: client)
    let received = try #require(responder.state.read { $0.requests.first })
    #expect(received.head.headerFields.map(\.name.canonicalName) == ["host", "connection", "x-forwarded-for"])
    #expect(received.head.authority == "h" && received.head.path == "/a?b" && received.target == "/a?b")
    try await server.close().get()
  }
}
#endif
