import CacheTesting
import Dispatch
import Etagere
import Foundation
import Testing

@Suite("A store that is opened on another thread", .timeLimit(.minutes(30)))
struct DeferredStoreTests {
  private let opening = Opening()
  private let recorder = RecordingStore()

  /// Waits until a number of calls wait for the opening.
  private func waits(_ store: DeferredStore, _ count: Int = 1) async throws {
    try await Polling.until { store.waitingCalls == count }
  }

  // MARK: Forwarding

  @Test("each call reaches the open store as the same call", arguments: StoreCall.all)
  func forwarding(_ call: StoreCall) async throws {
    let store = opening.store(recorder)
    opening.finish()
    try await call.run(on: store)
    #expect(recorder.calls == [call.name])
  }

  @Test("a call that arrives before the opening waits for it, and then reaches the store", arguments: StoreCall.all)
  func waiting(_ call: StoreCall) async throws {
    let store = opening.store(recorder)
    let task = Task { try await call.run(on: store) }
    try await waits(store)
    #expect(recorder.calls.isEmpty)
    opening.finish()
    try await task.value
    #expect(recorder.calls == [call.name])
  }

  @Test("properties and lookups without waiting are those of the open store, and do not wait for it")
  func withoutWaiting() {
    let store = opening.store(recorder)
    #expect(store.variantsWithoutWaiting(of: "a") == nil)
    #expect(!store.boundsLookupTime)
    #expect(recorder.calls.isEmpty && store.waitingCalls == 0)
    opening.finish()
    #expect(store.variantsWithoutWaiting(of: "a")?.isEmpty == true)
    #expect(store.boundsLookupTime)
    #expect(recorder.calls == ["variantsWithoutWaiting"])
  }

  @Test("the parts are those of the open store, and before it is open, all of this store is unshared")
  func parts() async throws {
    opening.fail(Self.locked)
    let store = opening.store(recorder)
    opening.finish()
    #expect(await store.unsharedPart()?.id == store.id)
    #expect(await store.sharedPart() == nil)

    opening.fail(nil)
    opening.clock.advance(by: DeferredStore.retryInterval)
    async let unshared = store.unsharedPart()
    try await waits(store)
    opening.finish()
    #expect(await unshared?.id == recorder.own.id)
    #expect(await store.sharedPart()?.id == recorder.id)
  }

  @Test("the contract holds, and the store is opened on another thread", arguments: StoreContract.cases)
  func contract(_ statement: StoreContract.Case) async throws {
    let folder = try TemporaryFolder()
    let isCreated = DispatchSemaphore(value: 0)
    let store = DeferredStore(clock: opening.clock) { () throws(CacheError) in
      guard isCreated.wait(timeout: .now() + 60) == .success else {
        throw CacheError(.misuse, reason: "opened on the thread of the initializer")
      }
      return try DiskCache(folder: folder.url)
    }
    isCreated.signal()
    try await statement.run(on: store)
  }

  // MARK: Calls before the opening

  @Test("a write that arrives before the opening is stored, and a removal after it removes the entry")
  func order() async throws {
    let store = opening.store(recorder)
    let task = Task {
      try await store.store(Data("a".utf8), for: StoreCall.key, metadata: StoreCall.metadata)
      try await store.removeAll()
    }
    try await waits(store)
    opening.finish()
    try await task.value
    #expect(recorder.calls == ["makeWriter", "write", "commit", "removeAll"])
  }

  @Test("a removal in a cancelled task waits for the opening, and is not skipped")
  func cancelled() async throws {
    let store = opening.store(recorder)
    let gate = Gate()
    let task = Task {
      await gate.pass()
      try await store.remove([StoreCall.key])
    }
    task.cancel()
    gate.open()
    try await waits(store)
    opening.finish()
    try await task.value
    #expect(recorder.calls == ["remove keys"])
  }

