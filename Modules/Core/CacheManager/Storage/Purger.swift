internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Carries out a purge in memory and in the store.
///
/// The shared part of the store is purged before the unshared part. In the opposite order, a lookup could copy a response from
/// the shared part again.
///
/// Memory is purged twice. A load can read the store before its entry is removed, and then put the response into memory. The
/// second pass removes it. The count of the log rises before that pass, so that the response is not put into memory later.
struct Purger: Sendable {
  let purge: Purge
  let memory: MemoryTier?
  let store: (any CacheStore)?
  let clock: any CacheClock
  let invalidations: InvalidationLog
  let order: CommitOrder
  /// The durable store of this process, of which ``store`` may be a part.
  let commitsTo: ComponentID?

  /// Runs the purge. If an entry fails, the purge continues with the others.
  ///
  /// - Parameter tellOthers: Sends the purge to other machines and waits for them. It is called once, after the shared part of
  ///   the store was purged, and runs while the unshared part is purged.
  /// - Returns: The number of responses that matched.
  /// - Throws: One of the errors.
  func run(tellOthers: @escaping @Sendable () async throws(CacheError) -> Void = {}) async throws(CacheError) -> Int {
    var met: Set<CacheKey> = []
    var failure: CacheError?
    prepare()
    async let metInMemory = purgedInMemory()
    let shared = await store?.sharedPart()
    var purged: Set<CacheKey>?
    if let shared { purged = await purge(shared, &met, &failure) }
    async let failureOfOthers = Self.failure(of: tellOthers)
    // Copies from the shared part that began before its purge do not commit after this call.
    if let own = shared == nil ? store : await store?.unsharedPart() { await purge(own, after: purged, &met, &failure) }
    var results = [await metInMemory]
    // Responses whose commits had begun were not listed. Each applies the purge before its commit ends.
    if let commitsTo {
      await order.waitForCommits(in: commitsTo, where: purge.mayMatch)
      invalidations.advance(afterRemovalOf: purge.resource)
      results.append(purgedInMemory())
    }
    let failed = await failureOfOthers
    if let failure = failure ?? failed { throw failure }
    for result in results { met.formUnion(try result.get()) }
    return met.count
  }

  private static func failure(of work: () async throws(CacheError) -> Void) async -> CacheError? {
    do throws(CacheError) {
      try await work()
      return nil
    } catch {
      return error
    }
  }

  /// Prevents running loads from storing responses that the purge selects.
  func prepare() { invalidations.advance(with: purge) }

  private func purgedInMemory() -> Result<Set<CacheKey>, CacheError> {
    Result { () throws(CacheError) in try memory?.purge(purge, at: clock.now) ?? [] }
  }

  /// Purges a part of the store. A response that replaces a listed one meanwhile may be purged too. This costs at most another
  /// request.
  ///
  /// - Parameter purged: The keys that were purged in the shared part. Another entry may have been stored in both parts since
  ///   the shared one was listed, so it is purged in the whole store. With `nil`, only this part is changed, because there is no
  ///   shared part or it has failed.
  /// - Returns: The keys that were purged, or `nil` after an error.
  @discardableResult
  private func purge(
    _ part: any CacheStore, after purged: Set<CacheKey>? = nil, _ met: inout Set<CacheKey>, _ failure: inout CacheError?
  ) async -> Set<CacheKey>? {
    do throws(CacheError) {
      let keys = try await keys(in: part)
      met.formUnion(keys.lazy.map { $0.with(transform: "") })
      if let purged, let store {
        let added = keys.subtracting(purged)
        let failed = await Self.failure { () throws(CacheError) in try await change(store, added) }
        failure = failure ?? failed
        try await change(part, keys.intersection(purged))
      } else {
        try await change(part, keys)
      }
      return keys
    } catch {
      failure = failure ?? error
      return nil
    }
  }

  private func change(_ store: any CacheStore, _ keys: Set<CacheKey>) async throws(CacheError) {
    guard !keys.isEmpty else { return }
    switch purge.mode {
    case .hard: try await store.remove(Array(keys))
    case .soft: try await store.markStale(Array(keys), at: clock.now)
    }
  }

  /// Returns the keys of the entries in a part of the store that the purge selects.
  private func keys(in store: any CacheStore) async throws(CacheError) -> Set<CacheKey> {
    if let resource = purge.resource { return Set(try await store.entries(of: resource).map(\.key)) }
    if let tag = purge.tag { return try await store.keys(tagged: tag).filter { purge.isInScope($0.resource) } }
    return Set(try await store.entries { [purge] in purge.matches($0, $1) }.map(\.key))
  }
}

