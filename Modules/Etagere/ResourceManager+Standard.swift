public import CacheCore
public import CacheManager
internal import CacheNetworking
internal import CacheTransport
internal import DiskStore
internal import ETagValidation
internal import ImageCodecs
public import MemoryStore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceManager.Configuration {
  /// Every default of this package: the URLSession engine with retries and resumption, memory, a folder on disk, ETag validation,
  /// `file:` and `data:` URLs, and a place of its own where pictures are decoded.
  ///
  /// ```swift
  /// var configuration = try ResourceManager.Configuration.standard(folder: folder)
  /// configuration.policy = .staleWhileRevalidate
  /// let manager = ResourceManager(configuration)
  /// ```
  ///
  /// - Parameters:
  ///   - folder: where the disk store keeps its files, in a folder of its own below it; nil: no disk.
  ///   - diskLimit: bytes on disk.
  ///   - memoryLimit: bytes in memory.
  ///   - downloader: The downloader, or `nil` for `SessionDownloader().resuming(.standard).retrying(.brief)`. That one resumes
  ///     interrupted bodies and retries up to twice after errors that may be temporary. Pass a `SessionDownloader()` to get
  ///     neither.
  ///   - clock: The clock of the manager, the stores, the default downloader, and its retries. Tests pass a `ManualClock` here.
  /// - Throws: `CacheError` with path and reason when the folder can't be used.
  public static func standard(
    folder: URL?, diskLimit: Int64 = 512 << 20, memoryLimit: Int = MemoryCache.Limits.defaultCost,
    downloader: (any Downloader)? = nil, clock: any CacheClock = SystemClock()
  ) throws(CacheError) -> Self {
    var configuration = Self()
    configuration.clock = clock
    configuration.downloader =
      downloader ?? SessionDownloader(clock: clock).resuming(.standard, clock: clock).retrying(.brief, clock: clock)
    configuration.schemeHandlers = ["file": FileDownloader(), "data": DataURLDownloader()]
    configuration.memory = MemoryCache(limits: .init(cost: memoryLimit, includesOverhead: true), clock: clock)
    configuration.validator = ETagValidator()
    configuration.executor = ProcessingExecutor()
    if let folder {
      let disk = try DiskCache(folder: folder, configuration: .init(sizeLimit: diskLimit, clock: clock))
      configuration.store = disk
      // Variants that a secret field selects are filed under a digest; its key lies in the folder, so they survive a restart.
      configuration.validator = ETagValidator(digestSecret: DigestSecret(bytes: disk.digestSecret) ?? .random())
    }
    return configuration
  }
}

extension ResourceManager {
  /// The process's own manager, with every default, its files in the user's cache folder.
  ///
  /// Where that folder can't be used (a read-only system, no home) it works in memory alone;
  /// ``ResourceManager/Configuration/store`` is nil then.
  public static let shared: ResourceManager = {
    if let configuration = try? Configuration.standard(folder: defaultFolder) { return ResourceManager(configuration) }
    // Without a folder nothing can fail; the last resort is a manager that answers every load with an error.
    return ResourceManager((try? .standard(folder: nil)) ?? Configuration())
  }()

  /// Where ``shared`` keeps its files: `Caches/Etagere` on Apple platforms; elsewhere `etagere` in `$XDG_CACHE_HOME`, or in
  /// `~/.cache`.
  public static var defaultFolder: URL {
    #if canImport(Darwin)
    return URL.cachesDirectory.appending(path: "Etagere", directoryHint: .isDirectory)
    #else
    let environment = ProcessInfo.processInfo.environment
    if let cache = environment["XDG_CACHE_HOME"], cache.hasPrefix("/") {
      return URL(filePath: cache, directoryHint: .isDirectory).appending(path: "etagere", directoryHint: .isDirectory)
    }
    return URL.homeDirectory.appending(path: ".cache/etagere", directoryHint: .isDirectory)
    #endif
  }
}