  @Test("an opening that takes too long no longer delays calls, and its store is used when it ends")
  func slowOpening() async throws {
    let store = opening.store(recorder)
    async let lookup = failure { _ = try await store.variants(of: "a") }
    async let removal = failure { try await store.removeAll() }
    try await waits(store, 2)
    await opening.clock.advance(pastSleepOf: DeferredStore.waitLimit)
    #expect(await lookup?.code == .storeUnavailable)
    #expect(await removal?.code == .storeUnavailable)

    // A wait would have no end, because the limit of this attempt has passed. No second attempt begins while the first one has
    // the folder.
    opening.clock.advance(by: DeferredStore.retryInterval)
    #expect(await failure { _ = try await store.makeWriter(for: StoreCall.key, metadata: StoreCall.metadata) } != nil)
    #expect(opening.attempts == 1)
    opening.finish()
    try await store.removeAll()
    #expect(recorder.calls == ["removeAll"])
  }

  // MARK: Errors

  private static let locked = CacheError(.fileSystem, reason: "locked", path: "/x", errno: EWOULDBLOCK)

  @Test("after an error that may be temporary, the first call after the interval opens the store again")
  func temporaryError() async throws {
    opening.fail(Self.locked)
    let store = opening.store(recorder)
    let first = Task { await failure { try await store.removeAll() } }
    try await waits(store)
    opening.finish()
    let error = try #require(await first.value)
    #expect(error.code == .storeUnavailable && error.errno == EWOULDBLOCK && error.path == "/x")

    opening.clock.advance(by: DeferredStore.retryInterval - .nanoseconds(1))
    for call in StoreCall.all where !call.isPart {
      #expect(await failure { try await call.run(on: store) }?.code == .storeUnavailable, "\(call)")
    }
    #expect(opening.attempts == 1)

    opening.fail(nil)
    opening.clock.advance(by: .nanoseconds(1))
    async let write: StoredMetadata = store.store(Data("a".utf8), for: StoreCall.key, metadata: StoreCall.metadata)
    try await waits(store)
    async let removal: Void = store.remove([StoreCall.key])
    try await waits(store, 2)
    #expect(opening.attempts == 2)
    opening.finish()
    _ = try await (write, removal)
    #expect(Set(recorder.calls) == ["makeWriter", "write", "commit", "remove keys"])
  }

  @Test("calls wait again for an attempt that follows one that took too long")
  func attemptAfterSlowOne() async throws {
    opening.fail(Self.locked)
    let store = opening.store(recorder)
    async let lookup = failure { _ = try await store.variants(of: "a") }
    try await waits(store)
    await opening.clock.advance(pastSleepOf: DeferredStore.waitLimit)
    #expect(await lookup?.code == .storeUnavailable)
    opening.finish()

    opening.fail(nil)
    opening.clock.advance(by: DeferredStore.retryInterval)
    async let removal: Void = store.removeAll()
    try await waits(store)
    opening.finish()
    try await removal
    #expect(recorder.calls == ["removeAll"])
  }

  @Test("after a final error, the store is empty, purges succeed, writers are refused, and no attempt follows")
  func finalError() async throws {
    opening.fail(CacheError(.fileSystem, reason: "no access", path: "/x", errno: EACCES))
    let store = opening.store(recorder)
    let purge = Task { try await store.removeAll() }
    try await waits(store)
    opening.finish()
    try await purge.value
    opening.clock.advance(by: .seconds(3_600))
    for call in StoreCall.all where !call.isWrite { try await call.run(on: store) }
    #expect(try await store.usage() == nil)
    let error = await failure { _ = try await store.makeWriter(for: StoreCall.key, metadata: StoreCall.metadata) }
    #expect(error?.code == .readOnly && error?.errno == EACCES)
    #expect(opening.attempts == 1 && recorder.calls.isEmpty)
  }

  @Test(
    "a locked device, another process and a lack of resources are temporary, and denied access is final",
    arguments: [
      (EACCES, false, false), (EROFS, false, false), (ENOTDIR, false, false), (ELOOP, false, false), (EWOULDBLOCK, true, true),
      (EMFILE, true, true), (ENFILE, true, true), (ENOMEM, true, true), (EIO, true, true), (EPERM, false, true),
    ] as [(Int32, Bool, Bool)])
  func classes(_ number: Int32, _ isTemporary: Bool, _ isTemporaryWithProtection: Bool) throws {
    let folder = try TemporaryFolder()
    let error = CacheError(.fileSystem, reason: "an error", path: folder.path, errno: number)
    #expect(error.mayBeTemporary(protectsFiles: false) == isTemporary)
    #expect(error.mayBeTemporary(protectsFiles: true) == isTemporaryWithProtection)
  }

