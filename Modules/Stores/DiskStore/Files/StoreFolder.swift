internal import CacheCore
internal import Synchronization

/// The folder `etagere-1`: its key, its counters and every change of its files.
///
/// Each call resolves its paths again, so a folder that was deleted and recreated by another process is found. Every change
/// first checks that the folders on the way are not links, so it cannot reach outside.
final class StoreFolder: Sendable {
  static let name = "etagere-1"

  /// The folder as the caller named it, with links resolved.
  let parent: String
  let root: String
  let entries: String
  let tmp: String
  /// The prefix of all paths in `entries`.
  private let entriesPrefix: String
  private let generationPath: String
  let key: SipHash.Key
  let calls: FileCalls
  /// Whether the names of new folders are flushed to the disk.
  let syncsFolders: Bool
  /// The system that can suspend this process while it has a lock on a file of the folder, or `nil` if that is impossible or
  /// allowed, and the flag for it.
  let suspension: (system: SuspensionSystem, flag: SuspensionGate.Flag)?
  /// The lock is never held during a system call, because lookups take it on their callers' threads.
  private let state: Lock<State>
  private let temporary = Lock(Temporary())
  /// The result of the last check for write access.
  private let wasWritable: Atomic<Bool>

  private struct State {
    var generation: Generation? { didSet { generationSerial += 1 } }
    var generationSerial: UInt64 = 0
    /// The uptime of the last check that the file at the counters' path is the open one.
    var lastCheck: Duration?
  }

  private struct Temporary {
    var instance: Instance?
    var serial: UInt64 = 0
  }

  /// The lock file that protects this object's temporary files. The system releases the lock when the process ends.
  private struct Instance {
    let name: String
    /// The prefix of the paths of this object's temporary files.
    let prefix: String
    let lock: FileDescriptor
  }

  /// Creates or opens the folder.
  ///
  /// - Parameter syncsFolders: Whether the names of the folder and its contents are flushed before this returns.
  init(_ path: String, _ calls: FileCalls, syncsFolders: Bool) throws(CacheError) {
    let made: Int
    do throws(SystemError) {
      made = try Paths.makeFolders(path)
      parent = try Paths.resolved(path)
    } catch {
      throw error.error("open the store's folder", path)
    }
    let root = parent == "/" ? "/\(Self.name)" : "\(parent)/\(Self.name)"
    self.root = root
    entries = "\(root)/entries"
    tmp = "\(root)/tmp"
    entriesPrefix = "\(root)/entries/"
    generationPath = "\(root)/generation"
    let suspension = calls.suspension.flatMap { $0.canShare(root) ? (system: $0, flag: SuspensionGate.Flag()) : nil }
    self.suspension = suspension
    var calls = calls
    if let flag = suspension?.flag { calls.refusesChanges = { flag.isSet } }
    self.calls = calls
    self.syncsFolders = syncsFolders
    try Self.requireOwnFolders(root)
    do throws(SystemError) {
      let isWritable = calls.isWritable(root)
      wasWritable = Atomic(isWritable)
      if isWritable {
        let lock = try Self.locked(root, calls)
        let prepared = try {
          () throws(SystemError) in
          defer { lock.unlock() }
          return try Self.prepare(root, calls, key: nil)
        }()
        key = prepared.key
        if syncsFolders { try Self.synchronize(root, made: made, calls) }
        state = Lock(State(generation: prepared.generation))
      } else {
        guard let key = try Self.readKey(root) else { throw .readOnly }
        self.key = key
        state = Lock(State())
      }
    } catch {
      throw error.error("open the store's folder", root)
    }
  }

  deinit {
    if let instance = temporary.withLock({ $0.instance }) { _ = calls.unlink("\(root)/tmp/\(instance.name).lock") }
  }

  /// Whether this process can change the folder. It is checked on each call because permissions can change.
  var isWritable: Bool {
    let isWritable = calls.isWritable(root)
    wasWritable.store(isWritable, ordering: .relaxed)
    return isWritable
  }

  /// The same as ``isWritable``, but without a system call if the last check succeeded.
  var isProbablyWritable: Bool { wasWritable.load(ordering: .relaxed) || isWritable }

  func path(_ name: EntryName, _ part: EntryName.Part = .file) -> String { name.path(below: entriesPrefix, part) }

