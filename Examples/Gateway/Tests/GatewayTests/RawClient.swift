import CacheTesting
import Foundation
import NIOCore
import NIOPosix

@testable import GatewayServer

/// A client that sends and receives raw bytes.
final class RawClient: Sendable {
  struct State: Sendable {
    var bytes = ByteBuffer()
    var isClosed = false
    var wasReset = false
  }

  private let channel: any Channel
  private let state: WatchedState<State>

  private init(_ channel: any Channel, _ state: WatchedState<State>) { (self.channel, self.state) = (channel, state) }

  /// - Parameters:
  ///   - port: The port on 127.0.0.1.
  ///   - reads: Whether to read at once. Otherwise received bytes stay in the kernel until ``startReading()``.
  ///   - buffer: The size in bytes of the kernel's buffer for received bytes, or `nil` for the system's.
  static func connect(_ port: Int, reads: Bool = true, buffer: Int? = nil) async throws -> RawClient {
    let state = WatchedState(State())
    var bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
    if let buffer { bootstrap = bootstrap.channelOption(.socketOption(.so_rcvbuf), value: .init(buffer)) }
    let channel =
      try await bootstrap
      .channelOption(.autoRead, value: reads)
      .channelOption(.allowRemoteHalfClosure, value: true)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Collector(state)) }
      }
      .connect(host: "127.0.0.1", port: port).get()
    return RawClient(channel, state)
  }

  func send(_ text: String) async throws { try await send(ByteBuffer(string: text)) }

  func send(_ bytes: ByteBuffer) async throws { try await channel.writeAndFlush(bytes).get() }

  /// Sends bytes, and ignores errors.
  func sendWithoutWaiting(_ bytes: ByteBuffer) { channel.writeAndFlush(bytes, promise: nil) }

  func startReading() async throws { try await channel.setOption(.autoRead, value: true).get() }

  func closeOutput() async throws { try await channel.close(mode: .output).get() }

  func close() { channel.close(promise: nil) }

  var wasReset: Bool { state.read { $0.wasReset } }

  /// Returns the received bytes when the other side has closed.
  func untilClosed() async -> String {
    await state.wait { $0.isClosed }
    return state.read { String(buffer: $0.bytes) }
  }

  /// Returns the received bytes when they contain a text.
  func until(_ text: String) async -> String {
    await state.wait { $0.isClosed || String(buffer: $0.bytes).contains(text) }
    return state.read { String(buffer: $0.bytes) }
  }

  /// Returns the number of received bytes when it has reached `bytes`.
  func until(bytes: Int) async -> Int {
    await state.wait { $0.isClosed || $0.bytes.readableBytes >= bytes }
    return state.read { $0.bytes.readableBytes }
  }

  /// Returns the received bytes when the connection has been closed.
  func allBytes() async -> ByteBuffer {
    await state.wait { $0.isClosed }
    return state.read { $0.bytes }
  }

  /// Returns the next complete response. Bytes after it stay for the next call.
  func answer(to method: String = "GET") async throws -> RawAnswer {
    await state.wait { $0.isClosed || RawAnswer($0.bytes, to: method, atEnd: false) != nil }
    return try state.update { state in
      guard let answer = RawAnswer(state.bytes, to: method, atEnd: state.isClosed) else {
        return Result<RawAnswer, NoAnswer>.failure(NoAnswer(got: String(buffer: state.bytes)))
      }
      state.bytes.moveReaderIndex(forwardBy: answer.length)
      return .success(answer)
    }.get()
  }

  /// Returns the status document once a condition holds. The wait is needed because a response reaches its client before it is
  /// counted.
  func document(
    _ target: String = "/status.json", where isReady: (StatusDocument) -> Bool
  ) async throws -> (StatusDocument, RawAnswer) {
    var last: (StatusDocument, RawAnswer)?
    try await Polling.until {
      try await send("GET \(target) HTTP/1.1\r\nHost: h\r\n\r\n")
      let answer = try await answer()
      let document = try JSONDecoder().decode(StatusDocument.self, from: Data(answer.body.utf8))
      last = (document, answer)
      return isReady(document)
    }
    guard let last else { throw NoAnswer(got: "") }
    return last
  }

  struct NoAnswer: Error { var got: String }

  private final class Collector: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let state: WatchedState<State>

    init(_ state: WatchedState<State>) { self.state = state }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let bytes = unwrapInboundIn(data)
      state.update { _ = $0.bytes.writeImmutableBuffer(bytes) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
      if case .some(.inputClosed) = event as? ChannelEvent { state.update { $0.isClosed = true } }
    }

    func channelInactive(context: ChannelHandlerContext) { state.update { $0.isClosed = true } }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      state.update { ($0.isClosed, $0.wasReset) = (true, true) }
      context.close(promise: nil)
    }
  }
}
