#if AsyncHTTP
@testable import AsyncHTTPNetworking
import CacheCore
import Foundation
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOPosix
import Testing

@Suite("State of a transfer")
struct TransferStateTests {
  private static func at(_ seconds: Int64) -> NIODeadline { .uptimeNanoseconds(0) + .seconds(1_000 + seconds) }

  private static func head(length: Int?) throws -> TransferHead {
    let headers: HTTPHeaders = length.map { ["Content-Length": "\($0)"] } ?? [:]
    return try TransferHead(status: 200, version: .http1_1, headers: headers, method: .get)
  }

  /// Returns a transfer that was sent at second 0 and waits for its head.
  private static func sent(idle: Int64 = 10, total: Int64? = nil) -> TransferState {
    let limits = TransferLimits(idle: .seconds(idle), total: total.map { .seconds($0) }, unreadBytes: 100)
    var state = TransferState(limits: limits, calledAt: at(0))
    _ = state.start(at: at(0))
    _ = state.sent(overReusedConnection: true, at: at(0))
    return state
  }

  /// Receives few enough bytes that the sender need not wait.
  private static func receive(_ count: Int, at now: NIODeadline, in state: inout TransferState) -> TransferState.Consequences {
    state.receive(ByteBuffer(repeating: 1, count: count), at: now) { MultiThreadedEventLoopGroup.singleton.any().makePromise() }.1
  }

  private func error(of state: inout TransferState) -> CacheError? {
    if case .failure(let error)? = state.take(at: Self.at(0)).0 { error } else { nil }
  }

  @Test("bytes received before a failure are returned before the error, but not after a cancellation")
  func bytesBeforeTheError() throws {
    var state = Self.sent()
    _ = state.receive(try Self.head(length: 10), at: Self.at(0))
    _ = Self.receive(4, at: Self.at(0), in: &state)
    _ = state.finish(at: Self.at(0))
    var cancelled = state
    #expect(try state.response?.get().bodyLength == 10)
    #expect(try state.take(at: Self.at(0)).0?.get()?.count == 4)
    #expect(error(of: &state)?.code == .truncatedBody)
    _ = cancelled.cancel()
    #expect(error(of: &cancelled)?.code == .truncatedBody)
  }

  /// Returns a transfer whose reader permits it to collect up to 200 bytes, after the head.
  private static func collecting(length: Int?, status: Int = 200) throws -> (TransferState, TransferState.Consequences) {
    var state = TransferState(limits: TransferLimits(idle: .seconds(10), unreadBytes: 100, collectUpTo: 200), calledAt: at(0))
    _ = state.start(at: at(0))
    _ = state.sent(overReusedConnection: true, at: at(0))
    let headers: HTTPHeaders = length.map { ["Content-Length": "\($0)"] } ?? [:]
    let head = try TransferHead(status: status, version: .http1_1, headers: headers, method: .get)
    let consequences = state.receive(head, at: at(1))
    return (state, consequences)
  }

