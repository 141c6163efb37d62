internal import CacheCore
internal import HTTPTypes

/// The representations of a manager whose parts are being read or requested, by request. Requests that are equal except for their
/// ranges share one.
final class PartTable: Sendable {
  /// A request for a part of an unknown representation. Other requests wait for its response. If it is released without one, they
  /// are sent.
  final class Opening: Sendable {
    let outcome = OneShotBroadcast<Outcome>()
    private let end: @Sendable () -> Void

    init(end: @escaping @Sendable () -> Void) { self.end = end }

    deinit {
      outcome.make(.abandoned)
      end()
    }
  }

  /// The outcome of the first request for a part.
  enum Outcome: Sendable {
    case parts(LiveParts)
    /// The parts cannot be combined.
    case unusable
    /// The request has left.
    case abandoned
  }

  /// The role of a request.
  enum Role {
    /// The representation is known.
    case joining(LiveParts)
    /// An equal request waits for its response.
    case waiting(OneShotBroadcast<Outcome>)
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
    /// The requests whose ranges are not divided.
    var marks = RequestMarks()
  }

  private let state = Lock(State())

  /// The key of the parts that a request can read. Of its fields, only the credentials matter: the validator compares the fields
  /// that select the response (RFC 9111 §4.1).
  static func key(of fetch: Fetch) -> CoalescingKey {
    CoalescingKey(fetch.request, sharing: fetch.head.headerFields.filter { $0.name == .authorization })
  }

  /// Decides the role of a request for a range.
  func assignRole(_ fetch: Fetch, _ key: CoalescingKey) -> Role {
    let uptime = fetch.request.clock.uptime
    while true {
      let (known, isAlone) = state.withLock { ($0.entries[key]?.live, $0.marks.contains(key, at: uptime)) }
      if isAlone { return .alone }
      // The validator is asked outside the lock.
      if let known, fetch.mayJoin(known), fetch.isSatisfied(by: known, isEarly: false) { return .joining(known) }
      let opening = Opening { [weak self] in self?.forget(key) }
      // The references are released outside the lock.
      let (pending, _, isDecided) = state.withLock { state -> (Opening?, LiveParts?, Bool) in
        let entry = state.entries[key]
        let (pending, live) = (entry?.opening, entry?.live)
        if pending != nil { return (pending, live, true) }
        // Another request has made a representation known meanwhile.
        guard live === known else { return (nil, live, false) }
        state.entries[key] = Entry(opening: opening)
        return (nil, live, true)
      }
      if isDecided { return pending.map { .waiting($0.outcome) } ?? .opening(opening) }
    }
  }

  /// Returns the representation of stored parts: the one that other readers read, or a new one.
  func live(_ combination: PartCombination, _ fetch: Fetch) -> LiveParts {
    // The key does not have the URL of a redirect. Without a limit for waiting, requests share nothing.
    guard fetch.hop == nil, fetch.request.collapseTimeout != nil else {
      return LiveParts(combination, fetch.candidates, logPosition: fetch.cache.logPosition)
    }
    let key = Self.key(of: fetch)
    let new = LiveParts(combination, fetch.candidates, logPosition: fetch.cache.logPosition)
    new.whenReleased { [weak self] in self?.forget(key) }
    // Equal requests at the same time must find one of the two. The former one is released outside the lock.
    let (known, _) = state.withLock { state -> (LiveParts?, LiveParts?) in
      let former = state.entries[key]?.live
      if let former, former.isSame(as: combination), fetch.mayJoin(former) { return (former, nil) }
      state.entries[key] = Entry(live: new)
      return (nil, former)
    }
    known?.add(combination, fetch.candidates)
    return known ?? new
  }

  /// Makes a representation known to other requests.
  func put(_ live: LiveParts, _ key: CoalescingKey) {
    live.whenReleased { [weak self] in self?.forget(key) }
    state.withLock { $0.entries[key] = Entry(live: live) }
  }

  /// Stops requests from joining the representation of a request.
  func outdate(_ fetch: Fetch) {
    let key = Self.key(of: fetch)
    _ = state.withLock { $0.entries[key]?.live }?.becomeOutdated()
  }

  private func forget(_ key: CoalescingKey) {
    // All references are released outside the lock: the release of the last one calls this function again.
    _ = state.withLock { state -> (Dictionary<CoalescingKey, Entry>.Element?, LiveParts?, Opening?) in
      guard let index = state.entries.index(forKey: key) else { return (nil, nil, nil) }
      let (live, opening) = (state.entries[index].value.live, state.entries[index].value.opening)
      return (live == nil && opening == nil ? state.entries.remove(at: index) : nil, live, opening)
    }
  }

  /// Records that the parts of a resource cannot be combined.
  func mark(_ key: CoalescingKey, at uptime: Duration) { state.withLock { $0.marks.insert(key, at: uptime) } }
}
