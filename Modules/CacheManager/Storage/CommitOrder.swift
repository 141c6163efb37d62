internal import CacheCore
internal import Synchronization

/// The order in which the responses of this process are stored. An older response never replaces a later one, however late its
/// body ends.
///
/// Two requests for one resource can run at once, for example after a purge or with the policy `reload`. Each response takes a
/// ticket when its head arrives. For each key, one ticket at a time changes the stores, and none after a ticket of a later
/// response. A key is forgotten with its last ticket.
final class CommitOrder: Sendable {
  /// A key in one store.
  fileprivate struct Subject: Hashable {
    let key: CacheKey
    let store: ComponentID?
  }

  /// The position of a response among those with the same key. Responses that arrived at the same time have the order of their
  /// tickets.
  fileprivate struct Position: Comparable {
    /// Whether the response is one that the caller stores. It counts as the latest until it is stored.
    var isFromCaller: Bool
    let responseTime: Timestamp
    let number: Int

    static func < (a: Position, b: Position) -> Bool {
      if a.isFromCaller != b.isFromCaller { return b.isFromCaller }
      return (a.responseTime, a.number) < (b.responseTime, b.number)
    }
  }

  /// The responses with one key that may still change the stores.
  private struct Commits {
    var tickets = 0
    /// The latest response that has begun to change the stores.
    var latest: Position?
    /// The number of responses that have begun to change the stores.
    var turns = 0
    var isBusy = false
    var waiting: [UnsafeContinuation<Void, Never>] = []

    mutating func turn(_ position: Position) -> Turn {
      if let latest, latest > position { return .over }
      latest = position
      guard !isBusy else { return .later }
      isBusy = true
      turns += 1
      return .own
    }

    /// Returns the continuations to resume.
    mutating func leave() -> [UnsafeContinuation<Void, Never>] {
      isBusy = false
      latest?.isFromCaller = false
      defer { waiting = [] }
      return waiting
    }
  }

  private enum Turn { case own, later, over }

  private let commits = Lock<[Subject: Commits]>([:])
  private let last = Atomic<Int>(0)

  /// Registers a response whose head has arrived.
  ///
  /// - Parameters:
  ///   - key: The key of the response.
  ///   - isFromCaller: Whether the response is one that the caller stores.
  ///   - store: The store that the order protects.
  func ticket(for key: CacheKey, _ responseTime: Timestamp, isFromCaller: Bool, in store: ComponentID?) -> Ticket {
    let number = last.add(1, ordering: .relaxed).newValue
    let subject = Subject(key: key, store: store)
    change(subject) { $0.tickets += 1 }
    return Ticket(self, subject, Position(isFromCaller: isFromCaller, responseTime: responseTime, number: number))
  }

  /// Changes the responses with one key in place. An optional subscript would allocate memory for each access.
  private func change<Value>(_ subject: Subject, _ body: (inout Commits) -> Value) -> Value {
    commits.withLock { body(&$0[subject, default: Commits()]) }
  }

  private func removeTicket(of subject: Subject) {
    commits.withLock { commits in
      guard let index = commits.index(forKey: subject) else { return }
      if commits.values[index].tickets > 1 { commits.values[index].tickets -= 1 } else { commits.remove(at: index) }
    }
  }

  /// The right of one response to change the stores.
  final class Ticket: Sendable {
    private let order: CommitOrder
    private let subject: Subject
    private let position: Position

    fileprivate init(_ order: CommitOrder, _ subject: Subject, _ position: Position) {
      (self.order, self.subject, self.position) = (order, subject, position)
    }

    deinit { order.removeTicket(of: subject) }

    /// Whether a later response has begun to change the stores.
    var isSuperseded: Bool { order.change(subject) { $0.latest.map { $0 > position } ?? false } }

    /// Whether an earlier response may have changed the stores after this response's lookup. Valid between ``enter()`` and
    /// ``leave()``.
    var followsAnother: Bool { order.change(subject) { $0.turns } > 1 }

    /// Waits until no other response with the same key changes the stores.
    ///
    /// - Returns: Whether this response may change them now, until ``leave()``. `false` if a later response has begun to.
    func enter() async -> Bool {
      while true {
        if let mayEnter = enterWithoutWaiting() { return mayEnter }
        await wait()
      }
    }

    /// Like ``enter()``, but returns `nil` if another response with the same key is changing the stores.
    func enterWithoutWaiting() -> Bool? {
      switch order.change(subject, { $0.turn(position) }) {
      case .own: true
      case .over: false
      case .later: nil
      }
    }

    private func wait() async {
      await withUnsafeContinuation { continuation in
        let isBusy = order.change(subject) { commits in
          if commits.isBusy { commits.waiting.append(continuation) }
          return commits.isBusy
        }
        if !isBusy { continuation.resume() }
      }
    }

    func leave() {
      for waiter in order.change(subject, { $0.leave() }) { waiter.resume() }
    }
  }
}
