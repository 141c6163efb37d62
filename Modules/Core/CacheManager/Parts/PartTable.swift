internal import CacheCore
internal import HTTPTypes

/// The representations of a manager whose parts are being read or requested, by request. Requests that are equal except for their
/// ranges share one.
final class PartTable: Sendable {
  /// A request for a part of an unknown representation. Other requests wait for its response. If it is released without one, they
  /// are sent.
  final class Opening: Sendable {
    /// The representation, or `nil` if its parts cannot be combined.
    let outcome = OneShotBroadcast<LiveParts?>()
    private let end: @Sendable () -> Void

    init(end: @escaping @Sendable () -> Void) { self.end = end }

    deinit {
      outcome.make(nil)
      end()
    }
  }

  /// The role of a request.
  enum Role {
    /// The representation is known.
    case joining(LiveParts)
    /// An equal request waits for its response.
    case waiting(OneShotBroadcast<LiveParts?>)
    /// The request is the first.
    case opening(Opening)
    /// The parts of the resource cannot be combined, so each request is sent as it is.
    case alone
  }

  // Weak, because readers and the first request own them. A key contains credentials, so an entry ends with its object.
  private struct Entry {
    weak var live: LiveParts?
    weak var opening: Opening?
  }

  private struct State {
    var entries: [CoalescingKey: Entry] = [:]
    /// The uptimes until which the ranges of a resource are not divided, by hash.
    var marks: [Int: Duration] = [:]
  }

  private let state = Lock(State())

  /// The key of the parts that a request can read. Its range does not matter.
  static func key(of fetch: Fetch) -> CoalescingKey {
    var fields = fetch.head.comparedFields
    fields[.range] = nil
    return CoalescingKey(fetch.request, sharing: fields)
  }

  /// Decides the role of a request for a range.
  func assignRole(_ fetch: Fetch, _ key: CoalescingKey) -> Role {
    let uptime = fetch.request.clock.uptime
    let (known, isAlone) = state.withLock { state in
      (state.entries[key]?.live, state.marks[key.markHash].map { uptime < $0 } ?? false)
    }
    if isAlone { return .alone }
    // The validator is asked outside the lock.
    if let known, fetch.mayJoin(known), fetch.isSatisfied(by: known, isEarly: false) { return .joining(known) }
    let opening = Opening { [weak self] in self?.forget(key) }
    let pending = state.withLock { state -> Opening? in
      if let pending = state.entries[key]?.opening { return pending }
      state.entries[key] = Entry(opening: opening)
      return nil
    }
    return pending.map { .waiting($0.outcome) } ?? .opening(opening)
  }

  /// Returns the representation of stored parts: the one that other readers read, or a new one.
  func live(_ combination: PartCombination, _ fetch: Fetch) -> LiveParts {
    let key = Self.key(of: fetch)
    if let known = state.withLock({ $0.entries[key]?.live }), known.isSame(as: combination), fetch.mayJoin(known) {
      known.add(combination, fetch.candidates)
      return known
    }
    let new = LiveParts(combination, fetch.candidates, logPosition: fetch.cache.logPosition)
    put(new, key)
    return new
  }

  /// Makes a representation known to other requests.
  func put(_ live: LiveParts, _ key: CoalescingKey) {
    live.whenReleased { [weak self] in self?.forget(key) }
    state.withLock { $0.entries[key] = Entry(live: live) }
  }

  private func forget(_ key: CoalescingKey) {
    // The entry is released outside the lock, with its key.
    _ = state.withLock { state -> Dictionary<CoalescingKey, Entry>.Element? in
      guard let index = state.entries.index(forKey: key), state.entries[index].value.live == nil,
        state.entries[index].value.opening == nil
      else { return nil }
      return state.entries.remove(at: index)
    }
  }

  /// Records that the parts of a resource cannot be combined.
  func mark(_ key: CoalescingKey, at uptime: Duration) {
    let hash = key.markHash
    state.withLock { state in
      if state.marks.count >= ResponseCoalescer.markLimit { state.marks = state.marks.filter { uptime < $0.value } }
      // A request in vain costs less than an unlimited table.
      if state.marks.count >= ResponseCoalescer.markLimit { state.marks = [:] }
      state.marks[hash] = uptime + ResponseCoalescer.markLifetime
    }
  }
}
