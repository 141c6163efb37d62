#if AsyncHTTP
internal import AsyncHTTPClient
internal import CacheCore
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1
internal import Synchronization

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// One running request. It connects async-http-client, which pushes on an event loop, with the reader, which pulls.
///
/// ``TransferState`` makes the decisions. This class guards it and carries out the consequences outside the lock.
final class Transfer: Sendable {
  /// The reader, which is resumed exactly once: ``TransferState`` clears it in the step that returns it.
  typealias Waiter = Resumption<Void>

  private let state: Lock<TransferState>
  private let owner: ClientOwner
  private let didEnd: @Sendable (Transfer, _ hadSlot: Bool) -> Void

  /// - Parameters:
  ///   - state: A new state.
  ///   - owner: The owner, which checks the transfer for time-outs.
  ///   - didEnd: A closure called once at the end, outside any lock. Its argument tells whether the request was passed to the
  ///     client.
  init(
    _ state: sending TransferState, owner: ClientOwner, didEnd: @escaping @Sendable (Transfer, _ hadSlot: Bool) -> Void
  ) {
    self.state = Lock(state)
    self.owner = owner
    self.didEnd = didEnd
  }

  // MARK: The reader's side

  /// Waits for the head. Called once. Returns the whole body too if it has arrived and may be collected.
  func response() async throws(CacheError) -> (head: TransferHead, body: Data?) {
    while true {
      if let response = state.withLock({ $0.takeResponse() }) {
        let (head, body) = try response.get()
        return (head, body?.data)
      }
      await wait { state, waiter in (state.awaitHead(waiter), TransferState.Consequences()) }
    }
  }

  /// Returns all received bytes in one piece, or `nil` at the end.
  func next() async throws(CacheError) -> Data? {
    guard !Task.isCancelled else {
      cancel()
      throw .cancelled
    }
    while true {
      if let ready = perform({ $0.take(at: .now()) }) { return try ready.get()?.data }
      let wait = await wait { state, waiter in state.awaitBytes(waiter, at: .now()) }
      guard wait != .taken else { throw CacheError(.misuse, reason: "two tasks read a body at the same time") }
    }
  }

  /// Stops the transfer for the reader.
  func cancel() { perform { $0.cancel() } }

  /// The measurements so far.
  var metrics: TransferMetrics { state.withLock { $0.metrics } }

  @discardableResult
  private func wait(
    _ enter: (inout TransferState, Waiter) -> (TransferState.Wait, TransferState.Consequences)
  ) async -> TransferState.Wait {
    var outcome = TransferState.Wait.waiting
    await withTaskCancellationHandler {
      await withResumption { (waiter: Waiter) in
        let (wait, consequences) = state.withLock { enter(&$0, waiter) }
        outcome = wait
        // From now on the reader may be woken, so its state must not be accessed after this.
        carryOut(consequences)
        if wait != .waiting { waiter.resume() }
      }
    } onCancel: {
      cancel()
    }
    return outcome
  }

  // MARK: The engine's side

  /// Passes the request to the client. `launch` returns a closure that cancels it. Returns `false` if the transfer has already
  /// ended.
  func start(_ launch: () -> @Sendable () -> Void) -> Bool {
    guard perform({ $0.start(at: .now()) }) else { return false }
    launched(launch())
    return true
  }

  /// Stores the closure that cancels the current attempt.
  func launched(attempt: Int = 1, _ stop: @escaping @Sendable () -> Void) {
    perform { $0.launched(attempt: attempt, stop) }
  }

  /// Queues the request. `progress` returns the time at which another request of the host last started or ended.
  func enqueue(progress: @escaping @Sendable () -> NIODeadline) { perform { $0.enqueue(progress: progress, at: .now()) } }

  /// Notes that the request was sent. `isReused` is `true` only if its connection certainly existed before.
  func sent(overReusedConnection isReused: Bool) { perform { $0.sent(overReusedConnection: isReused, at: .now()) } }

  /// Returns whether a failed request is to be sent again. If so, the attempt is counted.
  func maySendAgain(after error: any Error) -> Bool { state.withLock { $0.sendAgain(after: error) } }

