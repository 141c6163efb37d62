internal import CChecksum
internal import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// `generation`: counters in a file that every process maps, which tell an index in memory whether the folder is still as it saw
/// it.
///
/// `started` is raised before a file is moved into place or removed, `finished` after it. Who finds both equal, and equal to what
/// it saw, knows that nothing changed meanwhile. A process killed in between leaves them unequal, which costs speed and nothing
/// else, until somebody opens the folder who is alone in it. A third one tells that entries were used.
// Proof of `@unchecked Sendable`: `memory` never changes, and the counters behind it are only touched by atomic instructions.
final class Generation: @unchecked Sendable {
  static let magic: [UInt8] = [0x8B, 0x45, 0x54, 0x47, 0x45, 0x4E, 0x01, 0x0A]
  /// Bytes; written out in full, so that a full disk shows when the file is made and not in the middle of an addition.
  static let length = 4096
  private static let startedOffset = 64
  private static let finishedOffset = 128
  private static let usedOffset = 192

  private let memory: UnsafeMutableRawPointer
  /// Locked, not exclusively, for as long as this object may change something.
  private let file: FileDescriptor
  /// The part of both counts that this object made.
  private let own = Lock(Counts())
  private let ownUses = Lock(UInt64(0))
  /// The file that is mapped: another one may be at its path by now.
  let identity: FileStatus.Identity

  /// How often a change was begun, and ended.
  struct Counts: Hashable, Sendable {
    var started: UInt64 = 0
    var finished: UInt64 = 0

    /// No change is under way.
    var isQuiet: Bool { started == finished }
  }

  /// Maps the file at `path`, which is made when it is not there and mended, in place, when it is damaged: processes that have it
  /// mapped stay with it. The caller holds the folder's lock.
  init(_ path: String, _ calls: FileCalls) throws(SystemError) {
    file = try Self.open(path, calls)
    file.lockShared()
    identity = try file.status().identity
    guard let memory = mmap(nil, Self.length, PROT_READ | PROT_WRITE, MAP_SHARED, file.raw, 0), memory != MAP_FAILED else {
      throw .last
    }
    self.memory = memory
  }

  /// Makes counters equal that a process has left unequal which was killed, if nobody else has the file mapped. To be called by
  /// who holds the folder's lock: so does who maps it.
  func mendIfAlone() {
    let left = counts
    guard !left.isQuiet else { return }
    // Who lives has the lock too; without locks in the file system nobody gets it.
    if file.lockExclusively() {
      // Higher than both were: no index bears that. Added, so that nothing is lost that somebody counts all the same.
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
    // Not left to the close: a child process that is being made at this moment has a copy of the descriptor, and with it the
    // lock, until it runs its program.
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
      // Counters that were there stay: whoever has seen them must not see them go back.
      bytes += [UInt8](repeating: 0, count: length - bytes.count)
      bytes.replaceSubrange(0..<magic.count, with: magic)
      try calls.writeAll(file, bytes, at: 0)
    }
    return file
  }

  private var started: UInt64 { cchecksum_shared_load(memory + Self.startedOffset) }

  private var finished: UInt64 { cchecksum_shared_load(memory + Self.finishedOffset) }

  /// How often anybody changed something.
  var counts: Counts { Counts(started: started, finished: finished) }

  /// How often others than this object changed something; equal and quiet counts mean that nobody did meanwhile.
  var foreignChanges: Counts {
    own.withLock { Counts(started: started &- $0.started, finished: finished &- $0.finished) }
  }

  /// How often others than this object wrote a use to an entry's file.
  var foreignUses: UInt64 { ownUses.withLock { cchecksum_shared_load(memory + Self.usedOffset) &- $0 } }

  /// After a use was written to an entry's file.
  func noteUse() {
    ownUses.withLock {
      $0 &+= 1
      cchecksum_shared_increment(memory + Self.usedOffset)
    }
  }

  /// Leaves the counters unequal for good: whoever else has this file mapped can't be told any more of what changes in the
  /// folder.
  func retire() { cchecksum_shared_increment(memory + Self.startedOffset) }

  /// Runs `change` between the two counts.
  func around<Result, Failure: Error>(_ change: () throws(Failure) -> Result) throws(Failure) -> Result {
    // Ours and everybody's go up under one lock: in between, a change of ours would look like another's.
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