  /// Calls `body` with the path of an entry, or of a folder on the way to it.
  func withPath<Result, Failure: Error>(
    _ name: EntryName, _ part: EntryName.Part = .file, _ body: (UnsafePointer<CChar>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try name.withPath(below: entriesPrefix, part, body)
  }

  /// Calls `body` with the path of an entry's file from `entries`, if that folder is given, or else its whole path.
  func withPath<Result, Failure: Error>(
    _ name: EntryName, from entries: FileDescriptor?, _ body: (UnsafePointer<CChar>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try name.withPath(below: entries == nil ? entriesPrefix : "", .file, body)
  }

  // MARK: Changes by other caches

  /// The interval between checks that the open counters are still those of the folder.
  private static let trustsCounters = Duration.seconds(1)

  /// The open counters and their number, or `nil` if the folder was opened read-only.
  private var generation: (counters: Generation, serial: UInt64)? {
    state.withLock { state in state.generation.map { ($0, state.generationSerial) } }
  }

  /// The changes by other caches, or `nil` if they are unknown, because the folder was opened read-only or its counters are lost
  /// or not atomic.
  var foreignChanges: FolderChanges? {
    generation.flatMap { generation in
      generation.counters.foreignChanges.map { FolderChanges(serial: generation.serial, counts: $0) }
    }
  }

  /// The same as ``foreignChanges``, but `nil` during a change by this cache instead of waiting for its end.
  var foreignChangesWithoutWaiting: FolderChanges? {
    generation.flatMap { generation in
      generation.counters.foreignChangesWithoutWaiting.map { FolderChanges(serial: generation.serial, counts: $0) }
    }
  }

  /// The uses by other caches, or `nil` if they are unknown.
  var foreignUses: FolderUses? {
    generation.flatMap { generation in
      generation.counters.foreignUses.map { FolderUses(serial: generation.serial, count: $0) }
    }
  }

  /// Counts a use whose time was written to an entry's file.
  func noteUse() { generation?.counters.noteUse() }

  /// The identity and the values of the open counters, or `nil` if they are unknown.
  var generationNow: (FileStatus.Identity, Generation.Counts)? {
    generation.flatMap { generation in generation.counters.counts.map { (generation.counters.identity, $0) } }
  }

  /// Returns the changes by other caches without waiting for a change by this one, and whether they can be relied on for
  /// ``Generation/lease``. Returns `nil` if they are unknown or the open counters are due for a check.
  func foreignChanges(at uptime: Duration) -> (changes: FolderChanges, isLeased: Bool)? {
    let trusted: (counters: Generation, serial: UInt64)? = state.withLock { state in
      guard let last = state.lastCheck, uptime - last < Self.trustsCounters else { return nil }
      return state.generation.map { ($0, state.generationSerial) }
    }
    guard let (counters, serial) = trusted, let found = counters.foreignChangesWithLease else { return nil }
    return (FolderChanges(serial: serial, counts: found.counts), found.isLeased)
  }

  /// Checks, if due, that the open counters are still those of the folder, and opens the current ones if not.
  func checkCounters(at uptime: Duration) {
    let isDue = state.withLock { state in state.lastCheck.map { uptime - $0 >= Self.trustsCounters } ?? true }
    guard isDue, !calls.isSuspended else { return }
    guard !hasLostGeneration else { return adoptGeneration() }
    state.withLock { $0.lastCheck = uptime }
    guard let (counters, _) = generation, counters.usesLeases, counters.foreignChangesWithLease?.isLeased == false,
      let lock = try? FileDescriptor(root, .folder), lock.lockExclusively()
    else { return }
    counters.checkOthers()
    lock.unlock()
  }

  /// Whether the counters in the folder are no longer the open ones, because the folder was deleted and perhaps created again.
  var hasLostGeneration: Bool {
    guard let (counters, _) = generation else { return false }
    return (try? FileStatus(path: generationPath))?.identity != counters.identity
  }

  /// Opens the counters of a folder that another process recreated. Otherwise the two would not notice each other's changes.
  ///
  /// - Parameter waits: Whether to wait up to two seconds for the folder's lock instead of giving up if it is taken.
  func adoptGeneration(waits: Bool = false) {
    // A change in progress must be counted, so its end takes the lock even when new work no longer may.
    guard waits || !calls.isSuspended, hasLostGeneration, (try? FileStatus(path: generationPath))?.kind == .file else { return }
    guard let lock = waits ? try? Self.locked(root, calls) : try? FileDescriptor(root, .folder),
      waits || lock.lockExclusively()
    else { return }
    let found = try? Generation(generationPath, calls)
    lock.unlock()
    if let found { adopt(found) }
  }

  private func adopt(_ generation: Generation) {
    let old = state.withLock { state -> Generation? in
      guard state.generation?.identity != generation.identity else { return nil }
      defer { state.generation = generation }
      return state.generation
    }
    // Processes that still use the old counters are not told about later changes, so they must stop trusting them.
    old?.retire()
  }

  // MARK: Suspension

  /// Releases the locks that this object has for its lifetime. No job that can take one is running. It does not wait.
  func handBackLocks() {
    generation?.counters.leave()
    temporary.withLock { $0.instance?.lock.unlock() }
  }

  /// Takes the locks again in the steps of opening the folder. Changes of the folder by other caches meanwhile appear in the
  /// counters; replaced counters are opened.
  ///
  /// - Returns: `false` if another process has the folder's lock for more than two seconds, or the counters cannot be opened.
  func takeLocks() -> Bool {
    guard let (counters, _) = generation else { return true }
    let lock: FileDescriptor
    do throws(SystemError) {
      lock = try Self.locked(root, calls)
    } catch {
      // The next change creates a folder that was deleted, with new counters.
      return error == .notFound
    }
    let isReplaced = hasLostGeneration && (try? FileStatus(path: generationPath)) != nil
    let found = isReplaced ? try? Generation(generationPath, calls) : nil
    if !isReplaced { counters.join() }
    lock.unlock()
    if let found { adopt(found) }
    guard isReplaced == (found != nil) else { return false }
    temporary.withLock { state in
      // Another process may have removed the file as one of a process that has ended.
      if let instance = state.instance, !instance.lock.takeLock(ofFileAt: "\(tmp)/\(instance.name).lock") { state.instance = nil }
    }
    return true
  }

  // MARK: Creation

  /// Creates again what another process deleted while the folder was open. The names stay valid: the old key is written unless
  /// the folder already has a new one.
  func restore() throws(SystemError) {
    let made = try Paths.makeFolders(parent)
    try Paths.makeFolder(root)
    try Self.requireFolder(root)
    let lock = try Self.locked(root, calls)
    let generation = try { () throws(SystemError) in
      defer { lock.unlock() }
      return try Self.prepare(root, calls, key: key).generation
    }()
    if syncsFolders { try Self.synchronize(root, made: made, calls) }
    adopt(generation)
    temporary.withLock { state in
      if let instance = state.instance, (try? FileStatus(path: "\(tmp)/\(instance.name).lock")) == nil { state.instance = nil }
    }
  }

  /// Prepares a change. A folder that was read-only when opened and is writable now gets its missing files.
  func prepareToWrite() throws(SystemError) {
    guard !calls.isSuspended else { throw .suspended }
    guard isWritable else { throw .readOnly }
    if state.withLock({ $0.generation == nil }) { try restore() }
  }

  // MARK: Temporary files

  /// The prefix of the names of this object's temporary files, or `nil` if it has none yet.
  var instanceName: String? { temporary.withLock { $0.instance?.name } }

  /// Returns a path in `tmp` that only this object uses.
  func temporaryPath(_ kind: String) throws(SystemError) -> String {
    guard !calls.isSuspended else { throw .suspended }
    try Self.requireFolder(root)
    try Self.requireFolder(tmp)
    let suffix = "." + kind
    for _ in 0..<8 {
      let made: String?? = try temporary.withLock { state throws(SystemError) in
        if let instance = state.instance {
          state.serial += 1
          return .some(instance.prefix + String(state.serial) + suffix)
        }
        state.instance = try Self.makeInstance(tmp)
        return nil
      }
      if let path = made ?? nil { return path }
    }
    throw .ioFailure
  }

  private static func makeInstance(_ tmp: String) throws(SystemError) -> Instance? {
    var generator = SystemRandomNumberGenerator()
    let name = "\(Paths.processID)-\(Hexadecimal.text(generator.next()))"
    let path = "\(tmp)/\(name).lock"
    let file = try FileDescriptor(path, .createNew)
    // A process that collects orphans may have found the file before it was locked.
    guard file.takeLock(ofFileAt: path) else { return nil }
    return Instance(name: name, prefix: "\(tmp)/\(name)-", lock: file)
  }

  // MARK: Changes

  /// Runs a change of names between the two counter increments. The caller must not have the folder's lock.
  func change<Result>(_ body: () -> Result) -> Result {
    guard let (counters, _) = generation else { return body() }
    let result = counters.around(body)
    // Another process may have replaced the counters, and this cache may only store and never look. Processes that use the new
    // counters must learn of the change before this returns, even if the folder's lock is briefly taken.
    adoptGeneration(waits: true)
    // Processes that use the newly adopted counters learn of the change too.
    if let (newer, _) = generation, newer !== counters { newer.around {} }
    return result
  }

  /// Returns the status of the file at the path. Links are not followed.
  func status(_ name: EntryName, _ part: EntryName.Part) throws(SystemError) -> FileStatus {
    try withPath(name, part) { path throws(SystemError) in try FileStatus(path: path) }
  }

  /// Throws ``SystemError/notAFolder`` if a folder on the way to an entry is a link or anything else.
  func requireFolders(of name: EntryName) throws(SystemError) {
    try Self.requireFolder(root)
    try Self.requireFolder(entries)
    guard try status(name, .shard).kind == .folder else { throw .notAFolder }
    if name.member != nil, try status(name, .resourceFolder).kind != .folder { throw .notAFolder }
  }

  /// Throws ``SystemError/notAFolder`` for a link or anything else, and ``SystemError/notPermitted`` for a folder that other
  /// users can change.
  static func requireFolder(_ path: String) throws(SystemError) {
    let status = try FileStatus(path: path)
    guard status.kind == .folder else { throw .notAFolder }
    guard status.ownership.isTrusted else { throw .notPermitted }
  }
}

/// The temporary files of entries that are being written.
extension StoreFolder {
  /// Creates and opens a temporary file. Deleted folders on the way are created again.
  func makeSpool() throws(CacheError) -> (path: String, file: FileDescriptor) {
    do throws(SystemError) {
      do throws(SystemError) {
        try prepareToWrite()
        let path = try temporaryPath("spool")
        return (path, try FileDescriptor(path, .createNew))
      } catch {
        guard error == .notFound else { throw error }
        try restore()
        let path = try temporaryPath("spool")
        return (path, try FileDescriptor(path, .createNew))
      }
    } catch {
      throw error.error("create a temporary file", tmp)
    }
  }
}

/// The temporary files of processes that ended during a write.
extension StoreFolder {
  /// Removes the temporary files of processes that ended during a write. Those of live processes stay.
  ///
  /// - Returns: The number of removed items, not counting lock files.
  @discardableResult
  func collectOrphans() -> Int {
    guard !calls.isSuspended, isWritable, (try? Self.requireFolder(root)) != nil, (try? Self.requireFolder(tmp)) != nil else {
      return 0
    }
    var count = 0
    let owners = Dictionary(grouping: (try? Paths.names(in: tmp)) ?? [], by: Self.owner)
    for (owner, names) in owners where owner != instanceName && !calls.isSuspended {
      let lock = try? FileDescriptor("\(tmp)/\(owner).lock", .readAndWrite)
      // The lock is held during the removal, because a process that was suspended takes the lock of its file again.
      guard lock?.lockExclusively() ?? !isDraftInProgress(owner) else { continue }
      defer { lock?.unlock() }
      // Sorted, so that the lock file is the last.
      for name in names.sorted() {
        guard !calls.isSuspended else { break }
        let path = "\(tmp)/\(name)"
        Paths.removeTree(path, calls)
        if !name.hasSuffix(".lock"), (try? FileStatus(path: path)) == nil { count += 1 }
      }
    }
    return count
  }

  /// Returns `12-ab…` for `12-ab….lock` and `12-ab…-7.spool`.
  private static func owner(of name: String) -> String {
    let stem = name.prefix { $0 != "." }
    return stem.split(separator: "-", omittingEmptySubsequences: false).prefix(2).joined(separator: "-")
  }

  /// Whether the name is that of a key's draft that a process is writing. The draft has no owner, but that process has the
  /// folder's lock.
  private func isDraftInProgress(_ name: String) -> Bool {
    guard !name.contains("-"), let folder = try? FileDescriptor(root, .folder) else { return false }
    // Released explicitly; see ``FileDescriptor/waitForLock(_:)``.
    defer { folder.unlock() }
    return !folder.lockExclusively()
  }
}
