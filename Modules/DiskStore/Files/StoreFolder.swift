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
    guard isDue else { return }
    guard !hasLostGeneration else { return adoptGeneration() }
    state.withLock { $0.lastCheck = uptime }
    guard let (counters, _) = generation, counters.foreignChangesWithLease?.isLeased == false,
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
    guard hasLostGeneration, (try? FileStatus(path: generationPath))?.kind == .file else { return }
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
    guard isWritable else { throw .readOnly }
    if state.withLock({ $0.generation == nil }) { try restore() }
  }

  // MARK: Temporary files

  /// The prefix of the names of this object's temporary files, or `nil` if it has none yet.
  var instanceName: String? { temporary.withLock { $0.instance?.name } }

  /// Returns a path in `tmp` that only this object uses.
  func temporaryPath(_ kind: String) throws(SystemError) -> String {
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
    guard file.tryLocking() != .wouldBlock, try (try? FileStatus(path: path))?.identity == file.status().identity else {
      return nil
    }
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
    guard isWritable, (try? Self.requireFolder(root)) != nil, (try? Self.requireFolder(tmp)) != nil else { return 0 }
    var count = 0
    let mine = instanceName
    var lives: [String: Bool] = [:]
    for name in (try? Paths.names(in: tmp)) ?? [] {
      let owner = Self.owner(of: name)
      guard owner != mine else { continue }
      let isAlive = lives[owner] ?? isAlive(owner)
      lives[owner] = isAlive
      guard !isAlive else { continue }
      Paths.removeTree("\(tmp)/\(name)", calls)
      if !name.hasSuffix(".lock") { count += 1 }
    }
    return count
  }

  /// Returns `12-ab…` for `12-ab….lock` and `12-ab…-7.spool`.
  private static func owner(of name: String) -> String {
    let stem = name.prefix { $0 != "." }
    return stem.split(separator: "-", omittingEmptySubsequences: false).prefix(2).joined(separator: "-")
  }

  private func isAlive(_ owner: String) -> Bool {
    guard let file = try? FileDescriptor("\(tmp)/\(owner).lock", .readAndWrite) else {
      // The draft of a key has no owner, but the process that writes it has the folder's lock.
      guard !owner.contains("-"), let folder = try? FileDescriptor(root, .folder) else { return false }
      return !Self.canBeLocked(folder)
    }
    return !Self.canBeLocked(file)
  }

  /// Whether the file's lock is free. The lock is released explicitly; see ``FileDescriptor/waitForLock(_:)``.
  private static func canBeLocked(_ file: FileDescriptor) -> Bool {
    defer { file.unlock() }
    return file.lockExclusively()
  }
}
