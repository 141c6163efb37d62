import CacheCore
import CacheTesting
import DiskStore
import Dispatch
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A system that suspends processes when a test says so.
final class SuspendingSystem: Sendable {
  enum Reply: Sendable { case grants, refuses, none }

  struct State: Sendable {
    var reply = Reply.grants
    var handler: (@Sendable (SuspensionSystem.Notice) -> Void)?
    var activities: [@Sendable (Bool) -> Void] = []
    /// The number of activities that are performed.
    var running = 0
  }

  private let state = Lock(State())

  var current: State { state.withLock { $0 } }

  func set(_ change: (inout State) -> Void) { state.withLock { change(&$0) } }

  /// The calls of this system for one cache.
  var system: SuspensionSystem {
    var system = SuspensionSystem(
      observe: { handler in
        self.set { $0.handler = handler }
        return 0
      },
      perform: { activity in
        let reply = self.state.withLock { state in
          state.activities.append(activity)
          return state.reply
        }
        guard reply != .none else { return }
        DispatchQueue.global().async {
          self.set { $0.running += 1 }
          activity(reply == .refuses)
          self.set { $0.running -= 1 }
        }
      })
    system.idleInterval = .milliseconds(5)
    // On a busy machine any time may pass before the reply, so only a test of this limit sets it.
    system.replyLimit = .seconds(600)
    return system
  }

  func send(_ notice: SuspensionSystem.Notice) { current.handler?(notice) }

  /// Tells the last activity that its time is over.
  func expire() { current.activities.last?(true) }
}

@Suite("Disk store: a process that the system suspends")
struct SuspensionTests {
  let folder: TemporaryFolder
  let phone = SuspendingSystem()
  let key = CacheKey(resource: "r")

  init() throws { folder = try TemporaryFolder() }

  /// Opens a cache of a process that the system suspends.
  private func cache(_ system: SuspendingSystem, home: String? = nil, _ change: (inout FileCalls) -> Void = { _ in }) throws
    -> DiskCache
  {
    var calls = FileCalls.system
    var suspension = system.system
    suspension.home = home
    calls.suspension = suspension
    change(&calls)
    return try folder.sharedCache(calls: calls)
  }