  /// Notes whether the transfer waits for the source of the request body. That time is not the server's.
  func produces(_ isProducing: Bool) { perform { $0.produces(isProducing, at: .now()) } }

  /// Receives the head.
  func receive(_ head: TransferHead) { perform { $0.receive(head, at: .now()) } }

  /// Receives bytes. Returns a future that the next bytes must wait for, or `nil` if they need not wait.
  func receive(_ bytes: ByteBuffer, on eventLoop: any EventLoop) -> EventLoopFuture<Void>? {
    perform { $0.receive(bytes, at: .now()) { eventLoop.makePromise(of: Void.self) } }
  }

  /// Ends the transfer with a complete response.
  func finish() { perform { $0.finish(at: .now()) } }

  /// Ends the transfer with an error, unless it has ended.
  func fail(_ error: CacheError) { perform { $0.fail(error) } }

  /// Ends the transfer with an error of the client or a layer below it.
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
    // Before the reader is woken, so that its next request finds the slot free.
    if let end = consequences.end { didEnd(self, end.hadSlot) }
    consequences.wake?.resume()
  }

  /// Ends the transfer if it has timed out. Otherwise returns the time of the next check, or `nil` if there is none.
  func checkTimeouts(at now: NIODeadline) -> NIODeadline? {
    var consequences = state.withLock { $0.checkTimeouts(at: now) }
    let due = consequences.due
    consequences.due = nil
    carryOut(consequences)
    return due
  }
}

/// The reader's side of a transfer. Releasing it stops the transfer.
final class TransferBody: ResourceBody.Source {
  private let transfer: Transfer

  init(_ transfer: Transfer) { self.transfer = transfer }

  deinit { transfer.cancel() }

  func next() async throws(CacheError) -> Data? { try await transfer.next() }

  func cancel() { transfer.cancel() }

  /// Always `nil`, because async-http-client does not expose trailers.
  var trailers: HTTPFields? { nil }
}

/// The client's delegate for a request without a body.
///
/// Its calls run on one event loop and need no task between the client and the reader. Requests with a body use ``Upload``.
final class TransferDelegate: HTTPClientResponseDelegate {
  private let plain: PlainRequest
  private let connectionsMade: Int?
  private let hasSent = Lock(false)

  private var transfer: Transfer { plain.transfer }

  /// - Parameters:
  ///   - plain: The request.
  ///   - connectionsMade: The number of connections created before the request was passed to the client.
  init(_ plain: PlainRequest, connectionsMade: Int?) {
    self.plain = plain
    self.connectionsMade = connectionsMade
  }

  func didSendRequestHead(task: HTTPClient.Task<Void>, _ head: HTTPRequestHead) {
    let isSecond = hasSent.withLock { hasSent in
      defer { hasSent = true }
      return hasSent
    }
    // A second head means a redirect, which only a caller's client follows.
    guard !isSecond else { return transfer.fail(.followsRedirects) }
    transfer.sent(overReusedConnection: connectionsMade != nil && connectionsMade == plain.connections?.made)
  }

  func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
    do throws(CacheError) {
      transfer.receive(
        try TransferHead(
          status: Int(head.status.code), version: head.version, headers: head.headers, method: plain.method))
    } catch {
      transfer.fail(error)
    }
    return task.eventLoop.makeSucceededVoidFuture()
  }

  func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
    transfer.receive(buffer, on: task.eventLoop) ?? task.eventLoop.makeSucceededVoidFuture()
  }

  func didFinishRequest(task: HTTPClient.Task<Void>) { transfer.finish() }

  func didReceiveError(task: HTTPClient.Task<Void>, _ error: any Error) {
    guard plain.method.isIdempotent, transfer.maySendAgain(after: error) else { return transfer.fail(clientError: error) }
    // Deferred until the client has removed the lost connection.
    task.eventLoop.execute { [plain] in plain.launchAgain() }
  }
}

