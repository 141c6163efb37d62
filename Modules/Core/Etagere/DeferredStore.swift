package import CacheCore
internal import Dispatch
internal import ETagValidation
package import HTTPTypes

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A store that is opened on another thread, and opened again after an error that may be temporary.
///
/// Opening a folder waits for the disk, and perhaps for another process. The first use of the shared manager is often in a view,
/// on the main thread. Before the first unlock of a device, the folder cannot be read.
///
/// Each call waits until the attempt in progress has ended, at most until ``waitLimit`` after its start, and then continues with
/// the open store. Only ``variantsWithoutWaiting(of:)`` does not wait. The wait ignores cancellations, because a removal must not
/// be skipped.
///
/// If the store is not open then, the call throws `CacheError.Code.storeUnavailable`. A load continues without the store. A purge
/// must not succeed, because the folder may have the entries. After a final error, the store counts as open, and is empty.
package final class DeferredStore: CacheStore {
  /// The minimum time between the starts of two attempts. If the last attempt has failed, the next call that waits for the store
  /// begins another.
  package static let retryInterval = Duration.seconds(5)
  /// The time after the start of an attempt for which calls wait. `DiskCache` waits up to two seconds for another process.
  package static let waitLimit = Duration.seconds(3)
  /// Runs an attempt on a thread that may block.
  package static let inBackground: @Sendable (@escaping @Sendable () -> Void) -> Void = {
    DispatchQueue.global(qos: .userInitiated).async(execute: $0)
  }

  private enum Phase: Sendable {
    case opening
    case open(any CacheStore)
    /// The last attempt has failed with an error that may be temporary.
    case failed(CacheError)
  }

  private struct State {
    var phase = Phase.opening
    var nextAttempt: Duration
    /// Whether the attempt in progress has lasted too long to wait for it.
    var isLate = false
    var waiters: [Resumption<Phase>] = []
  }

  package let id = ComponentID.unique(DeferredStore.self)
  private let state: Lock<State>
  private let clock: any CacheClock
  private let run: @Sendable (@escaping @Sendable () -> Void) -> Void
  private let open: @Sendable () throws(CacheError) -> any CacheStore

  /// Creates a store, and begins to open it.
  ///
  /// - Parameters:
  ///   - clock: The clock for the two intervals.
  ///   - run: Runs an attempt on another thread. Attempts do not overlap.
  ///   - open: Opens the store.
  package init(
    clock: any CacheClock = SystemClock(), run: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = inBackground,
    open: @escaping @Sendable () throws(CacheError) -> any CacheStore
  ) {
    (self.clock, self.run, self.open) = (clock, run, open)
    state = Lock(State(nextAttempt: clock.uptime + Self.retryInterval))
    attempt()
  }

  /// The number of calls that wait for an attempt.
  package var waitingCalls: Int { state.withLock { $0.waiters.count } }

  // MARK: Opening

  private var openStore: (any CacheStore)? {
    state.withLock { if case .open(let store) = $0.phase { store } else { nil } }
  }

  /// Opens the store, while the phase is `opening`.
  private func attempt() {
    let limit = Task.detached { [weak self, clock] in
      try? await clock.sleep(for: Self.waitLimit)
      self?.releaseWaiters()
    }
    run { [self] in
      let phase: Phase
      do throws(CacheError) {
        phase = .open(try open())
      } catch {
        phase = error.mayBeTemporary() ? .failed(error) : .open(UnusableStore(error: error))
      }
      // Cancelled before the phase changes, so that the task cannot affect a later attempt.
      limit.cancel()
      let waiters = state.withLock { state in
        defer { (state.phase, state.waiters) = (phase, []) }
        return state.waiters
      }
      for waiter in waiters { waiter.resume(returning: phase) }
    }
  }

  /// Ends the waits for an attempt that lasts too long. It is not interrupted, and its store is used when it ends.
  private func releaseWaiters() {
    let waiters = state.withLock { state -> [Resumption<Phase>] in
      guard !Task.isCancelled else { return [] }
      defer { (state.isLate, state.waiters) = (true, []) }
      return state.waiters
    }
    for waiter in waiters { waiter.resume(returning: .opening) }
  }

  /// Returns the open store. It begins an attempt if one is due, and waits for the one in progress.
  private func opened() async throws(CacheError) -> any CacheStore {
    if let store = openStore { return store }
    let now = clock.uptime
    let isDue = state.withLock { state in
      guard case .failed = state.phase, now >= state.nextAttempt else { return false }
      (state.phase, state.isLate, state.nextAttempt) = (.opening, false, now + Self.retryInterval)
      return true
    }
    if isDue { attempt() }
    let phase = await withResumption { (continuation: Resumption<Phase>) in
      let known = state.withLock { state -> Phase? in
        guard case .opening = state.phase, !state.isLate else { return state.phase }
        state.waiters.append(continuation)
        return nil
      }
      if let known { continuation.resume(returning: known) }
    }
    switch phase {
    case .open(let store): return store
    case .opening: throw CacheError(.storeUnavailable, reason: "the store is still being opened")
    case .failed(let error): throw error.refusal(.storeUnavailable)
    }
  }

  // MARK: Lookups

  package var boundsLookupTime: Bool { openStore?.boundsLookupTime ?? false }

  package func variantsWithoutWaiting(of resource: String) -> [StoredEntry]? {
    openStore?.variantsWithoutWaiting(of: resource)
  }

  package func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    try await opened().variants(of: resource)
  }

  package func latestVariants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    try await opened().latestVariants(of: resource)
  }

  package func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    try await opened().transforms(of: resource)
  }

  package func entries(of resource: String) async throws(CacheError) -> [ListedEntry] {
    try await opened().entries(of: resource)
  }

  package func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    try await opened().entry(for: key, range: range)
  }

  package func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry] {
    try await opened().values(for: keys)
  }

  package func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    try await opened().entries(where: isWanted)
  }

  package func keys(tagged tag: String) async throws(CacheError) -> Set<CacheKey> {
    try await opened().keys(tagged: tag)
  }

  package func usage() async throws(CacheError) -> StoreUsage? { try await opened().usage() }

  /// Returns the part of the open store, which is a `DiskCache` itself. Returns this store if it is not open.
  package func unsharedPart() async -> (any CacheStore)? {
    guard let store = try? await opened() else { return self }
    return await store.unsharedPart()
  }

  package func sharedPart() async -> (any CacheStore)? {
    guard let store = try? await opened() else { return nil }
    return await store.sharedPart()
  }

  // MARK: Changes

  package func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    try await opened().makeWriter(for: key, metadata: metadata)
  }

  package func makeWriter(
    for key: CacheKey, metadata: StoredMetadata, lease: any RequestLease
  ) async throws(CacheError) -> any EntryWriter {
    try await opened().makeWriter(for: key, metadata: metadata, lease: lease)
  }

  package func updateMetadata(
    of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision
  ) async throws(CacheError) -> Bool {
    try await opened().updateMetadata(of: key, to: metadata, ifRevision: ifRevision)
  }

  package func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {
    try await opened().remove(key, ifRevision: ifRevision)
  }

  package func remove(_ keys: [CacheKey]) async throws(CacheError) { try await opened().remove(keys) }

  package func markStale(_ keys: [CacheKey], at now: Timestamp) async throws(CacheError) {
    try await opened().markStale(keys, at: now)
  }

  package func removeAll() async throws(CacheError) { try await opened().removeAll() }
}

