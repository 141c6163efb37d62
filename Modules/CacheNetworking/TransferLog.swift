internal import CacheCore
internal import Foundation
internal import HTTPTypes

/// One transfer as its readers see it: a head, chunks, an end, in that order for each of them, however late it joined.
///
/// A value without a lock or a thread: ``SessionDataTask`` guards it and carries the wake-ups out.
struct TransferLog {
  typealias Event = SessionDataTask.Event
  typealias Token = SessionDataTask.CancelToken

  /// How a reader gets its events.
  enum Delivery {
    /// It asks; the continuation is there while it waits.
    case pull(CheckedContinuation<Event, Never>?)
    /// It is called; `isDraining` while some thread does so, so that calls never overlap.
    case push(@Sendable (Event) -> Void, isDraining: Bool)
  }

  /// What must be done outside the lock.
  enum WakeUp {
    case resume(CheckedContinuation<Event, Never>, Event)
    case drain(Token, @Sendable (Event) -> Void)
  }

  private struct Reader {
    var delivery: Delivery
    var sawHead = false
    var position = 0
    /// Why it gets nothing more, when it was cancelled.
    var cancellation: CacheError?
  }

  private enum Outcome { case complete, failed(CacheError) }

  private var readers: [Token: Reader] = [:]
  private let issuer = Token.Issuer()
  private var issued = 0
  private var head: HTTPResponse?
  private var outcome: Outcome?
  private var spool: TransferSpool

  /// Readers that have neither ended nor been cancelled.
  private(set) var activeReaders = 0

  init(joinLimit: Int) { spool = TransferSpool(joinLimit: joinLimit) }

  var hasEnded: Bool { outcome != nil }
  var retainedBytes: Int { spool.retainedBytes }
  var canJoin: Bool { outcome == nil && !spool.hasDropped }

  // MARK: Readers

  /// A new reader, which gets everything from the head on; nil when it comes too late for that.
  mutating func join(_ delivery: Delivery) -> Token? {
    guard canJoin else { return nil }
    issued += 1
    spool.join()
    activeReaders += 1
    let token = Token(issuer, number: issued)
    readers[token] = Reader(delivery: delivery)
    return token
  }

  /// The reader's next event, or nil when there is none yet, or no such reader.
  mutating func next(for token: Token) -> Event? {
    guard var reader = readers[token] else { return nil }
    if let error = reader.cancellation {
      readers[token] = nil
      return .end(error)
    }
    if !reader.sawHead, let head {
      reader.sawHead = true
      readers[token] = reader
      return .head(head)
    }
    if reader.position < spool.end {
      let data = spool.take(at: reader.position)
      reader.position += 1
      readers[token] = reader
      return .data(data)
    }
    guard let outcome else { return nil }
    readers[token] = nil
    activeReaders -= 1
    if case .failed(let error) = outcome { return .end(error) }
    return .end(nil)
  }

  /// The reader's next event, or nil when `continuation` is kept until there is one.
  mutating func wait(_ token: Token, _ continuation: CheckedContinuation<Event, Never>) -> Event? {
    if let event = next(for: token) { return event }
    guard case .pull(let other)? = readers[token]?.delivery else { return .end(.cancelled) }
    guard other == nil else { return .end(CacheError(.misuse, reason: "a body was read by two tasks at once")) }
    readers[token]?.delivery = .pull(continuation)
    return nil
  }

  /// The next event for the thread that drains a pushed reader; nil ends its turn.
  mutating func nextInTurn(for token: Token) -> Event? {
    if let event = next(for: token) { return event }
    if case .push(let callback, _)? = readers[token]?.delivery {
      readers[token]?.delivery = .push(callback, isDraining: false)
    }
    return nil
  }

  /// Cancels a reader: its next event is the end, with this error. False when it has ended before.
  mutating func cancel(_ token: Token, because error: CacheError = .cancelled) -> Bool {
    guard let reader = readers[token], reader.cancellation == nil else { return false }
    activeReaders -= 1
    spool.leave(at: reader.position)
    if case .pull(nil) = reader.delivery, error.isCancellation {
      // Nobody waits, and whoever asks later finds no reader, which is a cancellation too.
      readers[token] = nil
    } else {
      readers[token]?.cancellation = error
    }
    return true
  }

  /// Cancels the readers that are furthest behind until no more than `limit` bytes are held for readers, and returns them. Those
  /// who keep up are not touched.
  mutating func shed(beyond limit: Int) -> [Token] {
    var shed: [Token] = []
    // Below the limit for those who join late nothing is dropped, so there is nothing to gain.
    while spool.retainedBytes > max(limit, spool.joinLimit) {
      let active = readers.filter { $0.value.cancellation == nil && $0.value.position < spool.end && !keepsUp($0.value) }
      guard let last = active.values.map(\.position).min() else { break }
      for (token, reader) in active where reader.position == last {
        let error = CacheError(
          .readerTooSlow, reason: "more than \(limit) bytes had come that were not read; Foundation can't make the server wait")
        if cancel(token, because: error) { shed.append(token) }
      }
    }
    return shed
  }

  /// Whether a reader waits for the very chunk that has come last, however large: the platform decides how large, and nothing is
  /// held for it.
  private func keepsUp(_ reader: Reader) -> Bool {
    guard reader.position == spool.end - 1 else { return false }
    return switch reader.delivery {
    case .pull(let continuation): continuation != nil
    case .push(_, let isDraining): !isDraining
    }
  }

  /// Takes a callback out without an event. False when there is none, or it has ended before.
  mutating func removeCallback(_ token: Token) -> Bool {
    guard case .push? = readers[token]?.delivery, cancel(token) else { return false }
    readers[token] = nil
    return true
  }

  /// Cancels every reader that is left.
  mutating func cancelAll() -> [Token] { tokensInOrder.filter { cancel($0) } }

  private var tokensInOrder: [Token] { readers.keys.sorted { $0.number < $1.number } }

  // MARK: The transfer

  mutating func receive(head: HTTPResponse) {
    guard outcome == nil else { return }
    self.head = head
  }

  mutating func receive(_ data: Data) {
    guard outcome == nil, head != nil, !data.isEmpty else { return }
    spool.append(data, readers: activeReaders)
  }

  /// The end; false when it had ended before.
  mutating func end(_ error: CacheError?) -> Bool {
    guard outcome == nil else { return false }
    outcome = error.map { .failed($0) } ?? .complete
    spool.isComplete = true
    return true
  }

  /// Whoever has something to get now, and was not served yet.
  mutating func wakeUps() -> [WakeUp] {
    // By far the most transfers have one reader: no sorting, no copies for it.
    if readers.count == 1, let token = readers.keys.first { return wakeUp(token).map { [$0] } ?? [] }
    return tokensInOrder.compactMap { wakeUp($0) }
  }

  /// The reader's turn, when it has something to get and waits for it.
  mutating func wakeUp(_ token: Token) -> WakeUp? {
    switch readers[token]?.delivery {
    case .pull(let continuation?):
      guard let event = next(for: token) else { return nil }
      if readers[token] != nil { readers[token]?.delivery = .pull(nil) }
      return .resume(continuation, event)
    case .push(let callback, isDraining: false):
      readers[token]?.delivery = .push(callback, isDraining: true)
      return .drain(token, callback)
    case .pull(nil), .push(_, isDraining: true), nil:
      return nil
    }
  }
}
