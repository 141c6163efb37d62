#if AsyncHTTP
internal import AsyncHTTPClient
internal import CacheCore
internal import NIOCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// One request on its way: between async-http-client, which pushes on an event loop, and the one reader, which pulls.
///
/// What happens is decided by ``TransferState``; this class guards it and carries the consequences out, outside the lock.
final class Transfer: Sendable {
  /// Resumed once, whatever happens: ``TransferState`` lets go of it in the step that hands it out. A checked one would be looked
  /// up by its type at run time with every event.
  typealias Waiter = UnsafeContinuation<Void, Never>

  private let state: Lock<TransferState>
  private let owner: ClientOwner
  private let didEnd: @Sendable (Transfer, _ hadTurn: Bool) -> Void

  /// - Parameters:
  ///   - state: nothing has happened in it yet.
  ///   - owner: who looks at it when it has taken too long.
  ///   - didEnd: called once, whatever the end, outside of any lock; told whether the request had been handed to the client.
  init(
    _ state: sending TransferState, owner: ClientOwner, didEnd: @escaping @Sendable (Transfer, _ hadTurn: Bool) -> Void
  ) {
    self.state = Lock(state)
    self.owner = owner
    self.didEnd = didEnd
  }

  // MARK: The reader's side

  /// Waits for the head; to be called once.
  func head() async throws(CacheError) -> ReceivedHead {
    while true {
      if let answer = state.withLock({ $0.answer }) { return try answer.get() }
      await wait { state, waiter in (state.awaitHead(waiter), TransferState.Consequences()) }
    }
  }

  /// The next bytes, everything that has come meanwhile in one piece; nil at the end.
  func next() async throws(CacheError) -> Data? {
    guard !Task.isCancelled else {
      cancel()
      throw .cancelled
    }
    while true {
      if let ready = perform({ $0.take(at: .now()) }) { return try ready.get()?.data }
      let wait = await wait { state, waiter in state.awaitBytes(waiter, at: .now()) }
      guard wait != .taken else { throw CacheError(.misuse, reason: "the body is read from two places at once") }
    }
  }

  /// The reader wants no more.
  func cancel() { perform { $0.cancel() } }

  /// What was measured.
  var metrics: TransferMetrics { state.withLock { $0.metrics } }

  @discardableResult
  private func wait(
    _ enter: (inout TransferState, Waiter) -> (TransferState.Wait, TransferState.Consequences)
  ) async -> TransferState.Wait {
    var outcome = TransferState.Wait.waiting
    await withTaskCancellationHandler {
      await withUnsafeContinuation { (waiter: Waiter) in
        let (wait, consequences) = state.withLock { enter(&$0, waiter) }
        outcome = wait
        // Whoever wakes the reader may do so from here on: nothing of it may be touched.
        carryOut(consequences)
        if wait != .waiting { waiter.resume() }
      }
    } onCancel: {
      cancel()
    }
    return outcome
  }

  // MARK: The engine's side

  /// The request goes to the client; `launch` returns what stops it. False when it has ended before its turn.
  func start(_ launch: () -> @Sendable () -> Void) -> Bool {
    guard perform({ $0.start(at: .now()) }) else { return false }
    launched(launch())
    return true
  }

  /// What stops the request that is under way now.
  func launched(attempt: Int = 1, _ stop: @escaping @Sendable () -> Void) {
    perform { $0.launched(attempt: attempt, stop) }
  }

  /// It has to wait for its turn; `progress` tells when somebody else's turn came last.
  func enqueue(progress: @escaping @Sendable () -> NIODeadline) { perform { $0.enqueue(progress: progress, at: .now()) } }

  /// The request went out; `overKeptConnection` when it is certain that its connection was there already.
  func sent(overKeptConnection isReused: Bool) { perform { $0.sent(overKeptConnection: isReused, at: .now()) } }

  /// Whether a request that an error has ended is to be sent once more; true counts it.
  func maySendAgain(after error: any Error) -> Bool { state.withLock { $0.sendAgain(after: error) } }

  /// Whether the request's own body is being waited for, which is nobody's fault at the other end.
  func produces(_ isProducing: Bool) { perform { $0.produces(isProducing, at: .now()) } }

  /// The head came.
  func receive(_ head: ReceivedHead) { perform { $0.receive(head, at: .now()) } }

  /// Bytes came. Returns what the next bytes have to wait for; nil: they may come at once.
  func receive(_ bytes: ByteBuffer, on eventLoop: any EventLoop) -> EventLoopFuture<Void>? {
    perform { $0.receive(bytes, at: .now()) { eventLoop.makePromise(of: Void.self) } }
  }

  /// The answer is complete.
  func finish() { perform { $0.finish(at: .now()) } }

  /// Ends it with an error, unless it has ended.
  func fail(_ error: CacheError) { perform { $0.fail(error) } }

  /// Ends it with what the client, or something below it, threw.
  func fail(clientError error: any Error) {
    perform { state in state.fail(CacheError(clientError: error, after: state.progress)) }
  }

  // MARK: Consequences

  @discardableResult
  private func perform<Value>(_ change: (inout TransferState) -> (Value, TransferState.Consequences)) -> Value {
    let (value, consequences) = state.withLock { change(&$0) }
    carryOut(consequences)
    return value
  }

  private func perform(_ change: (inout TransferState) -> TransferState.Consequences) {
    carryOut(state.withLock { change(&$0) })
  }

  private func carryOut(_ consequences: TransferState.Consequences) {
    if let due = consequences.due { owner.expect(due) }
    if let stop = consequences.stop { stop() }
    if let demand = consequences.demand { demand.succeed() }
    // Before the reader is woken: its next request finds the place free.
    if let end = consequences.end { didEnd(self, end.hadTurn) }
    consequences.wake?.resume()
  }

  /// Ends it if it has taken too long; else says when to look again, if at all.
  func look(at now: NIODeadline) -> NIODeadline? {
    var consequences = state.withLock { $0.look(at: now) }
    let due = consequences.due
    consequences.due = nil
    carryOut(consequences)
    return due
  }
}
#endif