/// An empty store in place of one that cannot be opened.
private struct UnusableStore: CacheStore {
  let id = ComponentID.unique(UnusableStore.self)
  let error: CacheError

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] { [] }

  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? { nil }

  func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] { [] }

  func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    throw error.refusal(.readOnly)
  }

  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool {
    false
  }

  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {}

  func removeAll() async throws(CacheError) {}
}

extension CacheError {
  /// Whether an attempt to open the same folder may succeed later.
  ///
  /// Another process may end, and memory, descriptors or space may become free. The system refuses access to protected files with
  /// `EPERM` while a device is locked. The error of a folder that other users can change has the same number, but is final.
  ///
  /// - Parameter protectsFiles: Whether the system protects files while the device is locked.
  package func mayBeTemporary(protectsFiles: Bool = systemProtectsFiles) -> Bool {
    if code == .diskFull || code == .storeUnavailable { return true }
    switch errno {
    case EWOULDBLOCK, EIO, ENOMEM, EMFILE, ENFILE: return true
    case EPERM: return protectsFiles && path.flatMap(FileOwnership.init(path:))?.isTrusted != false
    default: return false
    }
  }

  #if canImport(Darwin)
  package static let systemProtectsFiles = true
  #else
  package static let systemProtectsFiles = false
  #endif

  /// Returns the error of a call that is refused because the store was not opened for this reason.
  fileprivate func refusal(_ code: Code) -> CacheError {
    CacheError(code, reason: "the store is not open: \(reason)", path: path, errno: errno, underlying: self)
  }
}

/// The standard validator of a private cache, which gets the secret of the store when the store is open.
///
/// Until then, its secret is random, so it cannot mistake one user's response for another's. A response to credentials that it
/// has judged with that secret is not found again. A load that reads the store first waits for the opening.
package final class DeferredValidator: ResponseValidator {
  package let id = ComponentID.unique(DeferredValidator.self)
  private let current = Lock<any ResponseValidator>(ETagValidator())

  package init() {}

  package func use(_ secret: DigestSecret) {
    let validator = ETagValidator(digestSecret: secret)
    current.withLock { $0 = validator }
  }

  private var validator: any ResponseValidator { current.withLock { $0 } }

  package func plan(_ request: HTTPRequest, policy: LoadPolicy, stored: [StoredMetadata], now: Timestamp) -> ValidationPlan {
    validator.plan(request, policy: policy, stored: stored, now: now)
  }

  package func judge(
    _ result: Result<HTTPResponse, CacheError>, to request: HTTPRequest, sent: HTTPRequest, fallback: Int?,
    stored: [StoredMetadata], requestTime: Timestamp, now: Timestamp, revision: Revision
  ) -> ValidationVerdict {
    validator.judge(
      result, to: request, sent: sent, fallback: fallback, stored: stored, requestTime: requestTime, now: now, revision: revision)
  }

  package func reply(to request: HTTPRequest, from metadata: StoredMetadata, now: Timestamp) -> StoredReply {
    validator.reply(to: request, from: metadata, now: now)
  }

  package func selectingFields(of metadata: StoredMetadata) -> [HTTPField.Name] { validator.selectingFields(of: metadata) }
}