  @Test("the reader of a body that is collected is woken once, at the end")
  func collectedBody() async throws {
    var (state, _) = try Self.collecting(length: 200)
    #expect(state.takeResponse() == nil)
    await withResumption { (waiter: Transfer.Waiter) in
      #expect(state.awaitHead(waiter) == .waiting)
      // The sender never waits for a reader that waits for the end.
      for _ in 0..<4 { #expect(Self.receive(50, at: Self.at(2), in: &state).wake == nil) }
      state.finish(at: Self.at(3)).wake?.resume()
    }
    let (head, body) = try #require(try state.takeResponse()?.get())
    #expect(head.bodyLength == 200 && body?.data == Data(repeating: 1, count: 200))
    #expect(state.metrics.timeToHead == .seconds(1) && state.metrics.total == .seconds(3))
  }

  @Test(
    "a body is not collected if it is too long, of unknown length, or that of an error",
    arguments: [(201, 200), (nil, 200), (9, 503)] as [(Int?, Int)])
  func streamedBody(length: Int?, status: Int) throws {
    var (state, _) = try Self.collecting(length: length, status: status)
    let (head, body) = try #require(try state.takeResponse()?.get())
    #expect(head.response.status.code == status && body == nil)
    _ = Self.receive(9, at: Self.at(2), in: &state)
    #expect(try state.take(at: Self.at(2)).0?.get()?.count == 9)
  }

  @Test("the memory for a body that is collected does not depend on a length that the server invents")
  func claimedLength() throws {
    var state = TransferState(limits: TransferLimits(idle: .seconds(10), collectUpTo: .max), calledAt: Self.at(0))
    _ = state.start(at: Self.at(0))
    _ = state.receive(try Self.head(length: .max), at: Self.at(1))
    _ = Self.receive(50, at: Self.at(2), in: &state)
    #expect(state.takeResponse() == nil)
    _ = state.finish(at: Self.at(3))
    #expect(try state.takeResponse()?.get().0.bodyLength == .max)
    #expect(try state.take(at: Self.at(3)).0?.get()?.count == 50)
    #expect(error(of: &state)?.code == .truncatedBody)
  }

  @Test("a length with a sign is not a length", arguments: ["+5", "-5"])
  func signedLength(text: String) throws {
    let head = try TransferHead(status: 200, version: .http1_1, headers: ["Content-Length": text], method: .get)
    #expect(head.bodyLength == nil)
  }

  @Test("a short body that has arrived before its head was read is returned with it")
  func arrivedBody() throws {
    var (state, _) = try Self.collecting(length: nil)
    _ = Self.receive(200, at: Self.at(2), in: &state)
    state.finish(at: Self.at(3)).demand?.succeed()
    #expect(try state.takeResponse()?.get().body?.count == 200)
    (state, _) = try Self.collecting(length: nil)
    _ = Self.receive(201, at: Self.at(2), in: &state)
    state.finish(at: Self.at(3)).demand?.succeed()
    #expect(try #require(try state.takeResponse()?.get()).body == nil)
  }

  @Test("a body that fails while it is collected has its head and its bytes, and a cancelled one has neither")
  func failedCollecting() throws {
    var (state, _) = try Self.collecting(length: 200)
    _ = Self.receive(50, at: Self.at(2), in: &state)
    var cancelled = state
    _ = state.finish(at: Self.at(3))
    let (head, body) = try #require(try state.takeResponse()?.get())
    #expect(head.bodyLength == 200 && body == nil)
    #expect(try state.take(at: Self.at(3)).0?.get()?.data == Data(repeating: 1, count: 50))
    #expect(error(of: &state)?.code == .truncatedBody)
    _ = cancelled.cancel()
    #expect(throws: CacheError.self) { _ = try cancelled.takeResponse()?.get() }
  }

  @Test("silence while a body is collected is limited, also if its reader does not wait yet")
  func silentCollecting() throws {
    var (state, consequences) = try Self.collecting(length: 200)
    #expect(consequences.due == Self.at(11))
    _ = Self.receive(50, at: Self.at(2), in: &state)
    #expect(state.checkTimeouts(at: Self.at(11)).due == Self.at(12))
    #expect(state.checkTimeouts(at: Self.at(12)).end != nil)
    #expect(try state.takeResponse()?.get().body == nil)
  }

  @Test("a server that is silent before the head fails at the idle timeout")
  func silentBeforeHead() throws {
    var state = Self.sent()
    let early = state.checkTimeouts(at: Self.at(9))
    #expect(early.end == nil)
    #expect(early.due == Self.at(10))
    #expect(state.checkTimeouts(at: Self.at(10)).end != nil)
    #expect(error(of: &state)?.code == .timedOut)
    #expect(error(of: &state)?.reason == "no data arrived for 10 s")
  }

  @Test("before the request is sent, silence is limited by the client only")
  func connecting() throws {
    var state = TransferState(limits: TransferLimits(idle: .seconds(10)), calledAt: Self.at(0))
    _ = state.start(at: Self.at(0))
    #expect(state.checkTimeouts(at: Self.at(50)).end == nil)
    _ = state.sent(overReusedConnection: false, at: Self.at(55))
    #expect(state.checkTimeouts(at: Self.at(65)).end != nil)
  }

  @Test("every byte restarts the idle timeout")
  func activity() async throws {
    var state = Self.sent()
    _ = state.receive(try Self.head(length: 1_000), at: Self.at(9))
    await withResumption { (waiter: Transfer.Waiter) in
      #expect(state.awaitBytes(waiter, at: Self.at(9)).0 == .waiting)
      #expect(state.checkTimeouts(at: Self.at(12)).due == Self.at(19))
      Self.receive(5, at: Self.at(18), in: &state).wake?.resume()
    }
    #expect(try state.take(at: Self.at(18)).0?.get()?.count == 5)
  }

  @Test("time without a reader does not count, and the idle timeout restarts with the next read")
  func slowReader() async throws {
    var state = Self.sent()
    _ = state.receive(try Self.head(length: 1_000), at: Self.at(1))
    let unread = state.checkTimeouts(at: Self.at(100))
    #expect(unread.end == nil)
    #expect(unread.due == nil)
    await withResumption { (waiter: Transfer.Waiter) in
      #expect(state.awaitBytes(waiter, at: Self.at(200)).1.due == Self.at(210))
      #expect(state.checkTimeouts(at: Self.at(209)).end == nil)
      state.checkTimeouts(at: Self.at(210)).wake?.resume()
    }
    let error = error(of: &state)
    #expect(error?.code == .timedOut)
    #expect(error?.reason == "no data arrived for 10 s during the body")
  }

  @Test("time in which the request body is not ready does not count")
  func slowUpload() throws {
    var state = Self.sent()
    _ = state.produces(true, at: Self.at(1))
    #expect(state.checkTimeouts(at: Self.at(50)).end == nil)
    #expect(state.produces(false, at: Self.at(60)).due == Self.at(70))
    #expect(state.checkTimeouts(at: Self.at(70)).end != nil)
  }

  @Test("the total limit counts from the call, regardless of the slow side")
  func total() throws {
    var state = Self.sent(idle: 10, total: 30)
    _ = state.receive(try Self.head(length: nil), at: Self.at(1))
    #expect(state.checkTimeouts(at: Self.at(10)).due == Self.at(30))
    #expect(state.checkTimeouts(at: Self.at(30)).end != nil)
    #expect(error(of: &state)?.reason == "the response was not complete after 30 s")
  }

  @Test("a queued request may wait as long as others make progress")
  func queue() throws {
    var state = TransferState(limits: TransferLimits(idle: .seconds(10)), calledAt: Self.at(0))
    let lastProgress = Lock(Self.at(0))
    _ = state.enqueue(progress: { lastProgress.withLock { $0 } }, at: Self.at(0))
    lastProgress.withLock { $0 = Self.at(8) }
    let consequences = state.checkTimeouts(at: Self.at(10))
    #expect(consequences.end == nil)
    #expect(consequences.due == Self.at(18))
    let end = state.checkTimeouts(at: Self.at(18)).end
    #expect(end?.hadSlot == false)
    #expect(!state.start(at: Self.at(19)).0)
  }

  @Test("the time in the queue is measured")
  func queued() throws {
    var state = TransferState(limits: TransferLimits(idle: .seconds(10)), calledAt: Self.at(0))
    _ = state.enqueue(progress: { Self.at(0) }, at: Self.at(0))
    #expect(state.start(at: Self.at(3)).0)
    _ = state.receive(try Self.head(length: 0), at: Self.at(5))
    _ = state.finish(at: Self.at(6))
    #expect(state.metrics.queued == .seconds(3))
    #expect(state.metrics.timeToHead == .seconds(2))
    #expect(state.metrics.total == .seconds(6))
    #expect(state.metrics.protocolName == "http/1.1")
  }

  @Test("unread bytes make the sender wait until they are read")
  func backPressure() throws {
    var state = Self.sent()
    _ = state.receive(try Self.head(length: nil), at: Self.at(0))
    let loop = MultiThreadedEventLoopGroup.singleton.any()
    let first = state.receive(ByteBuffer(repeating: 1, count: 99), at: Self.at(1)) { loop.makePromise() }
    #expect(first.0 == nil)
    let second = state.receive(ByteBuffer(repeating: 2, count: 1), at: Self.at(1)) { loop.makePromise() }
    #expect(second.0 != nil)
    let (taken, consequences) = state.take(at: Self.at(50))
    let chunk = try taken?.get() ?? nil
    #expect(chunk?.data == Data(repeating: 1, count: 99) + [2])
    consequences.demand?.succeed()
    #expect(consequences.demand != nil)
  }

  @Test("an end before the announced length is a truncated body with both numbers, and excess bytes are an error")
  func lengths() throws {
    var short = Self.sent()
    _ = short.receive(try Self.head(length: 10), at: Self.at(0))
    _ = Self.receive(4, at: Self.at(0), in: &short)
    #expect(short.finish(at: Self.at(0)).end != nil)
    #expect(try short.take(at: Self.at(0)).0?.get()?.count == 4)
    #expect(error(of: &short)?.code == .truncatedBody)
    #expect(error(of: &short)?.reason == "the body ended after 4 of 10 bytes")

    var long = Self.sent()
    _ = long.receive(try Self.head(length: 3), at: Self.at(0))
    #expect(Self.receive(4, at: Self.at(0), in: &long).end != nil)
    #expect(error(of: &long)?.code == .malformedResponse)
  }

  @Test("a transfer that is cancelled before its request can be stopped stops it later")
  func latchedStop() throws {
    var state = Self.sent()
    #expect(state.cancel().end?.hadSlot == true)
    #expect(state.launched {}.stop != nil)
    #expect(state.cancel().end == nil)
  }

  @Test("the last attempt is stopped, and not the first one whose stop closure arrived late")
  func lateStop() throws {
    var state = TransferState(limits: TransferLimits(idle: .seconds(10), attempts: 3), calledAt: Self.at(0))
    _ = state.start(at: Self.at(0))
    #expect(state.sendAgain(after: ChannelError.eof) == true)
    let stopped = Lock(0)
    _ = state.launched(attempt: 2) { stopped.withLock { $0 = 2 } }
    _ = state.launched(attempt: 1) { stopped.withLock { $0 = 1 } }
    state.cancel().stop?()
    let last = stopped.withLock { $0 }
    #expect(last == 2)
  }

  @Test("a request that meets a lost reused connection is sent again up to the limit, but not after the head")
  func sendingAgain() throws {
    let limits = TransferLimits(idle: .seconds(10), attempts: 3)
    var state = TransferState(limits: limits, calledAt: Self.at(0))
    _ = state.start(at: Self.at(0))
    for _ in 0..<2 {
      _ = state.sent(overReusedConnection: true, at: Self.at(0))
      #expect(state.sendAgain(after: HTTPParserError.invalidEOFState) == false)
      #expect(state.sendAgain(after: ChannelError.connectTimeout(.seconds(1))) == false)
      #expect(state.sendAgain(after: ChannelError.eof) == true)
    }
    _ = state.sent(overReusedConnection: true, at: Self.at(0))
    #expect(state.sendAgain(after: ChannelError.eof) == false)
    #expect(state.metrics.attempts == 3)

    // A new connection that is lost after the request was sent. The server may have processed the request.
    var fresh = TransferState(limits: limits, calledAt: Self.at(0))
    _ = fresh.start(at: Self.at(0))
    _ = fresh.sent(overReusedConnection: false, at: Self.at(0))
    #expect(fresh.sendAgain(after: ChannelError.eof) == false)
    var reporting = TransferState(
      limits: TransferLimits(idle: .seconds(10), attempts: 3, reportsLosses: true), calledAt: Self.at(0))
    _ = reporting.start(at: Self.at(0))
    _ = reporting.sent(overReusedConnection: true, at: Self.at(0))
    // Bytes had arrived, or the connection was new.
    #expect(reporting.sendAgain(after: ChannelError.eof) == false)
    #expect(reporting.sendAgain(after: LostReusedConnection(cause: ChannelError.eof)) == true)
    // The connection reports that it is not new.
    #expect(fresh.sendAgain(after: LostReusedConnection(cause: ChannelError.eof)) == true)
    #expect(fresh.metrics.attempts == 2)

    var unsent = TransferState(limits: TransferLimits(idle: .seconds(10)), calledAt: Self.at(0))
    _ = unsent.start(at: Self.at(0))
    for _ in 0..<2 { #expect(unsent.sendAgain(after: ChannelError.eof) == true) }
    #expect(unsent.sendAgain(after: ChannelError.eof) == false)

    // Each of several connections may be closing.
    var closing = TransferState(limits: TransferLimits(idle: .seconds(10), attempts: 9), calledAt: Self.at(0))
    _ = closing.start(at: Self.at(0))
    for _ in 0..<8 { #expect(closing.sendAgain(after: ChannelError.eof) == true) }
    #expect(closing.sendAgain(after: ChannelError.eof) == false)

    var once = TransferState(limits: TransferLimits(idle: .seconds(10)), calledAt: Self.at(0))
    _ = once.start(at: Self.at(0))
    _ = once.sent(overReusedConnection: true, at: Self.at(0))
    #expect(once.sendAgain(after: ChannelError.eof) == false)

    var responded = TransferState(limits: limits, calledAt: Self.at(0))
    _ = responded.start(at: Self.at(0))
    _ = responded.sent(overReusedConnection: true, at: Self.at(0))
    _ = responded.receive(try Self.head(length: 3), at: Self.at(0))
    #expect(responded.sendAgain(after: ChannelError.eof) == false)
  }

  @Test("a complete body can be cancelled while it is unread")
  func cancelledWhole() throws {
    var state = Self.sent()
    _ = state.receive(try Self.head(length: 3), at: Self.at(0))
    _ = Self.receive(3, at: Self.at(0), in: &state)
    _ = state.finish(at: Self.at(0))
    _ = state.fail(CacheError(.other, reason: "too late"))
    #expect(error(of: &state) == nil)
    var other = Self.sent()
    _ = other.receive(try Self.head(length: 3), at: Self.at(0))
    _ = Self.receive(3, at: Self.at(0), in: &other)
    _ = other.finish(at: Self.at(0))
    _ = other.cancel()
    #expect(error(of: &other)?.isCancellation == true)
  }
}
#endif
