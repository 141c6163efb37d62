internal import CChecksum
internal import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// `generation`: counters in a file that every process maps, which tell an in-memory index whether the folder has changed.
///
/// `started` is incremented before a file is moved into place or removed, and `finished` afterwards. If both are equal to the
/// value last seen, nothing has changed. A process killed in between leaves them unequal. That costs speed only, until a process
/// opens the folder while no other has it open. A third counter tells that entries were used.
// Proof of `@unchecked Sendable`: `memory` never changes, and only atomic instructions access the counters behind it.
final class Generation: @unchecked Sendable {
  static let magic: [UInt8] = [0x8B, 0x45, 0x54, 0x47, 0x45, 0x4E, 0x01, 0x0A]
  /// The length in bytes. The file is written in full so that a full disk shows when it is created, not during an increment.
  static let length = 4096
  private static let startedOffset = 64
  private static let finishedOffset = 128
  private static let usedOffset = 192

  private let memory: UnsafeMutableRawPointer
  /// The file, with a shared lock for as long as this object may change something.
  private let file: FileDescriptor
  /// The part of both counts that this object contributed.
  private let own = Lock(Counts())
  private let ownUses = Lock(UInt64(0))
  /// The identity of the mapped file. Another file may have replaced it at its path.
  let identity: FileStatus.Identity

  /// The number of changes that were started and finished.
  struct Counts: Hashable, Sendable {
    var started: UInt64 = 0
    var finished: UInt64 = 0

    /// Whether no change is in progress.
    var isQuiet: Bool { started == finished }
  }

  /// Maps the file at `path`. A missing file is created, and a damaged one is repaired in place so that other processes keep the
  /// same mapping. The caller has the folder's lock.
  init(_ path: String, _ calls: FileCalls) throws(SystemError) {
    file = try Self.open(path, calls)
    file.lockShared()
    identity = try file.status().identity
    guard let memory = mmap(nil, Self.length, PROT_READ | PROT_WRITE, MAP_SHARED, file.raw, 0), memory != MAP_FAILED else {
      throw .last
    }
    self.memory = memory
  }

  /// Makes counters equal that a killed process left unequal, unless another process has the file mapped. The caller has the
  /// folder's lock, as does every process that maps the file.
  func repairIfUnshared() {
    let left = counts
    guard !left.isQuiet else { return }
    // Every live process has the shared lock, so the exclusive lock proves there is none. Without file locks the repair never
    // runs.
    if file.lockExclusively() {
      // The new value is higher than both counters, so no index states it. It is added, so that a concurrent increment is not
      // lost.
      let (next, overflow) = max(left.started, left.finished).addingReportingOverflow(1)
      if !overflow {
        cchecksum_shared_add(memory + Self.startedOffset, next - left.started)
        cchecksum_shared_add(memory + Self.finishedOffset, next - left.finished)
      }
    }
    file.lockShared()
  }

  deinit {
    munmap(memory, Self.length)
    // Unlocked explicitly: a child process that is being spawned at this moment has a copy of the descriptor, and thus the lock,
    // until it executes its program.
    file.unlock()
  }

  private static func open(_ path: String, _ calls: FileCalls) throws(SystemError) -> FileDescriptor {
    let file: FileDescriptor
    do throws(SystemError) {
      file = try FileDescriptor(path, .createNew)
    } catch {
      guard error == .exists else { throw error }
      file = try FileDescriptor(path, .readAndWrite)
    }
    guard try file.status().kind == .file else { throw .ioFailure }
    var bytes = try FileMemory(file, at: 0, count: length).withBytes { Array($0) }
    if bytes.count < length || !bytes.starts(with: magic) {
      // Existing counters stay, because a process that has seen them must not see them decrease.
      bytes += [UInt8](repeating: 0, count: length - bytes.count)
      bytes.replaceSubrange(0..<magic.count, with: magic)
      try calls.writeAll(file, bytes, at: 0)
    }
    return file
  }

  private var started: UInt64 { cchecksum_shared_load(memory + Self.startedOffset) }

  private var finished: UInt64 { cchecksum_shared_load(memory + Self.finishedOffset) }

  /// The number of changes by all caches.
  var counts: Counts { Counts(started: started, finished: finished) }

  /// The number of changes by caches other than this object. Equal and quiet values mean that no other cache changed anything.
  var foreignChanges: Counts {
    own.withLock { Counts(started: started &- $0.started, finished: finished &- $0.finished) }
  }

  /// The number of uses by other caches that were recorded in an entry's file.
  var foreignUses: UInt64 { ownUses.withLock { cchecksum_shared_load(memory + Self.usedOffset) &- $0 } }

  /// Counts a use that was written to an entry's file.
  func noteUse() {
    ownUses.withLock {
      $0 &+= 1
      cchecksum_shared_increment(memory + Self.usedOffset)
    }
  }

  /// Leaves the counters unequal for good, because processes that still map this file no longer learn of changes.
  func retire() { cchecksum_shared_increment(memory + Self.startedOffset) }

  /// Runs `change` between the two increments.
  func around<Result, Failure: Error>(_ change: () throws(Failure) -> Result) throws(Failure) -> Result {
    // Both counters are incremented under one lock. Otherwise a change by this object could look like another cache's.
    own.withLock {
      $0.started &+= 1
      cchecksum_shared_increment(memory + Self.startedOffset)
    }
    defer {
      own.withLock {
        $0.finished &+= 1
        cchecksum_shared_increment(memory + Self.finishedOffset)
      }
    }
    return try change()
  }
}
