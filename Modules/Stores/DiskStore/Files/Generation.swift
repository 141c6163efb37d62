internal import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// `generation`: counters in a file, which tell an in-memory index whether other caches have changed the folder.
///
/// `started` is incremented before a file is moved into place or removed, and `finished` afterwards. If both are equal to the
/// value last seen, nothing has changed. A process killed in between leaves them unequal. That costs speed only, until a process
/// opens the folder while no other has it open. A third counter tells that entries were used.
///
/// The file is read and written with system calls. Access to a mapping would end the process when another program shortens the
/// file (`SIGBUS`). A cache that is the only one therefore relies on the values that it has read for a short time, its lease. A
/// fourth counter tells it that another cache has opened the file. That one ends its first change only when the lease is over.
final class Generation: Sendable {
  static let magic: [UInt8] = [0x8B, 0x45, 0x54, 0x47, 0x45, 0x4E, 0x01, 0x0A]
  /// The length in bytes. The file is written in full so that a full disk shows when it is created, not during an increment.
  static let length = 4096
  /// The number of bytes that have a meaning.
  private static let usedLength = Counter.opened.rawValue + 8
  /// The time for which the only cache relies on the counters after it began to read them.
  static let lease = Duration.milliseconds(10)

  /// A counter, by its offset in the file.
  private enum Counter: Int, CaseIterable { case started = 64, finished = 128, used = 192, opened = 256 }

  /// The file, with a shared lock for as long as this object may change something; see ``join()``.
  private let file: FileDescriptor
  /// The folder whose lock makes an increment atomic, or `nil` if there is none.
  private let turn: FileDescriptor?
  private let calls: FileCalls
  /// Whether the last attempt to take the turn ended without it. The lock is held during an increment, which can wait for other
  /// processes and for the disk.
  private let isTurnStuck = Lock(false)
  /// The lock is never held during a system call, so a lookup on its caller's thread does not wait for it.
  private let state: Lock<State>
  /// The identity of the open file. Another file may have replaced it at its path.
  let identity: FileStatus.Identity
  private let leases = Lock(Leases.ended)

  /// The leases of caches that opened the file earlier.
  private enum Leases {
    case ended
    /// They end at this uptime of the system.
    case endAt(Duration)
    /// They are renewed, because ``Counter/opened`` could not be incremented.
    case renewed
  }

  /// The values of all counters.
  private struct Numbers {
    var counts = Counts()
    var used: UInt64 = 0
    /// The number of times the file was opened.
    var opened: UInt64 = 0

    subscript(counter: Counter) -> UInt64 {
      get {
        switch counter {
        case .started: counts.started
        case .finished: counts.finished
        case .used: used
        case .opened: opened
        }
      }
      set {
        switch counter {
        case .started: counts.started = newValue
        case .finished: counts.finished = newValue
        case .used: used = newValue
        case .opened: opened = newValue
        }
      }
    }
  }

  private struct State {
    /// The part of the counters that this object contributed.
    var own = Numbers()
    /// The number of increments that this object began and ended. It is odd during an increment.
    var steps: UInt64 = 0
    /// Whether increments are atomic. Without file locks they can be lost, so the counters show nothing.
    var isAtomic: Bool
    /// The value of ``Counter/opened`` while no other cache had the file open.
    var openedAlone: UInt64?
  }

  /// The number of changes that were started and finished.
  struct Counts: Hashable, Sendable {
    var started: UInt64 = 0
    var finished: UInt64 = 0

    /// Whether no change is in progress.
    var isQuiet: Bool { started == finished }
  }

  /// Opens the counters at `path`. A missing file is created, and a damaged one is repaired in place so that other processes
  /// keep the same file. The caller has the folder's lock.
  init(_ path: String, _ calls: FileCalls) throws(SystemError) {
    self.calls = calls
    file = try Self.open(path, calls)
    identity = try file.status().identity
    // The shared lock of the file is held by every process, and the folder's own lock can be held for long.
    turn = try? FileDescriptor(Paths.parent(of: path) + "/tmp", .folder)
    state = Lock(State(isAtomic: false))
    join()
  }

  /// Takes the shared lock, and tells the caches that rely on earlier counters of this one. The caller has the folder's lock.
  func join() {
    // Every cache has the shared lock, so the exclusive lock proves that there is no other.
    let isAlone = turn != nil && file.tryLocking(calls) == nil
    if isAlone { makeEqual() }
    let opened = (read()?.opened ?? 0) &+ 1
    let leases = endLeases(opened)
    self.leases.withLock { $0 = isAlone ? .ended : leases }
    let error = file.lockShared(calls)
    state.withLock { state in
      state.isAtomic = turn != nil && (error == nil || error == .wouldBlock)
      // Without the value in the file, another cache would write the same one, and both would count as alone.
      if isAlone, usesLeases, case .endAt = leases { state.openedAlone = opened }
    }
  }

