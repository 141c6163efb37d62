internal import CacheCore
internal import Synchronization

/// The order in which the responses of this process are stored in durable stores. An older response never replaces a later one,
/// however late its body ends.
///
/// Two requests for one resource can run at once, for example after a purge or with the policy `reload`. Each response takes a
/// ticket before it is stored. For each key, one ticket at a time changes the stores, and none after a ticket of a later
/// response. A key is forgotten with its last ticket. Commits are remembered for longer, for a response that takes its ticket
/// after them.
final class CommitOrder: Sendable {
  /// A key in one durable store.
  fileprivate struct Subject: Hashable {
    let key: CacheKey
    let store: ComponentID
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
    var waiting: [Resumption<Void>] = []

    mutating func turn(_ position: Position) -> Turn {
      if let latest, latest > position { return .over }
      latest = position
      guard !isBusy else { return .later }
      isBusy = true
      turns += 1
      return .own
    }

    /// Returns the continuations to resume.
    mutating func leave() -> [Resumption<Void>] {
      isBusy = false
      latest?.isFromCaller = false
      defer { waiting = [] }
      return waiting
    }
  }

  private enum Turn { case own, later, over }

  private let commits = Lock<[Subject: Commits]>([:])
  private let last = Atomic<Int>(0)
  /// The latest commits. If a load takes longer than all of them, its response is compared with the durable store, and nothing
  /// that it read there is put into memory.
  private let recent = Lock(RecentPositions())
  private let count = Atomic<Int>(0)

  /// The number of commits so far.
  var position: Int { count.load(ordering: .acquiring) }

  /// Records that a response was committed to a durable store. The commit may not have put it into memory.
  func noteCommit(of resource: String) {
    let hash = CacheKey(resource: resource).fingerprint
    recent.withLock { $0.note(hash, count.add(1, ordering: .releasing).newValue) }
  }

  /// Whether a response of the resource may have been committed since `position`.
  func mayHaveCommitted(_ resource: String, since position: Int) -> Bool {
    guard self.position > position else { return false }
    let hash = CacheKey(resource: resource).fingerprint
    return recent.withLock { $0.latest(for: hash) > position }
  }

  /// Registers a response whose head has arrived.
  ///
  /// - Parameters:
  ///   - key: The key of the response.
  ///   - isFromCaller: Whether the response is one that the caller stores.
  ///   - store: The durable store that the order protects.
  func ticket(for key: CacheKey, _ responseTime: Timestamp, isFromCaller: Bool, in store: ComponentID) -> Ticket {
    let number = last.add(1, ordering: .relaxed).newValue
    let subject = Subject(key: key, store: store)
    change(subject) { $0.tickets += 1 }
    return Ticket(self, subject, Position(isFromCaller: isFromCaller, responseTime: responseTime, number: number))
  }

  /// Changes the responses with one key in place. An optional subscript would allocate memory for each access.
  private func change<Value>(_ subject: Subject, _ body: (inout Commits) -> Value) -> Value {
    commits.withLock { body(&$0[subject, default: Commits()]) }
  }

  /// Waits until the responses that are changing the stores now have ended.
  ///
  /// A removal does this after its changes. Such a response began before the removal was in the ``InvalidationLog``, so the
  /// removal may not have found it. It applies the removal itself, before it ends.
  ///
  /// - Parameters:
  ///   - store: The durable store.
  ///   - isWanted: Called with the name of a resource.
  func waitForCommits(in store: ComponentID, where isWanted: (String) -> Bool) async {
    let running = commits.withLock { commits in commits.compactMap { $0.value.isBusy ? ($0.key, $0.value.turns) : nil } }
    for (subject, turn) in running where subject.store == store && isWanted(subject.key.resource) {
      await waitForEnd(of: subject, turn)
    }
  }

  /// Waits until the response that changes the stores has ended, if there is one.
  ///
  /// - Parameter turn: The number of its turn, or `nil` to wait for any response.
  fileprivate func waitForEnd(of subject: Subject, _ turn: Int? = nil) async {
    await withResumption { continuation in
      let isBusy = commits.withLock { commits in
        guard let index = commits.index(forKey: subject), commits.values[index].isBusy,
          turn == nil || commits.values[index].turns == turn
        else { return false }
        commits.values[index].waiting.append(continuation)
        return true
      }
      if !isBusy { continuation.resume() }
    }
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
        switch order.change(subject, { $0.turn(position) }) {
        case .own: return true
        case .over: return false
        case .later: await order.waitForEnd(of: subject)
        }
      }
    }

    func leave() {
      for waiter in order.change(subject, { $0.leave() }) { waiter.resume() }
    }
  }
}

/// The latest positions of events, by the hashes of their subjects. A position may be later than that of the subject's own event,
/// and is never earlier.
struct RecentPositions: Sendable {
  /// The minimum number of subjects to remember.
  private static let memory = 4_096