/// A purge as a predicate on the keys and metadata of stored responses.
struct Purge: Codable, Sendable {
  private enum Subject: Codable, Sendable {
    case uri(String)
    case key(String)
    case prefix(String)
    case tag(String)
    case everything
  }

  let mode: PurgeMode
  private let subject: Subject
  private let scope: PurgeScope

  /// Creates the purge of a selection.
  ///
  /// - Parameter resource: Returns the resource, without a partition, under which loads of a URL store their responses.
  init(
    _ selection: PurgeSelection, _ mode: PurgeMode, in scope: PurgeScope,
    resource: (PurgeSelection.Kind) throws(CacheError) -> String
  ) throws(CacheError) {
    self.mode = mode
    self.scope = scope
    switch selection.kind {
    case .url:
      let parts = ResourceID.parts(of: try resource(selection.kind))
      subject = parts.kind == .key ? .key(parts.text) : .uri(parts.text)
    case .prefix: subject = .prefix(try resource(selection.kind))
    case .key(let key): subject = .key(key)
    case .tag(let name): subject = .tag(name)
    case .everything: subject = .everything
    }
  }

  /// A purge of everything in all partitions.
  static let everything = Purge(.everything, .hard, in: .all)
  /// A purge that marks everything in all partitions stale.
  static let everythingSoft = Purge(.everything, .soft, in: .all)

  private init(_ subject: Subject, _ mode: PurgeMode, in scope: PurgeScope) {
    self.mode = mode
    self.subject = subject
    self.scope = scope
  }

  /// The only resource that the purge affects, or `nil` if the stored entries must be listed.
  var resource: String? {
    guard case .partition(let partition) = scope else { return nil }
    return switch subject {
    case .uri(let uri): ResourceID.make(uri: uri, partition: partition)
    case .key(let key): ResourceID.make(uri: "", key: key, partition: partition)
    case .prefix, .tag, .everything: nil
    }
  }

  /// The tag that all matching responses have, or `nil` if the purge does not select them by tag.
  var tag: String? { if case .tag(let name) = subject { name } else { nil } }

  /// Whether stored responses of a resource may match, judged by its name.
  func mayMatch(_ resource: String) -> Bool { matches(resource, nil) }

  /// Whether a stored response matches.
  func matches(_ key: CacheKey, _ metadata: StoredMetadata) -> Bool { matches(key.resource, metadata) }

  /// Whether a resource is in a partition that is purged.
  func isInScope(_ resource: String) -> Bool { isInScope(ResourceID.parts(of: resource)) }

  private func isInScope(_ parts: ResourceID.Parts) -> Bool {
    if case .partition(let partition) = scope { partition ?? "" == parts.partition ?? "" } else { true }
  }

  private func matches(_ resource: String, _ metadata: StoredMetadata?) -> Bool {
    let parts = ResourceID.parts(of: resource)
    guard isInScope(parts) else { return false }
    switch subject {
    case .everything: return true
    case .uri(let uri): return parts.kind == .uri && parts.text == uri
    case .key(let key): return parts.kind == .key && parts.text == key
    case .prefix(let prefix):
      switch parts.kind {
      case .uri: return parts.text.utf8.starts(with: prefix.utf8)
      case .key: return metadata.map { ResourceID.uri(of: $0.request)?.utf8.starts(with: prefix.utf8) ?? false } ?? true
      case .name: return false
      }
    case .tag(let name): return metadata.map { CacheTags($0.response.headerFields).contains(name) } ?? true
    }
  }
}

extension MemoryTier {
  /// Removes the responses that a purge selects, or marks them stale. Values that were made from removed responses are removed
  /// too.
  ///
  /// - Returns: The keys of the selected responses.
  /// - Throws: An error if the store must list its keys and cannot.
  func purge(_ purge: Purge, at now: Timestamp) throws(CacheError) -> Set<CacheKey> {
    guard let resource = purge.resource else { return self.purge(listed: try store.keys(), purge, now) }
    var met: Set<CacheKey> = []
    self.purge(resource, purge, now, &met)
    return met
  }

  private func purge(listed keys: [CacheKey], _ purge: Purge, _ now: Timestamp) -> Set<CacheKey> {
    var met: Set<CacheKey> = []
    for key in keys where Self.isIndex(key) && purge.mayMatch(key.resource) {
      self.purge(key.resource, purge, now, &met)
    }
    // The values of an index that was evicted may belong to selected responses.
    ResourceEpoch.advanceAll()
    guard purge.mode == .hard, !met.isEmpty else { return met }
    for key in keys where !key.transform.isEmpty && !Self.isIndex(key) && met.contains(key.with(transform: "")) {
      store.remove(key, ifRevision: nil)
    }
    return met
  }

