public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A durable store in a folder: one file per entry, put into its place in one step, checked on every read.
///
/// ```swift
/// let cache = try DiskCache(folder: url, configuration: .init(sizeLimit: 1 << 30))
/// try await cache.store(bytes, for: key, metadata: metadata)
/// if let entry = try await cache.entry(for: key) { print(try await entry.body.collect().count) }
/// ```
///
/// Several caches, in one process or in many, may share a folder. A process that is killed leaves every committed entry readable
/// and no half entry visible. A damaged file is a miss, and is removed, so that it heals; wrong bytes are never returned. Nothing
/// outside `etagere-1` in the folder is ever touched. `Modules/DiskStore/DiskStore.docc/DiskFormat.md` describes the files.
///
/// No call blocks the caller: file operations run in threads of their own (``Configuration/ioWidth``). They end what they began
/// when the calling task is cancelled.
public final class DiskCache: CacheStore {
  let engine: DiskEngine

  /// A cache in `folder`, which is made when it is not there. A folder that can only be read is read; writing throws
  /// `CacheError.Code.readOnly`.
  ///
  /// Makes or reads a few small files before it returns, in the caller's thread; entries are counted later, in the background.
  /// When another process makes the same folder at that moment, it is waited for, two seconds at most.
  ///
  /// - Throws: `CacheError.Code.fileSystem` or `CacheError.Code.diskFull` with path and error number when the folder is none, can
  ///   be neither made nor read, or is kept locked by another process; `CacheError.Code.invalidConfiguration` when a setting, or
  ///   the URL, makes no sense.
  public convenience init(folder: URL, configuration: Configuration = Configuration()) throws(CacheError) {
    guard folder.isFileURL else {
      throw CacheError(.invalidConfiguration, reason: "a store's folder needs a file URL", url: folder.absoluteString)
    }
    try self.init(path: folder.path(percentEncoded: false), configuration: configuration)
  }

  /// A cache in the folder at `path`; see ``init(folder:configuration:)``.
  public convenience init(path: String, configuration: Configuration = Configuration()) throws(CacheError) {
    try self.init(path: path, configuration: configuration, calls: .system)
  }

  /// A cache whose system calls a test can make fail.
  package init(path: String, configuration: Configuration, calls: FileCalls) throws(CacheError) {
    try configuration.validate()
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw CacheError(.invalidConfiguration, reason: "a store's folder needs a path without NUL", path: path)
    }
    engine = try DiskEngine(path, configuration, calls)
    // Nobody can tell whether two clocks go alike, unless both are the system's.
    id =
      configuration.clock is SystemClock
      ? ComponentID(DiskCache.self, parameters: "\(configuration.expiration.text) \(engine.folder.parent)")
      : .unique(DiskCache.self)
    engine.executor.start(.upkeep) { [engine] in engine.settle() }
  }

  /// Caches in one folder answer alike when they have the same time to live and both go by the system's clock.
  public let id: ComponentID

  /// The folder that was given, links resolved.
  public var path: String { engine.folder.parent }

  /// How it was set up.
  public var configuration: Configuration { engine.configuration }

  /// Whether entries can be stored and removed, as far as the folder's permissions and its file system tell now.
  public var isWritable: Bool { engine.folder.isWritable }

  /// What this object did so far.
  public var counters: DiskCounters { engine.counters }

  /// What waits to be stored, or is being stored.
  package var pendingStores: Int { engine.executor.pendingStores }

  /// 16 secret bytes that stay the same for as long as the folder lives, in every process.
  ///
  /// For keyed digests of what must not be stored itself: secret request fields in variants stay comparable after a restart.
  public var digestSecret: [UInt8] { FolderKey.digestSecret(engine.folder.key) }
}

extension Expiration {
  /// Written out by hand: what the language writes of an enumeration is found by reflection, a third of what opening a folder
  /// takes.
  fileprivate var text: String {
    switch self {
    case .never: "never"
    case .after(let duration): "after \(duration.components.seconds) \(duration.components.attoseconds)"
    case .at(let time): "at \(time.nanoseconds)"
    }
  }
}
