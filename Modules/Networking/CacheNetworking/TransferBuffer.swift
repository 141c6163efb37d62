internal import CacheCore
internal import Foundation
internal import HTTPTypes

/// The events of one transfer that its reader has not received yet: a head, any number of chunks, one end.
///
/// A value without a lock or a thread. ``SessionDataTask`` guards it and resumes the reader.
struct TransferBuffer {
  typealias Event = SessionDataTask.Event

  /// A waiting reader and its event, to be resumed outside the lock.
  struct WakeUp {
    let continuation: Resumption<Event>
    let event: Event

    func callAsFunction() { continuation.resume(returning: event) }
  }

  private enum Reader {
    case reading
    /// The reader's next event is the end, with this error.
    case cancelled(CacheError)
    case finished
  }

  private enum Outcome { case complete, failed(CacheError) }

  private var reader = Reader.reading
  private var waiting: Resumption<Event>?
  /// The head, until the reader receives it.
  private var head: HTTPResponse?
  private var hasReceivedHead = false
  /// Whether the reader gets the head at the end of the transfer, with the whole body.
  private var isCollecting = false
  /// The received chunks. Those before ``taken`` were read and are empty.
  private var chunks: [Data] = []
  private var taken = 0
  private var outcome: Outcome?
  /// The number of received bytes that were not read.
  private(set) var retainedBytes = 0

  /// Whether the transfer has ended.
  var hasEnded: Bool { outcome != nil }

  // MARK: The transfer

  /// - Parameter isCollecting: Whether the reader gets the head at the end of the transfer, with the whole body.
  mutating func receive(head: HTTPResponse, isCollecting: Bool = false) {
    guard outcome == nil, !hasReceivedHead else { return }
    self.head = head
    self.isCollecting = isCollecting
    hasReceivedHead = true
  }

  mutating func receive(_ data: Data) {
    guard outcome == nil, hasReceivedHead, !data.isEmpty else { return }
    chunks.append(data)
    retainedBytes += data.count
  }

  /// Ends the transfer. Returns `false` if it had ended before.
  mutating func end(_ error: CacheError?) -> Bool {
    guard outcome == nil else { return false }
    outcome = error.map { .failed($0) } ?? .complete
    return true
  }

  // MARK: The reader

  /// Returns the reader's next event, or `nil` if there is none yet.
  mutating func next() -> Event? {
    switch reader {
    case .cancelled(let error):
      reader = .finished
      return .end(error)
    case .finished: return .end(.cancelled)
    case .reading: break
    }
    if let head {
      guard !isCollecting || outcome != nil else { return nil }
      self.head = nil
      return .head(head)
    }
    if taken < chunks.count { return .data(take()) }
    guard let outcome else { return nil }
    reader = .finished
    if case .failed(let error) = outcome { return .end(error) }
    return .end(nil)
  }

  /// Returns the next event for a task that begins to read, or `nil` if there is none yet or another task waits for it.
  mutating func nextUnlessAwaited() -> Event? { waiting == nil ? next() : nil }

  /// Returns the whole body after its head was received, and ends the reader. Returns `nil` if the body is incomplete, was read
  /// in part, or has more than this number of bytes.
  mutating func takeWhole(upTo limit: Int) -> Data? {
    guard case .reading = reader, case .complete? = outcome, head == nil, taken == 0, limit > 0, retainedBytes <= limit else {
      return nil
    }
    var whole = chunks.first ?? Data()
    if chunks.count > 1 { whole.reserveCapacity(retainedBytes) }
    for chunk in chunks.dropFirst() { whole.append(chunk) }
    reader = .finished
    (chunks, retainedBytes) = ([], 0)
    return whole
  }

  private mutating func take() -> Data {
    let data = chunks[taken]
    chunks[taken] = Data()
    taken += 1
    retainedBytes -= data.count
    // In batches, so that a chunk costs O(1).
    if taken == chunks.count || taken > 32 && taken * 2 > chunks.count {
      chunks.removeFirst(taken)
      taken = 0
    }
    return data
  }

  /// Returns the reader's next event, or `nil` if `continuation` waits for it from now on.
  mutating func wait(_ continuation: Resumption<Event>) -> Event? {
    // The first task continues to read.
    guard waiting == nil else { return .end(CacheError(.misuse, reason: "two tasks read a body at the same time")) }
    if let event = next() { return event }
    waiting = continuation
    return nil
  }

  /// Returns the wake-up of a waiting reader that has an event now, or `nil` if there is none.
  mutating func wakeUp() -> WakeUp? {
    guard let continuation = waiting, let event = next() else { return nil }
    waiting = nil
    return WakeUp(continuation: continuation, event: event)
  }

  /// Cancels the reader, whose next event is the end with this error. Returns `false` if the reader has already ended.
  mutating func cancelReader(because error: CacheError) -> Bool {
    guard case .reading = reader else { return false }
    reader = .cancelled(error)
    (head, chunks, taken, retainedBytes) = (nil, [], 0, 0)
    return true
  }
}

/// The reader's side of a transfer: the body of its response. Releasing it stops the transfer.
final class TransferBody: ResourceBody.Source {
  private enum Outcome { case complete, failed(CacheError) }

  /// The parts that are released when the body has ended.
  private struct Held {
    /// The time limit of the request.
    var deadline: DeadlineTimer.ScheduledDeadline?
    /// Raises the transfer's priority with the request's.
    var observation: LoadPriority.Observation?
  }

  private let task: SessionDataTask
  private let outcome = Lock<Outcome?>(nil)
  private let held: Lock<Held>

  init(_ task: SessionDataTask, priority: LoadPriority?, deadline: DeadlineTimer.ScheduledDeadline?) {
    self.task = task
    let observation = priority?.onRaise { [weak task] level in task?.raise(to: level) }
    held = Lock(Held(deadline: deadline, observation: observation))
    // The raise follows the registration, because the observer is not told of earlier raises.
    if let priority { task.raise(to: priority.level) }
  }

  deinit { task.cancel() }

  /// Waits for the head. Called once, before the first ``next()``.
  func head() async throws(CacheError) -> HTTPResponse {
    switch await task.nextEvent() {
    case .head(let head): return head
    case .data: throw CacheError(.malformedResponse, reason: "body bytes arrived before the head of the response")
    case .end(let error): throw error ?? CacheError(.malformedResponse, reason: "the response has no head")
    }
  }

  func next() async throws(CacheError) -> Data? {
    switch outcome.withLock({ $0 }) {
    case .complete: return nil
    case .failed(let error): throw error
    case nil: break
    }
    while true {
      switch await task.nextEvent() {
      case .head: continue
      case .data(let data): return data
      case .end(nil):
        outcome.withLock { $0 = .complete }
        releaseHeld()
        return nil
      case .end(let error?):
        if error.code != .misuse {
          outcome.withLock { $0 = .failed(error) }
          releaseHeld()
        }
        throw error
      }
    }
  }

  private func releaseHeld() {
    let former = held.withLock { held in
      defer { held = Held() }
      return held
    }
    withExtendedLifetime(former) {}
  }

  func cancel() {
    task.cancel()
    releaseHeld()
  }

  /// Always `nil`, because `URLSession` does not expose trailers on any platform.
  var trailers: HTTPFields? { nil }
}
