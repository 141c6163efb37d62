internal import CacheCore
internal import Synchronization

/// The folder `etagere-1`: its key, its counters, and every change of what lies in it.
///
/// Paths are looked up anew at each call, so a folder that was deleted, and made again by somebody else, is found again. Before a
/// change the folders on the way are checked to be folders and not links, so nothing outside is touched.
final class StoreFolder: Sendable {
  static let name = "etagere-1"

  /// The folder as the caller named it, links resolved.
  let parent: String
  let root: String
  let entries: String
  let tmp: String
  /// What the path of everything in `entries` begins with.
  private let entriesPrefix: String
  private let generationPath: String
  let key: SipHash.Key
  let calls: FileCalls
  /// Whether a new folder's name is flushed to the disk too.
  let syncsFolders: Bool
  private let state: Lock<State>
  /// What was found when it was last asked for.
  private let wasWritable: Atomic<Bool>

  private struct State {
    var generation: Generation? { didSet { generationSerial += 1 } }
    var generationSerial: UInt64 = 0
    /// When the file at the counters' path was last seen to be the one that is mapped, by the clock's uptime.
    var lastLook: Duration?
    var instance: Instance?
    var serial: UInt64 = 0

    var foreignChanges: FolderChanges? {
      generation.map { FolderChanges(serial: generationSerial, counts: $0.foreignChanges) }
    }
  }

  /// The sign of life beside our temporary files: locked for as long as this object lives, whatever becomes of the process.
  private struct Instance {
    let name: String
    /// What the paths of our temporary files begin with.
    let prefix: String
    let lock: FileDescriptor
  }

  /// Makes the folder, or finds it.
  ///
  /// - Parameter syncsFolders: whether its name and those in it are on the disk itself when this returns.
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
    do throws(SystemError) {
      try Paths.makeFolder(root)
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
        if syncsFolders { try Self.synchronise(root, made: made, calls) }
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
    if let instance = state.withLock({ $0.instance }) { _ = calls.unlink("\(root)/tmp/\(instance.name).lock") }
  }

  /// Whether this process may change something here; a read-only folder can be read all the same. Asked anew each time, for
  /// rights come and go.
  var isWritable: Bool {
    let isWritable = calls.isWritable(root)
    wasWritable.store(isWritable, ordering: .relaxed)
    return isWritable
  }

  /// The same, as far as is known: no system call as long as it was so when it was last asked.
  var isProbablyWritable: Bool { wasWritable.load(ordering: .relaxed) || isWritable }

  func path(_ name: EntryName, _ part: EntryName.Part = .file) -> String { name.path(below: entriesPrefix, part) }

  /// The path of an entry, or of a folder on the way to it, for the length of a call.
  func withPath<Result, Failure: Error>(
    _ name: EntryName, _ part: EntryName.Part = .file, _ body: (UnsafePointer<CChar>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try name.withPath(below: entriesPrefix, part, body)
  }

  // MARK: Changes of others

  /// How long nobody looks whether the mapped counters are those of the folder.
  private static let trustsCounters = Duration.seconds(1)

  /// What others changed in the folder; nil: read-only, so nothing can be said. Asks memory only.
  var foreignChanges: FolderChanges? { state.withLock { $0.foreignChanges } }

  /// What others used in the folder; nil: read-only, so nothing can be said.
  var foreignUses: FolderUses? {
    state.withLock { state in state.generation.map { FolderUses(serial: state.generationSerial, count: $0.foreignUses) } }
  }

  /// After the time of a use was written to an entry's file.
  func noteUse() { state.withLock { $0.generation }?.noteUse() }

  /// The counters that are mapped, and what they say; nil: read-only.
  var generationNow: (FileStatus.Identity, Generation.Counts)? {
    state.withLock { $0.generation.map { ($0.identity, $0.counts) } }
  }

  /// What others changed, and nil when it is time to look whether the counters are still those of the folder.
  func foreignChanges(at uptime: Duration) -> FolderChanges? {
    state.withLock { state in
      guard let last = state.lastLook, uptime - last < Self.trustsCounters else { return nil }
      return state.foreignChanges
    }
  }

  /// Looks whether the counters are still those of the folder, if it is time; maps those that are, if they are not.
  func look(at uptime: Duration) {
    let isDue = state.withLock { state in state.lastLook.map { uptime - $0 >= Self.trustsCounters } ?? true }
    guard isDue else { return }
    guard !hasLostGeneration else { return adoptGeneration() }
    state.withLock { $0.lastLook = uptime }
  }

  /// The counters that lie in the folder now are not those that we have mapped: it was deleted, and perhaps made anew.
  var hasLostGeneration: Bool {
    guard let generation = state.withLock({ $0.generation }) else { return false }
    return (try? FileStatus(path: generationPath))?.identity != generation.identity
  }

  /// Maps the counters of a folder that somebody else made anew, or the two of us would not notice each other's changes.
  ///
  /// - Parameter waits: for the folder's lock, two seconds at most; else nothing is done now when somebody else has it.
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
    // What we change from now on, those who still have the old counters mapped are not told: they must not trust them.
    old?.retire()
  }

