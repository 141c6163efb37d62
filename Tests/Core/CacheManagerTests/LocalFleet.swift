import CacheCore

/// A fleet within the process. Its leases never expire.
final class LocalFleet: CacheFleet {
  private enum Status {
    case held(UInt64)
    case ended(UInt64, End)
  }

  /// The end of a lease.
  enum End: Equatable {
    case stored
    case notShared(for: Duration)
    case abandoned
  }

  struct Name: Hashable {
    var resource, selection: String
  }

  private struct State {
    var leases: [Name: Status] = [:]
    var token: UInt64 = 0
    var granted = 0
    var ends: [End] = []
    var failure: CacheError?
    var members: [Member] = []
    var isConnected = true
  }

  private let state = Lock(State())

  /// The number of granted leases.
  var granted: Int { state.withLock { $0.granted } }

  /// The names of all leases so far.
  var names: Set<Name> { state.withLock { Set($0.leases.keys) } }

  /// The ends of leases, in order.
  var ends: [End] { state.withLock { $0.ends } }

  /// The error that each request for a lease throws, or `nil`.
  var failure: CacheError? {
    get { state.withLock { $0.failure } }
    set { state.withLock { $0.failure = newValue } }
  }

  func requestLease(
    of resource: String, selection: String, lookedUpAt known: UInt64?
  ) async throws(CacheError) -> LeaseReply {
    let name = Name(resource: resource, selection: selection)
    return try state.withLock { state throws(CacheError) in
      if let failure = state.failure { throw failure }
      switch state.leases[name] {
      case .held: return .held
      case .ended(_, .notShared): return .notShared
      case .ended(let token, .stored) where token > known ?? 0: return .stored(position: token)
      case .ended, nil: break
      }
      state.token += 1
      state.granted += 1
      state.leases[name] = .held(state.token)
      return .granted(Lease(name, state.token, self))
    }
  }

  func join(
    receive: @escaping @Sendable (String, Bool) async throws(CacheError) -> Void,
    missed: @escaping @Sendable () async throws(CacheError) -> Void
  ) -> any FleetMembership {
    let member = Member(self, receive, missed)
    state.withLock { $0.members.append(member) }
    return member
  }

  /// Whether the managers are current. Without contact, messages do not arrive.
  var isConnected: Bool {
    get { state.withLock { $0.isConnected } }
    set { state.withLock { $0.isConnected = newValue } }
  }

  /// Restores the contact, after which members learn that they have missed messages.
  func reconnect() async {
    for member in state.withLock({ $0.members }) { await member.attempt { () throws(CacheError) in try await member.missed() } }
    isConnected = true
  }

  private func broadcast(_ message: String, from sender: Member) async throws(CacheError) {
    guard isConnected else { throw CacheError(.storeUnavailable, reason: "no contact") }
    for member in state.withLock({ $0.members }) where member !== sender {
      await member.attempt { () throws(CacheError) in try await member.receive(message, !member.isCurrent) }
    }
  }

  private final class Member: FleetMembership {
    private let fleet: LocalFleet
    let receive: @Sendable (String, Bool) async throws(CacheError) -> Void
    let missed: @Sendable () async throws(CacheError) -> Void
    private let hasFailed = Lock(false)
    private let hasLeft = Lock(false)

    init(
      _ fleet: LocalFleet, _ receive: @escaping @Sendable (String, Bool) async throws(CacheError) -> Void,
      _ missed: @escaping @Sendable () async throws(CacheError) -> Void
    ) {
      (self.fleet, self.receive, self.missed) = (fleet, receive, missed)
    }

    var isCurrent: Bool { fleet.isConnected && !hasFailed.withLock { $0 } && !hasLeft.withLock { $0 } }

    /// Calls the manager. If it throws, the member is not current until a later call succeeds.
    func attempt(_ call: () async throws(CacheError) -> Void) async {
      do throws(CacheError) {
        try await call()
        hasFailed.withLock { $0 = false }
      } catch {
        hasFailed.withLock { $0 = true }
      }
    }

    func broadcast(_ message: String) async throws(CacheError) { try await fleet.broadcast(message, from: self) }

    func leave() async { hasLeft.withLock { $0 = true } }
  }

  private func end(_ name: Name, _ token: UInt64, _ end: End) {
    state.withLock { state in
      guard case .held(token) = state.leases[name] else { return }
      state.leases[name] = .ended(token, end)
      state.ends.append(end)
    }
  }

  private final class Lease: RequestLease {
    private let name: Name
    let token: UInt64
    private let fleet: LocalFleet

    init(_ name: Name, _ token: UInt64, _ fleet: LocalFleet) { (self.name, self.token, self.fleet) = (name, token, fleet) }

    deinit { abandon() }

    var resource: String { name.resource }
    var selection: String { name.selection }

    func endAsStored() { fleet.end(name, token, .stored) }
    func endAsNotShared(for duration: Duration) { fleet.end(name, token, .notShared(for: duration)) }
    func abandon() { fleet.end(name, token, .abandoned) }
  }
}
