public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A durable store in a folder, with one checksummed file per entry.
///
/// ```swift
/// let cache = try DiskCache(folder: url, configuration: .init(sizeLimit: 1 << 30))
/// try await cache.store(bytes, for: key, metadata: metadata)
/// if let entry = try await cache.entry(for: key) { print(try await entry.body.collect().count) }
/// ```
///
/// Several caches, in one process or in many, can share a folder. An entry becomes visible with one rename, so a killed process
/// leaves committed entries readable and no partial ones. A commit never evicts its own entry. A damaged file is a miss and is
/// removed. The cache changes nothing outside the subfolder `etagere-1`. <doc:DiskFormat> describes the files.
///
/// No call blocks its caller: file operations run on the cache's own threads (``Configuration/ioWidth``). Cancelling the calling
/// task does not interrupt a file operation.
public final class DiskCache: CacheStore {
  let engine: DiskEngine

  /// Creates a cache in `folder`, and the folder if it does not exist. In a read-only folder, reading works and writing throws
  /// `CacheError.Code.readOnly`.
  ///
  /// The initializer creates or reads a few small files on the caller's thread. Entries are counted later, in the background. If
  /// another process is creating the same folder, the initializer waits up to two seconds for it.
  ///
  /// A folder `etagere-1` that another user owns or can write to is refused; see <doc:/DiskStore>.
  ///
  /// - Throws: `CacheError.Code.fileSystem` or `CacheError.Code.diskFull`, with path and error number, if the path is not a
  ///   folder, cannot be created or read, or stays locked by another process. `CacheError.Code.invalidConfiguration` if a setting
  ///   or the URL is invalid.
  public convenience init(folder: URL, configuration: Configuration = Configuration()) throws(CacheError) {
    guard folder.isFileURL else {
      throw CacheError(.invalidConfiguration, reason: "the URL of a store's folder is not a file URL", url: folder.absoluteString)
    }
    try self.init(path: folder.path(percentEncoded: false), configuration: configuration)
  }

  /// Creates a cache in the folder at `path`; see ``init(folder:configuration:)``.
  public convenience init(path: String, configuration: Configuration = Configuration()) throws(CacheError) {
    try self.init(path: path, configuration: configuration, calls: .system)
  }

  /// Creates a cache whose system calls a test can make fail.
  package init(path: String, configuration: Configuration, calls: FileCalls) throws(CacheError) {
    try configuration.validate()
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw CacheError(.invalidConfiguration, reason: "the path of a store's folder is empty or contains NUL", path: path)
    }
    engine = try DiskEngine(path, configuration, calls)
    // Two custom clocks cannot be compared, so only caches on the system clock can have equal identifiers.
    id =
      configuration.clock is SystemClock
      ? ComponentID(DiskCache.self, parameters: "\(configuration.expiration.text) \(engine.folder.parent)")
      : .unique(DiskCache.self)
    engine.executor.start(.maintenance) { [engine] in engine.settle() }
  }

  /// An identifier that is equal for caches with the same folder and time to live that use the system clock.
  public let id: ComponentID

  /// The path of the folder, with symbolic links resolved.
  public var path: String { engine.folder.parent }

  /// The configuration that the cache was created with.
  public var configuration: Configuration { engine.configuration }

  /// Whether entries can be stored and removed, according to the current permissions and the file system.
  public var isWritable: Bool { engine.folder.isWritable }

  /// The operations of this cache since it was created.
  public var counters: DiskCounters { engine.counters }

  /// The number of stores that are waiting or in progress.
  package var pendingStores: Int { engine.executor.pendingStores }

  /// The secret for the validator, which stays the same for the folder's lifetime, in every process.
  ///
  /// It keys the digests of secret request fields in variants, so variants stay comparable after a restart.
  public var digestSecret: DigestSecret { FolderKey.digestSecret(engine.folder.key) }
}

extension Expiration {
  /// A hand-written description: the synthesized one uses reflection, which took a third of the time to open a folder.
  fileprivate var text: String {
    switch self {
    case .never: "never"
    case .after(let duration): "after \(duration.components.seconds) \(duration.components.attoseconds)"
    case .at(let time): "at \(time.nanoseconds)"
    }
  }
}