  private func purge(_ resource: String, _ purge: Purge, _ now: Timestamp, _ met: inout Set<CacheKey>) {
    var found: [(key: CacheKey, revision: Revision)] = []
    _ = change(CacheKey(resource: resource)) { index in
      index.records = index.records.compactMap { record in
        let key = CacheKey(resource: resource, variant: record.variant)
        guard purge.matches(key, record.metadata) else { return record }
        found.append((key, record.metadata.revision))
        guard purge.mode == .soft else { return nil }
        return record.markedStale(at: now)
      }
      return !found.isEmpty
    }
    for (key, revision) in found {
      met.insert(key)
      if purge.mode == .hard { store.remove(key, ifRevision: revision) }
    }
  }
}

/// A manager as a member of its fleet. It sends its purges to the other members, and applies theirs.
///
/// A purge has two steps. First, each member prevents its running loads from storing what the purge selects. Then the shared
/// store is purged, and after it the memory and the disk of all members at the same time.
final class FleetMember: Sendable {
  /// A message to the other members.
  private struct Message: Codable {
    enum Step: String, Codable {
      /// Running loads must not store what the purge selects.
      case prepare
      /// The shared store is purged.
      case purge
    }

    var step: Step
    var purge: Purge
  }

  private let membership: any FleetMembership

  init(
    _ fleet: any CacheFleet, _ configuration: ResourceManager.Configuration, _ invalidations: InvalidationLog,
    _ order: CommitOrder
  ) {
    let memory = configuration.memory.map(MemoryTier.init)
    let (store, clock) = (configuration.store, configuration.clock)
    let purger: @Sendable (Purge, (any CacheStore)?) -> Purger = { purge, store in
      Purger(
        purge: purge, memory: memory, store: store, clock: clock, invalidations: invalidations, order: order,
        commitsTo: configuration.store?.id)
    }
    let run: @Sendable (Purge, Bool) async throws(CacheError) -> Void = { purge, isLate throws(CacheError) in
      let unshared = await store?.unsharedPart()
      // Between its return and a late message, this process may have stored a purged response in the shared store.
      do throws(CacheError) {
        _ = try await purger(purge, isLate ? store : unshared).run()
      } catch {
        // A store that cannot list its entries is emptied.
        guard error.code == .unsupported else { throw error }
        memory?.removeAll()
        try await unshared?.removeAll()
      }
    }
    membership = fleet.join(
      receive: { text, isLate throws(CacheError) in
        switch Self.message(text) {
        case let message? where message.step == .prepare: purger(message.purge, nil).prepare()
        case let message?: try await run(message.purge, isLate)
        // Another version of this package sent the message.
        case nil: try await run(.everythingSoft, false)
        }
      },
      // Every response of this machine may be outdated. The shared store or the origin confirms it at its next use.
      missed: { () throws(CacheError) in try await run(.everythingSoft, false) })
  }

  /// Whether the memory and the disk of this process have no response that another process has purged.
  var isCurrent: Bool { membership.isCurrent }

  func leave() async { await membership.leave() }

  /// Runs a purge in every member.
  ///
  /// - Returns: The number of responses that matched in this process and in the shared store.
  /// - Throws: One of the errors. The purge continues after an error.
  func run(_ purger: Purger) async throws(CacheError) -> Int {
    var failure: CacheError?
    do throws(CacheError) {
      try await broadcast(.prepare, purger.purge)
    } catch {
      failure = error
    }
    do throws(CacheError) {
      let count = try await purger.run { [self] () throws(CacheError) in try await broadcast(.purge, purger.purge) }
      if let failure { throw failure }
      return count
    } catch {
      throw failure ?? error
    }
  }

  private func broadcast(_ step: Message.Step, _ purge: Purge) async throws(CacheError) {
    let text: String
    do {
      text = String(decoding: try JSONEncoder().encode(Message(step: step, purge: purge)), as: UTF8.self)
    } catch {
      throw CacheError(.misuse, reason: "the purge cannot be sent to other processes", underlying: error)
    }
    try await membership.broadcast(text)
  }

  /// Returns the message, or `nil` if another version of this package sent it in a form that this version does not know.
  private static func message(_ text: String) -> Message? { try? JSONDecoder().decode(Message.self, from: Data(text.utf8)) }
}
