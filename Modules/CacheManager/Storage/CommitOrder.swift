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
    commits.withLock { $0[subject, default: Commits()].tickets += 1 }
    return Ticket(self, subject, Position(isFromCaller: isFromCaller, responseTime: responseTime, number: number))
  }

  /// The right of one response to change the stores.
  final class Ticket: Sendable {
    private let order: CommitOrder
    fileprivate let subject: Subject
    fileprivate let position: Position

    fileprivate init(_ order: CommitOrder, _ subject: Subject, _ position: Position) {
      (self.order, self.subject, self.position) = (order, subject, position)
    }

    deinit { order.remove(self) }

    /// Whether a later response has begun to change the stores.
    var isSuperseded: Bool { order.isSuperseded(self) }

    /// Whether an earlier response may have changed the stores after this response's lookup. Valid between ``enter()`` and
    /// ``leave()``.
    var followsAnother: Bool { order.followsAnother(self) }

    /// Waits until no other response with the same key changes the stores.
    ///
    /// - Returns: Whether this response may change them now, until ``leave()``. `false` if a later response has begun to.
    func enter() async -> Bool {
      while true {
        switch order.turn(of: self) {
        case .own: return true
        case .over: return false
        case .later: await order.wait(for: self)
        }
      }
    }

    func leave() { order.leave(self) }
  }

  private func isSuperseded(_ ticket: Ticket) -> Bool {
    commits.withLock { $0[ticket.subject]?.latest.map { $0 > ticket.position } ?? false }
  }

  private func followsAnother(_ ticket: Ticket) -> Bool { commits.withLock { $0[ticket.subject]?.turns ?? 0 } > 1 }

  private func turn(of ticket: Ticket) -> Turn {
    commits.withLock { commits in
      var known = commits[ticket.subject] ?? Commits()
      if let latest = known.latest, latest > ticket.position { return .over }
      known.latest = ticket.position
      let isOwn = !known.isBusy
      known.isBusy = true
      if isOwn { known.turns += 1 }
      commits[ticket.subject] = known
      return isOwn ? .own : .later
    }
  }

  private func wait(for ticket: Ticket) async {
    await withUnsafeContinuation { continuation in
      let isBusy = commits.withLock { commits in
        guard commits[ticket.subject]?.isBusy == true else { return false }
        commits[ticket.subject]?.waiting.append(continuation)
        return true
      }
      if !isBusy { continuation.resume() }
    }
  }

  private func leave(_ ticket: Ticket) {
    let waiting = commits.withLock { commits in
      commits[ticket.subject]?.isBusy = false
      commits[ticket.subject]?.latest?.isFromCaller = false
      defer { commits[ticket.subject]?.waiting = [] }
      return commits[ticket.subject]?.waiting ?? []
    }
    for waiter in waiting { waiter.resume() }
  }

  private func remove(_ ticket: Ticket) {
    commits.withLock { commits in
      guard let count = commits[ticket.subject]?.tickets, count > 1 else { return commits[ticket.subject] = nil }
      commits[ticket.subject]?.tickets = count - 1
    }
  }
}