  // MARK: Making

  /// Makes again what somebody deleted while we had it open. Our names stay as they are: the key is written anew, unless another
  /// one is there by now.
  func restore() throws(SystemError) {
    let made = try Paths.makeFolders(parent)
    try Paths.makeFolder(root)
    let lock = try Self.locked(root, calls)
    let generation = try { () throws(SystemError) in
      defer { lock.unlock() }
      return try Self.prepare(root, calls, key: key).generation
    }()
    if syncsFolders { try Self.synchronise(root, made: made, calls) }
    adopt(generation)
    state.withLock { state in
      if let instance = state.instance, (try? FileStatus(path: "\(tmp)/\(instance.name).lock")) == nil { state.instance = nil }
    }
  }

  /// Before any change. What could only be read when it was opened, and can be written to now, is prepared for that.
  func prepareToWrite() throws(SystemError) {
    guard isWritable else { throw .readOnly }
    if state.withLock({ $0.generation == nil }) { try restore() }
  }

  // MARK: Temporary files

  /// What our temporary files' names begin with; nil while there were none.
  var instanceName: String? { state.withLock { $0.instance?.name } }

  /// A path for a temporary file, or for a folder on its way out, that only this object uses.
  func temporaryPath(_ kind: String) throws(SystemError) -> String {
    try Self.requireFolder(root)
    try Self.requireFolder(tmp)
    let suffix = "." + kind
    for _ in 0..<8 {
      let made: String?? = try state.withLock { state throws(SystemError) in
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
    // Somebody who collects orphans may have found it before it was locked.
    guard file.tryLocking() != .wouldBlock, try (try? FileStatus(path: path))?.identity == file.status().identity else {
      return nil
    }
    return Instance(name: name, prefix: "\(tmp)/\(name)-", lock: file)
  }

  // MARK: Changes

  /// Runs what changes names in the folder, between the two counts. The caller doesn't hold the folder's lock.
  func change<Result>(_ body: () -> Result) -> Result {
    guard let generation = state.withLock({ $0.generation }) else { return body() }
    let result = generation.around(body)
    // Somebody may have put other counters into the folder, and this may be a cache that only stores and never looks. Who goes by
    // them must be told before this returns, even when the folder's lock is taken for a moment.
    adoptGeneration(waits: true)
    // Those who have mapped what we have mapped meanwhile are told too.
    if let newer = state.withLock({ $0.generation }), newer !== generation { newer.around {} }
    return result
  }

  /// What lies at the path itself: links are not followed.
  func status(_ name: EntryName, _ part: EntryName.Part) throws(SystemError) -> FileStatus {
    try withPath(name, part) { path throws(SystemError) in try FileStatus(path: path) }
  }

  /// Throws ``SystemError/notAFolder`` where a link, or anything else, lies in the place of a folder on the way to an entry.
  func requireFolders(of name: EntryName) throws(SystemError) {
    try Self.requireFolder(root)
    try Self.requireFolder(entries)
    guard try status(name, .shard).kind == .folder else { throw .notAFolder }
    if name.member != nil, try status(name, .resourceFolder).kind != .folder { throw .notAFolder }
  }

  static func requireFolder(_ path: String) throws(SystemError) {
    guard try FileStatus(path: path).kind == .folder else { throw .notAFolder }
  }
}