  /// Releases the shared lock. This object must change nothing until it joins again.
  func leave() { file.unlock() }

  /// Whether this cache relies on counters for the time of a lease. A cache that hands back its lock cannot: a cache that opens
  /// the file meanwhile finds itself the only one, and changes something without waiting.
  var usesLeases: Bool { calls.refusesChanges == nil }

  /// Makes counters equal that a killed process left unequal. No other cache has the file open.
  private func makeEqual() {
    guard let left = read()?.counts, !left.isQuiet else { return }
    // The new value is higher than both counters, so no index states it.
    let (next, overflow) = max(left.started, left.finished).addingReportingOverflow(1)
    guard !overflow else { return }
    for counter in [Counter.started, .finished] { _ = write(next, to: counter) }
    // The counters no longer contain the part of this object, which may have ended without an increment.
    state.withLock { $0.own = Numbers() }
  }

  /// Checks whether the other caches that had the file open have closed it. The caller has the folder's lock, as does every cache
  /// that opens the file.
  func checkOthers() {
    guard let opened = read()?.opened, opened != state.withLock({ $0.openedAlone }) else { return }
    let isAlone = file.tryLocking(calls) == nil
    // The attempt may have released the shared lock. Without it, another cache considers itself the only one.
    let isShared = file.lockShared(calls) == nil
    state.withLock { state in
      if !isShared {
        (state.isAtomic, state.openedAlone) = (false, nil)
      } else if isAlone {
        state.openedAlone = opened
      }
    }
  }

  deinit {
    // Unlocked explicitly: a child process that is being spawned at this moment has a copy of the descriptor, and thus the lock,
    // until it executes its program.
    file.unlock()
  }

  private static func open(_ path: String, _ calls: FileCalls) throws(SystemError) -> FileDescriptor {
    let file: FileDescriptor
    var isNew = true
    do throws(SystemError) {
      file = try FileDescriptor(path, .createNew)
    } catch {
      guard error == .exists else { throw error }
      isNew = false
      file = try FileDescriptor(path, .readAndWrite)
      // An earlier version has created the file with the class of the app.
      FileProtection.permitBackground(file.raw)
    }
    let status = try file.status()
    guard status.kind == .file else { throw .ioFailure }
    guard status.ownership.isTrusted else { throw .notPermitted }
    var bytes = try FileMemory(file, at: 0, count: length).withBytes { Array($0) }
    if !isNew, bytes.count < usedLength {
      bytes = fresh
      try calls.writeAll(file, bytes, at: 0)
    } else if bytes.count < length || !bytes.starts(with: magic) {
      // Existing counters stay, because a process that has seen them must not see them decrease.
      bytes += [UInt8](repeating: 0, count: length - bytes.count)
      bytes.replaceSubrange(0..<magic.count, with: magic)
      try calls.writeAll(file, bytes, at: 0)
    }
    return file
  }

  /// The content of a file whose counters were lost. They begin at a random value that no process has seen.
  private static var fresh: [UInt8] {
    var writer = ByteWriter()
    writer.raw(magic)
    let start = UInt64.random(in: 1 << 32..<1 << 62)
    for counter in Counter.allCases {
      writer.zeros(upTo: counter.rawValue)
      writer.integer(start)
    }
    writer.zeros(upTo: length)
    return writer.bytes
  }

  // MARK: Reading

  /// Reads the counters, or returns `nil` if another program has shortened or emptied the file.
  private func read() -> Numbers? {
    withUnsafeTemporaryAllocation(byteCount: Self.usedLength, alignment: 8) { buffer in
      guard (try? file.read(into: buffer, at: 0)) == buffer.count, buffer.prefix(8).elementsEqual(Self.magic) else { return nil }
      let bytes = UnsafeRawBufferPointer(buffer)
      return Numbers(
        counts: Counts(
          started: bytes.integer(at: Counter.started.rawValue), finished: bytes.integer(at: Counter.finished.rawValue)),
        used: bytes.integer(at: Counter.used.rawValue), opened: bytes.integer(at: Counter.opened.rawValue))
    }
  }

  /// The number of changes by all caches, or `nil` if the counters are lost or not atomic.
  var counts: Counts? { state.withLock({ $0.isAtomic }) ? read()?.counts : nil }

  /// The number of changes by caches other than this object, or `nil` if the counters are lost or not atomic. Equal and quiet
  /// values mean that no other cache changed anything. It waits for an increment by this object.
  var foreignChanges: Counts? { isTurnStuck.withLock { _ in foreignChangesWithoutWaiting } }