  @Test("a full disk and a suspended process are temporary")
  func codes() {
    #expect(CacheError(.diskFull, reason: "full").mayBeTemporary())
    #expect(CacheError(.storeUnavailable, reason: "suspended").mayBeTemporary())
    #expect(!CacheError(.invalidConfiguration, reason: "no file URL").mayBeTemporary())
  }

  @Test("a folder that other users can change is refused for good, also where the system protects files")
  func ownership() throws {
    let folder = try TemporaryFolder()
    let root = folder.url.appending(path: "etagere-1").path(percentEncoded: false)
    try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: false)
    #expect(chmod(root, 0o777) == 0)
    let error = #expect(throws: CacheError.self) { _ = try DiskCache(folder: folder.url) }
    #expect(error?.errno == EPERM)
    #expect(error?.mayBeTemporary(protectsFiles: true) == false)
  }
}

@Suite("A manager whose folder is opened on another thread", .timeLimit(.minutes(30)))
struct DeferredManagerTests {
  private let folder: TemporaryFolder
  private let opening = Opening()
  private let network = ScriptedDownloader()
  private let url: URL

  init() throws {
    folder = try TemporaryFolder()
    url = try #require(URL(string: "https://example.com/film"))
    network.serve(url) { _ in .ok("film", cacheControl: "private, max-age=3600") }
  }

  private func manager(_ change: (inout ResourceManager.Configuration) -> Void = { _ in }) -> ResourceManager {
    var configuration = ResourceManager.Configuration.deferred(folder.url, clock: opening.clock, run: opening.run)
    configuration.downloader = network
    // Loads wait for the store however long it takes.
    (configuration.storeReadTimeout, configuration.storeWriteTimeout) = (nil, nil)
    change(&configuration)
    return ResourceManager(configuration)
  }

  private func store(_ manager: ResourceManager) throws -> DeferredStore {
    try #require(manager.configuration.store as? DeferredStore)
  }

  @Test(
    "the first load waits for the folder before or after its request, and its response reaches the disk",
    arguments: [LoadPolicy.standard, .reload])
  func firstLoad(_ policy: LoadPolicy) async throws {
    let first = manager()
    let load = Task { [url] in try await first.load(url, options: RequestOptions { $0.policy = policy }) }
    let store = try store(first)
    try await Polling.until { store.waitingCalls == 1 }
    #expect(network.requests.count == (policy == .reload ? 1 : 0))
    opening.finish()
    #expect(try await load.value.source == .network)
    let second = try ResourceManager.standard(folder)
    #expect(try await second.load(url, options: RequestOptions { $0.policy = .cacheOnly }).source == .disk)
  }

  @Test("a hit in memory does not wait for the folder")
  func memoryHit() async throws {
    let first = manager()
    let store = try store(first)
    let load = Task { [url] in try await first.load(url) }
    try await Polling.until { store.waitingCalls == 1 }
    await opening.clock.advance(pastSleepOf: DeferredStore.waitLimit)
    #expect(try await load.value.source == .network)
    #expect(first.cachedInMemory(url)?.data == Data("film".utf8))
    #expect(try await first.load(url).source == .memory)
    opening.finish()
  }

  @Test("a purge that begins before the folder is open empties the folder")
  func purge() async throws {
    _ = try await ResourceManager.standard(folder) { $0.downloader = network }.load(url)
    #expect(folder.entries.count == 1)
    let manager = manager()
    let store = try store(manager)
    let purge = Task { try await manager.purge(.everything) }
    try await Polling.until { store.waitingCalls == 1 }
    #expect(folder.entries.count == 1)
    opening.finish()
    #expect(try await purge.value == 1)
    #expect(folder.entries.isEmpty)
  }

