public import CacheCore
public import CacheManager
internal import CacheNetworking
internal import CacheTransport
internal import DiskStore
public import ETagValidation
internal import ImageCodecs
public import MemoryStore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

extension ResourceManager.Configuration {
  /// Returns the default configuration: the URLSession downloader with retries and resumption, a memory store, a disk store, ETag
  /// validation, `file:` and `data:` URLs, and an executor that decodes images.
  ///
  /// ```swift
  /// var configuration = try ResourceManager.Configuration.standard(folder: folder)
  /// configuration.policy = .staleWhileRevalidate
  /// let manager = ResourceManager(configuration)
  /// ```
  ///
  /// - Parameters:
  ///   - folder: The folder of the disk store, which uses a subfolder of its own, or `nil` for no disk store.
  ///   - diskLimit: The size limit of the disk store in bytes, at least zero.
  ///   - memoryLimit: The size limit of the memory store in bytes, at least zero.
  ///   - mode: The kind of cache: private, for responses that this process uses itself, or shared, for responses that are passed
  ///     on to many users.
  ///   - downloader: The downloader, or `nil` for `SessionDownloader().resuming(.standard).retrying(.brief)`. The default resumes
  ///     interrupted bodies and retries up to twice after errors that may be temporary. Pass a `SessionDownloader()` to disable
  ///     both. On Linux, `URLSession` ends the process on some valid responses, so pass an `AsyncHTTPDownloader` there. The
  ///     default's first request says so on standard error.
  ///   - clock: The clock of the manager, the stores, the default downloader, and its retries. Tests pass a `ManualClock`.
  /// - Throws: `CacheError` with path and reason if the folder cannot be used. `CacheError.Code.invalidConfiguration` if a limit
  ///   is negative.
  public static func standard(
    folder: URL?, diskLimit: Int64 = 512 << 20, memoryLimit: Int = MemoryCache.Limits.defaultCost,
    mode: CacheMode = .private, downloader: (any Downloader)? = nil, clock: any CacheClock = SystemClock()
  ) throws(CacheError) -> Self {
    try CacheError.require("diskLimit", diskLimit, in: 0...)
    try CacheError.require("memoryLimit", memoryLimit, in: 0...)
    var configuration = Self()
    configuration.clock = clock
    configuration.memoryBudget = max(1, HostResources.share(atMost: configuration.memoryBudget))
    configuration.downloader = downloader ?? session(clock).resuming(.standard, clock: clock).retrying(.brief, clock: clock)
    configuration.schemeHandlers = ["file": FileDownloader(), "data": DataURLDownloader()]
    configuration.memory = MemoryCache(limits: .init(cost: memoryLimit, includesOverhead: true), clock: clock)
    configuration.validator = ETagValidator(mode: mode)
    configuration.executor = ProcessingExecutor()
    if let folder {
      let disk = try DiskCache(folder: folder, configuration: .init(sizeLimit: diskLimit, clock: clock))
      configuration.store = disk
      // Variants that a secret field selects are stored under a digest. The digest's secret is stored in the folder, so the
      // variants survive a restart.
      configuration.validator = ETagValidator(mode: mode, digestSecret: disk.digestSecret)
    }
    return configuration
  }

  private static func session(_ clock: any CacheClock) -> any Downloader {
    #if canImport(Darwin)
    return SessionDownloader(clock: clock)
    #else
    return WarningSessionDownloader(SessionDownloader(clock: clock))
    #endif
  }
}

extension ResourceManager.Configuration {
  /// The default configuration without a disk store. It cannot fail: otherwise every load of the shared manager would end with an
  /// error.
  private static var inMemory: Self { (try? standard(folder: nil)) ?? Self() }

  /// Returns the default configuration with a disk store that is opened on another thread; see ``DeferredStore``.
  ///
  /// - Parameters:
  ///   - folder: The folder of the disk store.
  ///   - clock: The clock of the attempts to open the disk store.
  ///   - run: Runs an attempt on another thread.
  package static func deferred(
    _ folder: URL, clock: any CacheClock = SystemClock(),
    run: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = DeferredStore.inBackground
  ) -> Self {
    var configuration = inMemory
    let validator = DeferredValidator()
    configuration.validator = validator
    configuration.store = DeferredStore(clock: clock, run: run) { () throws(CacheError) in
      let disk = try DiskCache(folder: folder)
      validator.use(disk.digestSecret)
      return disk
    }
    return configuration
  }