/// The earliest time at which a downloader's transfers must be checked for time-outs.
///
/// Each transfer registers the time of its next check. Most transfers end earlier and cost no timer: a later time is found when
/// the earlier timer fires.
struct TimeoutSchedule: ~Copyable, Sendable {
  private static var never: UInt64 { .max }

  private let firesAt = Atomic(never)

  /// Returns whether a timer must be scheduled for this time. Returns `false` if an earlier one is scheduled.
  func set(for due: NIODeadline) -> Bool {
    var current = firesAt.load(ordering: .acquiring)
    while due.uptimeNanoseconds < current {
      let (isSet, found) = firesAt.compareExchange(
        expected: current, desired: due.uptimeNanoseconds, ordering: .acquiringAndReleasing)
      if isSet { return true }
      current = found
    }
    return false
  }

  /// Returns whether the timer that fired is the current one. Returns `false` if an earlier timer has replaced it.
  func isDue(_ due: NIODeadline) -> Bool {
    firesAt.compareExchange(expected: due.uptimeNanoseconds, desired: Self.never, ordering: .acquiringAndReleasing).exchanged
  }
}

/// The head of a response and the length of its body.
struct TransferHead: Sendable {
  /// The status and the fields.
  let response: HTTPResponse
  /// The number of body bytes, or `nil` if the head does not say.
  let bodyLength: Int64?
  /// The name of the protocol in ALPN (RFC 7301).
  let protocolName: String

  /// - Parameters:
  ///   - status: The status code.
  ///   - version: The version of the protocol.
  ///   - headers: The received headers.
  ///   - method: The method of the request. A response to HEAD has no body.
  /// - Throws: `CacheError.Code.malformedResponse` for an invalid status, which traps in HTTPTypes. The connections of
  ///   a caller's client may have no ``ResponseGuard``.
  init(status: Int, version: HTTPVersion, headers: HTTPHeaders, method: HTTPRequest.Method) throws(CacheError) {
    if let error = ResponseGuard.refusal(ofStatus: status) { throw error }
    let fields = HTTPFields(received: headers)
    response = HTTPResponse(status: HTTPResponse.Status(code: status), headerFields: fields)
    protocolName = version.major == 2 ? "h2" : "http/\(version.major).\(version.minor)"
    if method == .head || status == 204 || status == 304 {
      // `Content-Length` stays in the fields, because it describes the response to GET (RFC 9110 §8.6).
      bodyLength = 0
    } else if fields.contains(.transferEncoding) {
      bodyLength = nil
    } else {
      bodyLength = fields.contentLength
    }
  }
}

/// Received bytes that were not read yet. The buffers are joined when they are read. If the body is collected, they are joined
/// when they arrive.
struct Chunk: Sendable {
  private var first: ByteBuffer?
  private var others: [ByteBuffer] = []
  /// The bytes of a body that is collected.
  private var collected: Data?
  /// The number of bytes in all buffers.
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// Creates an empty chunk whose bytes are joined when they are read.
  init() {}

  /// Creates an empty chunk for a body of this length. Its bytes are copied when they arrive, so that the connection can reuse
  /// its buffer.
  init(collecting length: Int) {
    // The length is the server's claim, so it must not reserve a large buffer.
    collected = Data(capacity: min(length, 1 << 20))
  }

  mutating func append(_ part: ByteBuffer) {
    count += part.readableBytes
    if collected != nil { return part.withUnsafeReadableBytes { collected?.append(contentsOf: $0) } }
    if first == nil { first = part } else { others.append(part) }
  }

  /// All bytes, copied once. A buffer is a slice of a larger buffer of the connection, which a stored body must not retain.
  ///
  /// NIOFoundationCompat could return the slice without a copy. But it would link all of Foundation into a program that needs
  /// `FoundationEssentials` only.
  var data: Data {
    guard let first else { return collected ?? Data() }
    guard !others.isEmpty else { return first.withUnsafeReadableBytes { Data($0) } }
    var data = Data(capacity: count)
    for part in CollectionOfOne(first) + others { part.withUnsafeReadableBytes { data.append(contentsOf: $0) } }
    return data
  }
}
#endif
