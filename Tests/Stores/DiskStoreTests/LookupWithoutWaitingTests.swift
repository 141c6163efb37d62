import CacheCore
import CacheTesting
import DiskStore
import Dispatch
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A simulated page cache, so that tests can run on every platform.
private final class SystemMemory: Sendable {
  enum Mode: Sendable { case whole, half, absent, refuses(opening: Int32), refusesReading(Int32) }

  private let state = Lock((mode: Mode.whole, opened: 0, failure: Int32(0)))
  /// Work to run between the opening and the reading of the next file.
  private let between = Lock<(@Sendable () -> Void)?>(nil)

  func set(_ mode: Mode) { state.withLock { $0.mode = mode } }

  func doOnce(_ work: @escaping @Sendable () -> Void) { between.withLock { $0 = work } }

  /// The number of files that were opened.
  var opened: Int { state.withLock { $0.opened } }

  /// The number of the last error of the real system, or 0.
  var failure: Int32 { state.withLock { $0.failure } }

  private func fail<Value>() -> Result<Value, SystemError> {
    let number = errno
    state.withLock { $0.failure = number }
    return .failure(SystemError(number: number))
  }

  private func read(_ descriptor: Int32, _ bytes: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Result<Int, SystemError> {
    let count = pread(descriptor, bytes.baseAddress, bytes.count, off_t(offset))
    return count >= 0 ? .success(count) : fail()
  }

  func add(to calls: inout FileCalls) {
    calls.openCached = { [self] folder, path in
      let mode = state.withLock { state in
        state.opened += 1
        return state.mode
      }
      switch mode {
      case .absent: return .failure(SystemError(number: EAGAIN))
      case .refuses(let number): return .failure(SystemError(number: number))
      case .whole, .half, .refusesReading:
        let descriptor = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return fail() }
        between.withLock { work in
          defer { work = nil }
          return work
        }?()
        return .success(descriptor)
      }
    }
    calls.readCached = { [self] descriptor, bytes, offset in
      switch state.withLock({ $0.mode }) {
      case .refusesReading(let number): return .failure(SystemError(number: number))
      case .half where offset > 0: return .failure(SystemError(number: EAGAIN))
      case .half: return read(descriptor, UnsafeMutableRawBufferPointer(rebasing: bytes.prefix(bytes.count / 2)), offset)
      default: return read(descriptor, bytes, offset)
      }
    }
  }
}

/// An executor with one thread, which shows that its only task waits for another thread.
private final class LookupExecutor: TaskExecutor {
  private let queue = DispatchQueue(label: "lookup")
  private let jobs = Lock(0)

  /// Whether no job runs or is ready.
  var isIdle: Bool { jobs.withLock { $0 == 0 } }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0 += 1 }
    queue.async { [self] in
      job.runSynchronously(on: asUnownedTaskExecutor())
      jobs.withLock { $0 -= 1 }
    }
  }
}

@Suite("Disk store: hits that need no other thread")
struct LookupWithoutWaitingTests {
  let folder: TemporaryFolder
  let clock = ManualClock()
  /// Blocks removals while it is closed.
  let gate = Gate(isOpen: true)
  fileprivate let memory = SystemMemory()
  let cache: DiskCache
  let key = CacheKey(resource: "r")
  let busy = CacheKey(resource: "busy")

  init() async throws {
    folder = try TemporaryFolder()
    var calls = FileCalls.system
    let (gate, system) = (gate, calls)
    calls.unlink = { path in
      let turn = DispatchSemaphore(value: 0)
      _ = gate.arrive { turn.signal() }
      turn.wait()
      return system.unlink(path)
    }
    memory.add(to: &calls)
    cache = try folder.sharedCache(configuration: .init(clock: clock, ioWidth: 1), calls: calls)
    try await cache.store(bytes(100), for: busy, metadata: metadata(at: clock.now))
    try await cache.store(bytes(20_000), for: key, metadata: metadata(at: clock.now))
    try await know()
  }

  /// Makes the index reliable: a batch is read by a thread, which checks the folder's counters at the current time of the clock,
  /// and the total waits for the list. A single lookup may rely on its lease instead, which ends by the system's clock.
  private func know() async throws {
    _ = try await cache.values(for: [busy])
    _ = try await cache.totalSize
    let before = memory.opened
    _ = try await cache.entry(for: busy)
    try #require(memory.opened == before + 1)
  }