  /// The configuration of the shared manager.
  fileprivate static var shared: Self {
    #if canImport(Darwin)
    // The first use is often on the main thread, or before the first unlock of the device.
    return ResourceManager.defaultFolder.map { deferred($0) } ?? inMemory
    #else
    return (try? standard(folder: ResourceManager.defaultFolder)) ?? inMemory
    #endif
  }
}

extension ResourceManager {
  /// The shared manager of the process, with the default configuration. Its files are in the user's cache folder.
  ///
  /// If there is no such folder, or it cannot be used (a read-only system), the manager caches in memory alone.
  /// `configuration.store` is then `nil`, except on Apple platforms.
  ///
  /// On Apple platforms, the folder is opened on another thread, and opened again after an error that may be temporary, such as
  /// that of a device before its first unlock. There, `configuration.store` is not the `DiskCache`, but its `unsharedPart()`
  /// returns it when the folder is open. See <doc:/Etagere/Defaults#The-shared-manager>.
  public static let shared = ResourceManager(Configuration.shared)

  /// The folder of ``shared``: `Caches/Etagere` on Apple platforms. On other platforms it is `etagere` in `$XDG_CACHE_HOME`, or
  /// in `$HOME/.cache`, or in `.cache` of the home folder in the user database.
  ///
  /// It is `nil` if none of these is an absolute path, as in a container whose user has no home folder. The XDG Base Directory
  /// Specification ignores relative paths, which would create a cache in each folder that the process is started in.
  public static var defaultFolder: URL? {
    #if canImport(Darwin)
    return URL.cachesDirectory.appending(path: "Etagere", directoryHint: .isDirectory)
    #else
    return defaultFolder(environment: ProcessInfo.processInfo.environment, home: registeredHome)
    #endif
  }

  #if !canImport(Darwin)
  /// - Parameter home: Returns the home folder in the user database.
  package static func defaultFolder(environment: [String: String], home: () -> String?) -> URL? {
    func absolute(_ path: String?) -> String? { path.flatMap { $0.hasPrefix("/") ? $0 : nil } }
    func cache(_ home: String) -> String { home.hasSuffix("/") ? "\(home).cache" : "\(home)/.cache" }
    let folder = absolute(environment["XDG_CACHE_HOME"]) ?? (absolute(environment["HOME"]) ?? absolute(home())).map(cache)
    return folder.map { URL(filePath: $0, directoryHint: .isDirectory).appending(path: "etagere", directoryHint: .isDirectory) }
  }

  private static func registeredHome() -> String? {
    var entry = passwd()
    var found: UnsafeMutablePointer<passwd>?
    var buffer = [CChar](repeating: 0, count: 16 << 10)
    guard getpwuid_r(getuid(), &entry, &buffer, buffer.count, &found) == 0, found != nil, let home = entry.pw_dir else {
      return nil
    }
    return String(cString: home)
  }
  #endif
}

#if !canImport(Darwin)
internal import Synchronization

/// A URLSession engine that warns where Foundation is not Apple's. Its first request writes one line to standard error, because
/// Foundation ends the process on some valid responses there.
package final class WarningSessionDownloader: Downloader {
  package var id: ComponentID { base.id }
  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package let base: any Downloader
  private let write: @Sendable (String) -> Void
  private let hasWritten = Atomic<Bool>(false)

  package init(_ base: any Downloader, write: @escaping @Sendable (String) -> Void = WarningSessionDownloader.writeError) {
    self.base = base
    self.write = write
  }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    if !hasWritten.exchange(true, ordering: .relaxed) {
      write(
        "Etagere: this manager loads with URLSession, which ends the process on some responses on Linux: "
          + "give it an AsyncHTTPDownloader (trait AsyncHTTP)\n")
    }
    return try await base.download(request)
  }

  package static func writeError(_ line: String) {
    // A line that cannot be written is lost. The request is not.
    _ = Array(line.utf8).withUnsafeBytes { bytes in
      #if canImport(Musl)
      Musl.write(STDERR_FILENO, bytes.baseAddress, bytes.count)
      #elseif canImport(Glibc)
      Glibc.write(STDERR_FILENO, bytes.baseAddress, bytes.count)
      #else
      0
      #endif
    }
  }
}
#endif