  private var latest: [Int: Int] = [:]
  /// The positions that ``latest`` had when it was last full.
  private var earlier: [Int: Int] = [:]
  /// The positions of the last events of ``latest`` and of ``earlier``, and of the last one that is no longer remembered.
  private var (lastOfLatest, lastOfEarlier, forgotten) = (0, 0, 0)

  /// Records an event, whose position is later than those of earlier events.
  mutating func note(_ hash: Int, _ position: Int) {
    latest[hash] = position
    lastOfLatest = position
    guard latest.count >= Self.memory else { return }
    (forgotten, lastOfEarlier) = (lastOfEarlier, lastOfLatest)
    swap(&earlier, &latest)
    latest.removeAll(keepingCapacity: true)
  }

  /// Returns the position of the latest event, or 0 if there was none.
  func latest(for hash: Int) -> Int { max(forgotten, latest[hash] ?? earlier[hash] ?? 0) }
}

/// Applies purges to responses that were requested before the purge and are stored after it.
extension TieredCache {
  /// Returns a response after the purges since the load began: unchanged or stale. Returns `nil` if it must not be stored.
  func surviving(_ candidate: Candidate) -> Candidate? {
    guard let purge = request.invalidations.outcome(for: candidate.key, candidate.metadata, since: logPosition) else {
      return candidate
    }
    return candidate.surviving(purge, at: request.clock.now)
  }

  /// Records the metadata of a response in memory, unchanged or stale after the purges since the load began.
  ///
  /// A purge is in the log before it reaches memory. One that the step does not see in the log therefore finds the record. If the
  /// step sees another one than before, it is repeated. This ends, because the effect only grows.
  ///
  /// - Parameter isAllowed: Called with the current metadata in memory.
  /// - Returns: The record, or `nil` if memory does not have it.
  func putRecord(_ candidate: Candidate, in memory: MemoryTier, if isAllowed: (StoredMetadata?) -> Bool) -> ResponseRecord? {
    let (log, key, metadata) = (request.invalidations, candidate.key, candidate.metadata)
    while true {
      let purge = log.outcome(for: key, metadata, since: logPosition)
      guard let survivor = purge.map({ candidate.surviving($0, at: request.clock.now) }) ?? candidate else { return nil }
      var isPurged = false
      let record = memory.putRecord(survivor.metadata, key, by: request.validatorID, request.clock) {
        isPurged = log.outcome(for: key, metadata, since: logPosition) != purge
        return !isPurged && isAllowed($0)
      }
      if !isPurged { return record }
    }
  }

  /// Applies a purge that ran while a response was being stored. The purge could not find the response yet.
  ///
  /// The disk comes first. Then the count of the log rises, so that a load that read the disk earlier does not put the response
  /// into memory.
  func applyPurge(to candidate: Candidate) async {
    guard let purge = request.invalidations.outcome(for: candidate.key, candidate.metadata, since: logPosition) else { return }
    await apply(purge, to: candidate)
  }

  /// Like ``applyPurge(to:)``, for a request without a durable store.
  func applyPurgeInMemory(to candidate: Candidate) {
    guard let purge = request.invalidations.outcome(for: candidate.key, candidate.metadata, since: logPosition) else { return }
    guard let survivor = candidate.surviving(purge, at: request.clock.now) else { return forgetInMemory([candidate]) }
    mark(candidate, as: survivor)
  }

  @inline(never)
  private func apply(_ purge: PurgeMode, to candidate: Candidate) async {
    guard let survivor = candidate.surviving(purge, at: request.clock.now) else {
      forgetInMemory([candidate])
      // The purge waits for this response, so the response does not end before it is removed.
      if let store = request.store { await drop([candidate], from: store) }
      return
    }
    if let store = request.store { _ = await refresh(survivor, on: store) }
    mark(candidate, as: survivor)
  }

  private func mark(_ candidate: Candidate, as survivor: Candidate) {
    let revision = candidate.metadata.revision
    request.invalidations.advance(afterRemovalOf: resource)
    // A transform's entry has the length of the encoded value, and not that of the original.
    guard candidate.key.transform.isEmpty, let memory = request.memory else { return }
    _ = MemoryTier(store: memory).putRecord(survivor.metadata, candidate.key, by: request.validatorID, request.clock) {
      $0?.revision == revision
    }
  }
}

extension Candidate {
  /// Returns the candidate after a purge, or `nil` if the purge removes it.
  fileprivate func surviving(_ purge: PurgeMode, at now: Timestamp) -> Candidate? {
    switch purge {
    case .hard: return nil
    case .soft:
      var survivor = self
      survivor.metadata = metadata.markedStale(at: now)
      return survivor
    }
  }
}