  /// Runs `work` while the only reading thread is busy, and returns its result. The work must need no thread. A lookup that needs
  /// one would wait for the end of the removal, so the test fails at once.
  private func whileBusy<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
    try await Polling.until { cache.variantsWithoutWaiting(of: key.resource) != nil }
    let (before, opened) = (gate.arrivals, memory.opened)
    gate.close()
    defer { gate.open() }
    let removal = Task { try await cache.remove(busy, ifRevision: nil) }
    await gate.arrived(before + 1)
    let response = Lock<Result<Value, any Error>?>(nil)
    let executor = LookupExecutor()
    Task(executorPreference: executor) {
      do {
        let value = try await work()
        response.withLock { $0 = .success(value) }
      } catch {
        response.withLock { $0 = .failure(error) }
      }
    }
    try await Polling.until { executor.isIdle }
    let result = response.withLock { $0 }
    let state =
      "opened \(memory.opened - opened) files, errno \(memory.failure), \(cache.counters), without waiting: "
      + "\(cache.variantsWithoutWaiting(of: key.resource).map { "\($0.count) variants" } ?? "nothing")"
    gate.open()
    try await removal.value
    return try #require(result, "a lookup waits for the reading thread: \(state)").get()
  }

  @Test("a read during a replacement does not overwrite the new size with the old one")
  func replaced() async throws {
    try await cache.store(bytes(60_000), for: key, metadata: metadata(at: clock.now))
    let size = try await cache.totalSize
    try await cache.store(bytes(20_000), for: key, metadata: metadata(at: clock.now))
    try await know()
    let done = Lock(false)
    memory.doOnce { [cache, key, now = clock.now] in
      let isStored = (try? DiskWork(cache).store(bytes(60_000), for: key, metadata: metadata(at: now))) != nil
      done.withLock { $0 = isStored }
    }

    #expect(try await cache.bytes(key) == bytes(20_000))

    #expect(done.withLock { $0 })
    #expect(try await cache.totalSize == size)
    #expect(try await cache.bytes(key) == bytes(60_000))
  }

  @Test("an entry that the system has in memory is read, checked and counted", .timeLimit(.minutes(30)))
  func hits() async throws {
    try await whileBusy { [cache, key] in
      let before = cache.counters.hits
      for _ in 0..<10 {
        #expect(try await cache.bytes(key) == bytes(20_000))
        let variants = try await cache.variants(of: key.resource)
        #expect(variants.map(\.key) == [key])
        #expect(variants.first?.body.data == bytes(20_000))
        #expect(variants.first?.metadata.bodyLength == 20_000)
      }
      #expect(cache.counters.hits == before + 20)
    }
  }

  @Test("a range of a large entry that the system has in memory is read and checked", .timeLimit(.minutes(30)))
  func ranges() async throws {
    let key = CacheKey(resource: "large")
    let whole = bytes(1_000_000)
    try await cache.store(whole, for: key, metadata: metadata(at: clock.now))
    try await know()
    // Ranges of one and of two blocks, and the end of the body.
    for range in [0..<1_000, 65_000..<130_536, 999_000..<1_000_000] as [Range<Int64>] {
      let found = try await whileBusy { [cache] in
        let variants = try await cache.variants(of: key.resource)
        #expect(variants.map(\.key) == [key] && variants.first?.body.data == nil)
        return try await cache.entry(for: key, range: range)?.body.collect()
      }
      #expect(found == whole[Int(range.lowerBound)..<Int(range.upperBound)])
      try await cache.store(bytes(100), for: busy, metadata: metadata(at: clock.now))
      try await know()
    }
    #expect(cache.variantsWithoutWaiting(of: key.resource) == nil)
  }

  @Test("a large entry that the system cannot read from memory, or a long range, is left to a thread that may wait")
  func absentRanges() async throws {
    let key = CacheKey(resource: "large")
    let whole = bytes(1_000_000)
    try await cache.store(whole, for: key, metadata: metadata(at: clock.now))
    try await know()
    for mode in [SystemMemory.Mode.whole, .absent, .half, .refusesReading(EAGAIN)] {
      memory.set(mode)
      let before = memory.opened
      let entry = try #require(try await cache.entry(for: key, range: 65_000..<400_000))
      #expect(memory.opened == before + 1)
      // The memory of the system can change between the two.
      memory.set(.refusesReading(EAGAIN))
      #expect(try await entry.body.collect() == whole[65_000..<400_000])
    }
  }

  @Test("a damaged block of a large entry is left to a thread, which removes the entry")
  func damagedRange() async throws {
    let known = folder.entryFiles
    let key = CacheKey(resource: "large")
    try await cache.store(bytes(1_000_000), for: key, metadata: metadata(at: clock.now))
    try await know()
    let path = try #require(folder.entryFiles.first { !known.contains($0) })
    var content = try file(path)
    content[500_000] ^= 1
    try put(content, path)
    let intact = try #require(try await cache.entry(for: key, range: 0..<1_000))
    #expect(try await intact.body.collect() == bytes(1_000_000)[0..<1_000])
    let damaged = try #require(try await cache.entry(for: key, range: 500_000..<500_100))
    #expect(await failure { _ = try await damaged.body.collect() }?.code == .damagedEntry)
    #expect(cache.counters.damaged == 1)
    #expect(!fileExists(path))
  }

  @Test("only an entry that the system has in memory is returned without waiting and counted as a hit")
  func atHand() async throws {
    let before = (cache.counters.hits, cache.counters.misses)

    let entries = try #require(cache.variantsWithoutWaiting(of: key.resource))
    #expect(entries.map(\.key) == [key])
    #expect(entries.first?.body.data == bytes(20_000))
    #expect(cache.variantsWithoutWaiting(of: "nothing") == nil)
    memory.set(.half)
    #expect(cache.variantsWithoutWaiting(of: key.resource) == nil)
    #expect((cache.counters.hits, cache.counters.misses) == (before.0 + 1, before.1))

    memory.set(.whole)
    try await cache.store(bytes(10), for: CacheKey(resource: key.resource, variant: "v"), metadata: metadata(at: clock.now))
    try await know()
    #expect(cache.variantsWithoutWaiting(of: key.resource) == nil)
    #expect(try await cache.variants(of: key.resource).count == 2)
  }

  @Test(
    "a file that the system cannot read from memory is left to a thread that may wait, and tried again later",
    arguments: [EAGAIN, EACCES, EMFILE, EINTR, EIO])
  func absent(_ number: Int32) async throws {
    let modes: [SystemMemory.Mode] = [.absent, .half, .refuses(opening: number), .refusesReading(number)]
    for mode in modes {
      memory.set(mode)
      let before = memory.opened
      #expect(try await cache.bytes(key) == bytes(20_000))
      #expect(try await cache.variants(of: key.resource).count == 1)
      #expect(memory.opened == before + 2)
    }
    memory.set(.whole)
    let found = try await whileBusy { [cache, key] in try await cache.bytes(key) }
    #expect(found == bytes(20_000))
  }

  @Test(
    "unsupported system calls are tried only once", arguments: [ENOSYS, EPERM, EOPNOTSUPP, EINVAL],
    [true, false])
  func unsupported(_ number: Int32, atOpening: Bool) async throws {
    memory.set(atOpening ? .refuses(opening: number) : .refusesReading(number))
    let before = memory.opened
    for _ in 0..<5 { #expect(try await cache.bytes(key) == bytes(20_000)) }
    #expect(memory.opened == before + 1)
  }

  @Test("a damaged entry is left to a thread, which removes it", arguments: [-1_000, -500, 200, 0])
  func damaged(_ offset: Int) async throws {
    let known = folder.entryFiles
    let key = CacheKey(resource: "damaged")
    try await cache.store(bytes(3_000), for: key, metadata: metadata(at: clock.now))
    let path = try #require(folder.entryFiles.first { !known.contains($0) })
    var content = try file(path)
    content[offset < 0 ? content.count + offset : offset] ^= 1
    try put(content, path)
    let before = memory.opened
    #expect(try await cache.bytes(key) == nil)
    #expect(memory.opened == before + 1)
    #expect(cache.counters.damaged == 1)
    #expect(!fileExists(path))
  }

  @Test("an expired entry, a large one and one of several variants are left to a thread")
  func others() async throws {
    let (expired, large) = (CacheKey(resource: "e"), CacheKey(resource: "l"))
    let variants = ["a=1", "a=2"].map { CacheKey(resource: "v", variant: $0) }
    try await cache.store(bytes(3_000), for: expired, metadata: metadata(at: clock.now, expiration: .after(.seconds(5))))
    try await cache.store(bytes(100_000), for: large, metadata: metadata(at: clock.now))
    for key in variants { try await cache.store(bytes(10), for: key, metadata: metadata(at: clock.now)) }
    clock.advance(by: .seconds(10))
    try await know()
    let before = memory.opened
    #expect(try await cache.bytes(large) == bytes(100_000))
    #expect(try await cache.variants(of: "v").count == 2)
    #expect(memory.opened == before)
    #expect(try await cache.bytes(expired) == nil)
    #expect(cache.counters.evictions[.expired] == 1)
    #expect(try await cache.bytes(variants[0]) == bytes(10))
    #expect(memory.opened == before + 2)
  }

  @Test("a transformed value does not count as another variant")
  func transforms() async throws {
    try await cache.store(bytes(10), for: key.with(transform: "small"), metadata: metadata(at: clock.now))
    let before = memory.opened
    #expect(try await cache.variants(of: key.resource).map(\.key) == [key])
    #expect(try await cache.bytes(key.with(transform: "small")) == bytes(10))
    #expect(memory.opened == before + 2)
  }

  @Test("a use is recorded in the file once a minute")
  func recency() async throws {
    clock.advance(by: .seconds(100))
    try await know()
    for _ in 0..<3 { #expect(try await cache.variants(of: key.resource).count == 1) }
    await cache.close()
    let again = try folder.sharedCache(clock: clock)
    #expect(try await again.entries().first { $0.key == key }?.lastUsed == clock.now)
  }

  @Test("a lookup after a removal or a store sees its result")
  func order() async throws {
    let before = gate.arrivals
    gate.close()
    let removal = Task { try await cache.remove(key, ifRevision: nil) }
    await gate.arrived(before + 1)
    let look = Task { try await cache.bytes(key) }
    let store = Task {
      _ = try await look.value
      try await cache.store(bytes(5), for: key, metadata: metadata(at: clock.now))
      return try await cache.bytes(key)
    }
    // Gives a lookup in the wrong order time to overtake.
    for _ in 0..<100 { await Task.yield() }
    gate.open()
    try await removal.value
    #expect(try await look.value == nil)
    #expect(try await store.value == bytes(5))
  }

  @Test("changes by another cache are seen")
  func foreign() async throws {
    let other = try folder.sharedCache(clock: clock)
    for size in [10, 2_000, 30_000] {
      try await other.store(bytes(size), for: key, metadata: metadata(at: clock.now))
      #expect(try await cache.bytes(key) == bytes(size))
    }
    try await other.store(bytes(5), for: CacheKey(resource: key.resource, variant: "a=b"), metadata: metadata(at: clock.now))
    #expect(try await cache.variants(of: key.resource).count == 2)
    try await other.remove(key, ifRevision: nil)
    #expect(try await cache.entry(for: key) == nil)
  }

  @Test("a lookup does not wait while the disk holds a change of the counters", .timeLimit(.minutes(30)))
  func heldCounters() async throws {
    let folder = try TemporaryFolder()
    let disk = Gate(isOpen: true)
    var calls = FileCalls.system
    memory.add(to: &calls)
    calls.writeCounter = { descriptor, bytes, offset in
      let turn = DispatchSemaphore(value: 0)
      _ = disk.arrive { turn.signal() }
      turn.wait()
      return FileCalls.system.writeCounter(descriptor, bytes, offset)
    }
    let cache = try DiskCache(path: folder.path, configuration: .init(clock: clock), calls: calls)
    try await cache.store(bytes(100), for: key, metadata: metadata(at: clock.now))
    _ = try await cache.entry(for: key)
    _ = try await cache.totalSize
    try await Polling.until { cache.variantsWithoutWaiting(of: key.resource) != nil }
    let before = disk.arrivals
    disk.close()
    let store = Task { try await cache.store(bytes(5), for: busy, metadata: metadata(at: clock.now)) }
    await disk.arrived(before + 1)

    #expect(try await cache.bytes(key) == bytes(100))
    #expect(try await cache.entry(for: CacheKey(resource: "nothing")) == nil)
    #expect(try await cache.variants(of: "nothing").isEmpty)
    #expect(try await cache.transforms(of: key.resource).isEmpty)

    disk.open()
    _ = try await store.value
    #expect(try await cache.bytes(busy) == bytes(5))
  }

  @Test("a closed cache throws an error")
  func closed() async throws {
    await cache.close()
    #expect(await failure { _ = try await cache.entry(for: key) }?.code == .closed)
    #expect(await failure { _ = try await cache.variants(of: key.resource) }?.code == .closed)
  }

  @Test("the real system calls return the contents of the file")
  func system() throws {
    let calls = FileCalls.system
    let path = try #require(folder.entryFiles.first)
    let content = try file(path)
    switch path.withCString({ calls.openCached(AT_FDCWD, $0) }) {
    case .failure(let error): #expect([EAGAIN, ENOSYS, EPERM].contains(error.number))
    case .success(let descriptor):
      defer { close(descriptor) }
      var found = Data(count: content.count + 10)
      let result = found.withUnsafeMutableBytes { calls.readCached(descriptor, $0, 0) }
      switch result {
      case .failure(let error): #expect([EAGAIN, EOPNOTSUPP].contains(error.number))
      case .success(let count): #expect(content.starts(with: found.prefix(count)) && count > 0)
      }
    }
    #expect(throws: SystemError.self) { try "/nowhere/at/all".withCString { calls.openCached(AT_FDCWD, $0) }.get() }
  }
}