  @Test("while the folder is locked, loads use memory and purges fail, and after the unlock responses are stored")
  func lockedFolder() async throws {
    opening.fail(CacheError(.fileSystem, reason: "locked", errno: EWOULDBLOCK))
    let disk = VolatileStore()
    let store = opening.store(disk)
    opening.finish()
    let manager = manager { $0.store = store }
    #expect(try await manager.load(url).source == .network)
    #expect(try await manager.load(url).source == .memory)
    #expect(await failure { try await manager.purge(.everything) }?.code == .storeUnavailable)
    #expect(try await manager.load(url).source == .network)

    opening.fail(nil)
    opening.clock.advance(by: DeferredStore.retryInterval)
    let load = Task { [url] in try await manager.load(url, options: RequestOptions { $0.policy = .reload }) }
    try await Polling.until { store.waitingCalls == 1 }
    opening.finish()
    #expect(try await load.value.source == .network)
    #expect(disk.keys.count == 1)
    #expect(try await manager.purge(.everything) == 1)
    #expect(disk.keys.isEmpty)
  }

  @Test("a response to credentials is found after a restart, and not for other credentials")
  func secret() async throws {
    func load(_ token: String) async throws -> ResourceSource {
      let manager = manager()
      let store = try store(manager)
      let load = Task { [url] in try await manager.load(ResourceRequest(url, headerFields: [.authorization: "Bearer \(token)"])) }
      try await Polling.until { store.waitingCalls == 1 }
      opening.finish()
      return try await load.value.source
    }
    #expect(try await load("berta-002") == .network)
    #expect(try await load("berta-002") == .disk)
    #expect(try await load("anna-001") == .network)
  }

  @Test("the disk cache is the part of the store that only this machine uses")
  func openDisk() async throws {
    let manager = manager()
    opening.finish()
    let disk = try #require(await manager.configuration.store?.unsharedPart() as? DiskCache)
    #expect(disk.path == folder.path)
    let own = try ResourceManager.standard(folder)
    #expect(await own.configuration.store?.unsharedPart() is DiskCache)
  }
}

/// Attempts to open a store, which run when the test says so.
private final class Opening: Sendable {
  private struct State {
    var pending: [@Sendable () -> Void] = []
    var attempts = 0
    var failure: CacheError?
  }

  private let state = Lock(State())
  let clock = ManualClock()

  /// The number of attempts that have begun.
  var attempts: Int { state.withLock { $0.attempts } }

  /// Sets the error of attempts from now on, or `nil` for success.
  func fail(_ error: CacheError?) { state.withLock { $0.failure = error } }

  var run: @Sendable (@escaping @Sendable () -> Void) -> Void {
    { attempt in
      self.state.withLock { state in
        state.attempts += 1
        state.pending.append(attempt)
      }
    }
  }

  func store(_ store: any CacheStore) -> DeferredStore {
    DeferredStore(clock: clock, run: run) { () throws(CacheError) in
      if let failure = self.state.withLock({ $0.failure }) { throw failure }
      return store
    }
  }

  /// Runs the attempts that have begun.
  func finish() {
    let pending = state.withLock { state in
      defer { state.pending = [] }
      return state.pending
    }
    for attempt in pending { attempt() }
  }
}

/// A call of a store.
struct StoreCall: Sendable, CustomTestStringConvertible {
  static let key = CacheKey(resource: "https://example.com/a")

  static var metadata: StoredMetadata {
    let now = SystemClock().now
    return StoredMetadata(
      request: HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/a"),
      response: HTTPResponse(status: .ok), requestTime: now, responseTime: now, revision: .random(),
      freshness: Freshness(generatedAt: now, freshUntil: .distantFuture))
  }

  let name: String
  private let body: @Sendable (any CacheStore) async throws -> Void

  init(_ name: String, _ body: @escaping @Sendable (any CacheStore) async throws -> Void) {
    (self.name, self.body) = (name, body)
  }

  var testDescription: String { name }
  var isWrite: Bool { name.hasPrefix("makeWriter") }
  /// Whether the call cannot throw.
  var isPart: Bool { name.hasSuffix("Part") }

  func run(on store: any CacheStore) async throws { try await body(store) }