  /// The files and folders with a lock.
  private var locked: [String] {
    let paths = [folder.root, folder.root + "/tmp"] + folder.files(below: folder.root)
    return paths.filter { path in
      let descriptor = open(path, O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else { return false }
      defer { unlockAndClose(descriptor) }
      return flock(descriptor, LOCK_EX | LOCK_NB) != 0
    }
  }

  /// Stores an entry with a cache that is released afterwards, with its locks.
  private func storeInOtherProcess() async throws -> StoredMetadata {
    let other = try folder.sharedCache()
    let stored = try await other.store(bytes(200_000), for: key, metadata: metadata())
    await other.close()
    return stored
  }

  private func unlocked() async throws { try await Polling.until { locked.isEmpty } }

  /// Waits for the work that follows opening, and for the end of the time that it has requested.
  private func settled(_ cache: DiskCache, _ system: SuspendingSystem) async throws {
    _ = try await cache.entryCount
    try await Polling.until { system.current.running == 0 }
  }

  @Test("in the foreground, a cache keeps its locks, and hands them back when the app leaves it", .timeLimit(.minutes(30)))
  func leaving() async throws {
    let app = try cache(phone)
    try await settled(app, phone)
    phone.send(.foreground)
    try await app.store(bytes(300_000), for: key, metadata: metadata())
    #expect(locked.count == 2, "the counters and the temporary files")
    let requests = phone.current.activities.count
    try await app.store(bytes(10), for: CacheKey(resource: "s"), metadata: metadata())
    #expect(phone.current.activities.count == requests)
    phone.send(.background)
    try await unlocked()
    #expect(app.isWritable)
    await app.close()
    try await unlocked()
  }

  @Test(
    "an app and its widget share a folder, and each sees the changes of the other after a suspension", .timeLimit(.minutes(30)))
  func appAndWidget() async throws {
    // Given
    let app = try cache(phone)
    phone.send(.foreground)
    for number in 0..<3 { try await app.store(bytes(number), for: CacheKey(resource: "\(number)"), metadata: metadata()) }
    #expect(try await app.entryCount == 3)

    // When
    phone.send(.background)
    try await unlocked()
    let extensions = SuspendingSystem()
    let widget = try cache(extensions)
    #expect(try await widget.entryCount == 3)
    try await widget.removeAll()
    try await widget.store(bytes(20), for: key, metadata: metadata())
    try await unlocked()

    // Then
    phone.send(.foreground)
    #expect(try await app.bytes(CacheKey(resource: "0")) == nil)
    #expect(try await app.bytes(key) == bytes(20))
    #expect(try await app.entryCount == 1)
    for round in 0..<5 {
      let name = CacheKey(resource: "new \(round)")
      #expect(try await widget.bytes(name) == nil)
      try await app.store(bytes(30), for: name, metadata: metadata())
      #expect(try await widget.bytes(name) == bytes(30))
      try await widget.remove(name, ifRevision: nil)
      #expect(try await app.bytes(name) == nil)
    }
    phone.send(.background)
    try await unlocked()
    await widget.close()
    await app.close()
  }

  @Test("a cache in the background takes the locks for the time that the system grants", .timeLimit(.minutes(30)))
  func background() async throws {
    let app = try cache(phone)
    try await app.store(bytes(10), for: key, metadata: metadata())
    try await settled(app, phone)
    let requests = phone.current.activities.count
    #expect(try await app.entryCount == 1)
    #expect(phone.current.activities.count == requests + 1)
    try await unlocked()
  }

  @Test("counters that another process replaced meanwhile are found, and the index is built again", .timeLimit(.minutes(30)))
  func replacedCounters() async throws {
    let app = try cache(phone)
    phone.send(.foreground)
    try await app.store(bytes(10), for: key, metadata: metadata())
    #expect(try await app.entryCount == 1)
    phone.send(.background)
    try await unlocked()

    let other = try folder.sharedCache()
    try folder.raise(.started)
    #expect(try await other.repair().renewedCounters)
    try await other.remove(key, ifRevision: nil)
    try await other.store(bytes(20), for: CacheKey(resource: "s"), metadata: metadata())

    phone.send(.foreground)
    #expect(try await app.bytes(key) == nil)
    #expect(try await app.bytes(CacheKey(resource: "s")) == bytes(20))
    #expect(try await app.entryCount == 1)
    try await app.store(bytes(30), for: key, metadata: metadata())
    #expect(try await other.bytes(key) == bytes(30))
    await other.close()
  }

  @Test("a folder that was deleted during a suspension is created again", .timeLimit(.minutes(30)))
  func deletedFolder() async throws {
    let app = try cache(phone)
    phone.send(.foreground)
    try await app.store(bytes(10), for: key, metadata: metadata())
    phone.send(.background)
    try await unlocked()
    try FileManager.default.removeItem(atPath: folder.root)

    phone.send(.foreground)
    try await app.store(bytes(20), for: key, metadata: metadata())
    #expect(try await app.bytes(key) == bytes(20))
    #expect(locked.count == 2)
    phone.send(.background)
    try await unlocked()
  }

  @Test("an entry whose temporary file another process removed during a suspension is stored whole", .timeLimit(.minutes(30)))
  func writerInProgress() async throws {
    let app = try cache(phone)
    phone.send(.foreground)
    let writer = try await app.makeWriter(for: key, metadata: metadata())
    try await writer.write(bytes(200_000).prefix(150_000))
    #expect(folder.temporaryFiles.count == 1)
    phone.send(.background)
    try await unlocked()

    let other = try folder.sharedCache()
    try await Polling.until { folder.temporaryFiles.isEmpty }
    phone.send(.foreground)
    try await writer.write(bytes(200_000).dropFirst(150_000))
    _ = try await writer.commit(trailers: nil)
    #expect(try await app.bytes(key) == bytes(200_000))
    #expect(try await other.bytes(key) == bytes(200_000))
    await other.close()
  }

  @Test(
    "without time, entries are read, changes end with an error, and no lock is taken", .timeLimit(.minutes(30)),
    arguments: [SuspendingSystem.Reply.refuses, .none])
  func refused(reply: SuspendingSystem.Reply) async throws {
    // Given
    let stored = try await storeInOtherProcess()
    try await unlocked()
    phone.set { $0.reply = reply }
    let app = try cache(phone) { $0.suspension?.replyLimit = .milliseconds(1) }

    // Then
    #expect(try await app.bytes(key) == bytes(200_000))
    #expect(try await app.bytes(CacheKey(resource: "s")) == nil)
    let changes: [() async throws -> Void] = [
      { try await app.store(bytes(10), for: key, metadata: metadata()) },
      { try await app.store(bytes(100_000), for: key, metadata: metadata()) },
      { try await app.remove(key, ifRevision: nil) }, { try await app.remove([key]) }, { try await app.removeAll() },
      { _ = try await app.updateMetadata(of: key, to: stored, ifRevision: stored.revision) },
      { try await app.trim(to: 0) }, { try await app.repair() },
    ]
    for change in changes {
      let error = await failure(change)
      #expect(error?.code == .storeUnavailable)
      #expect(error?.reason.contains("suspend") == true)
      #expect(locked.isEmpty)
    }

    // When
    phone.set { $0.reply = .grants }
    phone.send(.foreground)
    try await app.store(bytes(10), for: key, metadata: metadata())
    #expect(try await app.bytes(key) == bytes(10))
  }

  @Test("when the time is over, a change in progress ends, and then the locks are handed back", .timeLimit(.minutes(30)))
  func expiry() async throws {
    // Given
    let began = Lock(false)
    let goes = DispatchSemaphore(value: 0)
    let app = try cache(phone) { calls in
      calls.rename = { from, to in
        if from.hasSuffix(".spool") {
          began.withLock { $0 = true }
          goes.wait()
        }
        return FileCalls.system.rename(from, to)
      }
    }
    goes.signal()
    try await app.store(bytes(10), for: key, metadata: metadata())
    try await unlocked()

    // When
    began.withLock { $0 = false }
    async let store: Void = { _ = try await app.store(bytes(20), for: CacheKey(resource: "s"), metadata: metadata()) }()
    try await Polling.until { began.withLock { $0 } }
    phone.expire()

    // Then
    #expect(!locked.isEmpty)
    #expect(try await app.bytes(key) == bytes(10))
    let error = await failure { _ = try await app.store(bytes(30), for: CacheKey(resource: "t"), metadata: metadata()) }
    #expect(error?.code == .storeUnavailable)
    phone.set { $0.reply = .refuses }
    goes.signal()
    try await store
    try await unlocked()
    #expect(try await app.bytes(CacheKey(resource: "s")) == bytes(20))
    #expect(locked.isEmpty)
    goes.signal()
  }

  @Test("when the time is over, the removal of many files stops, and a later opening removes the rest", .timeLimit(.minutes(30)))
  func expiryDuringRemoval() async throws {
    // Given
    let count = Lock(0)
    let app = try cache(phone) { calls in
      calls.unlink = { path in
        if path.contains(".trash/") {
          count.withLock { $0 += 1 }
          phone.expire()
        }
        return FileCalls.system.unlink(path)
      }
    }
    for number in 0..<9 { try await app.store(bytes(10), for: CacheKey(resource: "\(number)"), metadata: metadata()) }
    try await settled(app, phone)

    // When
    try await app.removeAll()

    // Then
    #expect(count.withLock { $0 } == 1)
    try await unlocked()
    let widget = try folder.sharedCache()
    #expect(try await widget.entryCount == 0)
    #expect(folder.files(below: folder.root + "/tmp").allSatisfy { $0.hasSuffix(".lock") })
    await widget.close()
  }

  @Test("a cache in the container of its own process keeps its locks", .timeLimit(.minutes(30)))
  func ownContainer() async throws {
    let app = try cache(phone, home: folder.path)
    #expect(phone.current.handler == nil)
    try await app.store(bytes(10), for: key, metadata: metadata())
    #expect(locked.count == 2)
    #expect(phone.current.activities.isEmpty)
    let next = try cache(phone, home: folder.path + "-other")
    #expect(phone.current.handler != nil)
    await next.close()
  }
}