  /// The same as ``foreignChanges``, but `nil` during an increment by this object instead of waiting for its end.
  var foreignChangesWithoutWaiting: Counts? { foreignNumbers()?.counts }

  /// The same as ``foreignChangesWithoutWaiting``, and whether the values can be relied on for the time of a lease.
  var foreignChangesWithLease: (counts: Counts, isLeased: Bool)? {
    foreignNumbers().map { numbers in (numbers.counts, numbers.opened == state.withLock { $0.openedAlone }) }
  }

  /// The number of uses by other caches that were recorded in an entry's file, or `nil` if the counters are lost or not atomic.
  var foreignUses: UInt64? { isTurnStuck.withLock { _ in foreignNumbers()?.used } }

  /// Reads the counters without the part of this object. During an increment it returns `nil`, so that a change by this object
  /// never looks like another cache's.
  private func foreignNumbers() -> Numbers? {
    let before = state.withLock { $0 }
    guard before.isAtomic, before.steps.isMultiple(of: 2), var numbers = read(), state.withLock({ $0.steps }) == before.steps
    else { return nil }
    for counter in Counter.allCases { numbers[counter] &-= before.own[counter] }
    return numbers
  }

  // MARK: Changing

  /// Counts a use that was written to an entry's file.
  func noteUse() { increment(.used) }

  /// Leaves the counters unequal for good, because processes that still use this file no longer learn of changes.
  func retire() { increment(.started) }

  /// Runs `change` between the two increments, and returns when other caches that could rely on earlier values no longer do.
  func around<Result, Failure: Error>(_ change: () throws(Failure) -> Result) throws(Failure) -> Result {
    increment(.started)
    defer {
      increment(.finished)
      waitForLeases()
    }
    return try change()
  }

  private func waitForLeases() {
    guard case .endAt(let end) = leases.withLock({ $0 }) else { return }
    while case let left = end - SystemClock().uptime, left > .zero {
      usleep(UInt32(left.saturatedNanoseconds / 1_000 + 1))
    }
    leases.withLock { $0 = .ended }
  }

  /// Writes the counter that tells other caches of this one, and returns the state of their leases.
  private func endLeases(_ opened: UInt64) -> Leases {
    write(opened, to: .opened) ? .endAt(SystemClock().uptime + Self.lease) : .renewed
  }

  private func increment(_ counter: Counter) {
    isTurnStuck.withLock { isTurnStuck in
      let isTurn = takeTurn(&isTurnStuck)
      defer { if isTurn { turn?.unlock() } }
      state.withLock { $0.steps += 1 }
      var all = read()
      let isLost = all == nil
      if isLost {
        // Every cache finds values that it has not seen.
        _ = Self.fresh.withUnsafeBytes { calls.writeCounter(file.raw, $0, 0) }
        // The start of the change is lost, so its end is not counted either.
        all = counter == .finished ? nil : read()
      }
      if let opened = all?.opened, case .renewed = leases.withLock({ $0 }) {
        let leases = endLeases(opened &+ 1)
        self.leases.withLock { $0 = leases }
      }
      let isCounted = all.map { write($0[counter] &+ 1, to: counter) } ?? false
      state.withLock { state in
        if isLost { state.own = Numbers() }
        if isCounted { state.own[counter] &+= 1 }
        state.steps += 1
      }
    }
  }

  /// Returns whether the counter was written.
  private func write(_ number: UInt64, to counter: Counter) -> Bool {
    withUnsafeBytes(of: number.littleEndian) { bytes in
      (try? calls.writeCounter(file.raw, bytes, Int64(counter.rawValue)).get()) == bytes.count
    }
  }

  /// The number of attempts to take the turn of another process, which has it for three system calls: two seconds in all.
  private static let attempts = 2_100

  /// Takes the lock that makes an increment atomic.
  ///
  /// A suspended process can hold it for good. Then increments can be lost, and a cache can miss an entry until its next list.
  private func takeTurn(_ isTurnStuck: inout Bool) -> Bool {
    guard let turn else { return false }
    for attempt in 0..<(isTurnStuck ? 1 : Self.attempts) {
      guard let error = turn.tryLocking(calls) else {
        isTurnStuck = false
        return true
      }
      guard error == .wouldBlock else {
        state.withLock { $0.isAtomic = false }
        return false
      }
      if attempt < 100 { sched_yield() } else { usleep(1_000) }
    }
    isTurnStuck = true
    return false
  }
}

/// The number of changes in a folder by other caches.
struct FolderChanges: Hashable, Sendable {
  /// The number of the open counter file, in the order in which this cache opened them.
  var serial: UInt64
  var counts: Generation.Counts
}

/// The number of uses in a folder by other caches.
struct FolderUses: Hashable, Sendable {
  var serial: UInt64
  var count: UInt64
}