  static let all = [
    StoreCall("variants") { _ = try await $0.variants(of: "a") },
    StoreCall("latestVariants") { _ = try await $0.latestVariants(of: "a") },
    StoreCall("transforms") { _ = try await $0.transforms(of: "a") },
    StoreCall("entries of") { _ = try await $0.entries(of: "a") },
    StoreCall("entry") { _ = try await $0.entry(for: key, range: 0..<1) },
    StoreCall("values") { _ = try await $0.values(for: [key]) },
    StoreCall("entries where") { _ = try await $0.entries { _, _ in true } },
    StoreCall("keys") { _ = try await $0.keys(tagged: "a") },
    StoreCall("usage") { _ = try await $0.usage() },
    StoreCall("unsharedPart") { _ = await $0.unsharedPart() },
    StoreCall("sharedPart") { _ = await $0.sharedPart() },
    StoreCall("makeWriter") { _ = try await $0.makeWriter(for: key, metadata: metadata) },
    StoreCall("makeWriter with lease") { _ = try await $0.makeWriter(for: key, metadata: metadata, lease: Lease()) },
    StoreCall("updateMetadata") { _ = try await $0.updateMetadata(of: key, to: metadata, ifRevision: .random()) },
    StoreCall("remove") { try await $0.remove(key, ifRevision: nil) },
    StoreCall("remove keys") { try await $0.remove([key]) },
    StoreCall("markStale") { try await $0.markStale([key], at: .distantPast) },
    StoreCall("removeAll") { try await $0.removeAll() },
  ]

  private final class Lease: RequestLease {
    let resource = "a", selection = ""
    let token: UInt64 = 1

    func endAsStored() {}
    func endAsNotShared(for duration: Duration) {}
    func abandon() {}
  }
}

/// An empty store that records each call, and has an implementation of each requirement.
private final class RecordingStore: CacheStore {
  let id = ComponentID.unique(RecordingStore.self)
  let own = VolatileStore()
  let boundsLookupTime = true
  private let recorded = Lock<[String]>([])

  var calls: [String] { recorded.withLock { $0 } }

  private func record(_ call: String) { recorded.withLock { $0.append(call) } }

  func variantsWithoutWaiting(of resource: String) -> [StoredEntry]? {
    record("variantsWithoutWaiting")
    return []
  }
  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    record("variants")
    return []
  }
  func latestVariants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    record("latestVariants")
    return []
  }
  func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    record("transforms")
    return []
  }
  func entries(of resource: String) async throws(CacheError) -> [ListedEntry] {
    record("entries of")
    return []
  }
  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    record("entry")
    return nil
  }
  func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry] {
    record("values")
    return [:]
  }
  func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    record("entries where")
    return []
  }
  func keys(tagged tag: String) async throws(CacheError) -> Set<CacheKey> {
    record("keys")
    return []
  }
  func usage() async throws(CacheError) -> StoreUsage? {
    record("usage")
    return nil
  }
  func unsharedPart() async -> (any CacheStore)? {
    record("unsharedPart")
    return own
  }
  func sharedPart() async -> (any CacheStore)? {
    record("sharedPart")
    return self
  }
  func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    record("makeWriter")
    return Writer(self, metadata)
  }
  func makeWriter(
    for key: CacheKey, metadata: StoredMetadata, lease: any RequestLease
  ) async throws(CacheError) -> any EntryWriter {
    record("makeWriter with lease")
    return Writer(self, metadata)
  }
  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool {
    record("updateMetadata")
    return true
  }
  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) { record("remove") }
  func remove(_ keys: [CacheKey]) async throws(CacheError) { record("remove keys") }
  func markStale(_ keys: [CacheKey], at now: Timestamp) async throws(CacheError) { record("markStale") }
  func removeAll() async throws(CacheError) { record("removeAll") }

  private final class Writer: EntryWriter {
    private let store: RecordingStore
    private let metadata: StoredMetadata

    init(_ store: RecordingStore, _ metadata: StoredMetadata) { (self.store, self.metadata) = (store, metadata) }

    func write(_ chunk: Data) async throws(CacheError) { store.record("write") }
    func commit(trailers: HTTPFields?) async throws(CacheError) -> StoredMetadata {
      store.record("commit")
      return metadata
    }
    func abort() {}
  }
}
