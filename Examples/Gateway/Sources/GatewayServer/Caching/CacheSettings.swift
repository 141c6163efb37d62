import CacheCore
import CacheManager
import DiskStore
public import ETagValidation
import Foundation
import MemoryStore

/// The settings of the cache: the stores, their sizes and the caching rules.
public struct CacheSettings: Sendable {
  /// Whether the cache is private or shared (RFC 9111 §1).
  public var mode = CacheMode.shared
  /// Whether responses without a lifetime get a heuristic one (RFC 9111 §4.2.2). `nil` means yes in a shared cache, and no in a
  /// private one.
  public var guesses: Bool?
  /// Whether a shared cache treats `Set-Cookie` and `Cookie` like any other field.
  public var ignoresCookies = false
  /// The size of the memory store in bytes, or 0 for none.
  public var memory = 256 << 20
  /// The folder of the disk store, or `nil` for none.
  public var folder: String?
  /// The size of the disk store, in bytes.
  public var disk: Int64 = 1 << 30
  /// Whether equal requests at the same time are collapsed into one request to the origin (RFC 9111 §4).
  public var collapses = true
  /// Whether requests wait for the disk store without a limit, so that a slow disk delays them and stores every response.
  public var waitsForDisk = false

  /// Opens the stores.
  ///
  /// - Throws: An error with the path and the reason, if the folder cannot be used.
  func open(_ downloader: any Downloader, clock: any CacheClock) throws(CacheError) -> OpenCache {
    var configuration = ResourceManager.Configuration()
    configuration.downloader = downloader
    configuration.clock = clock
    if !collapses { configuration.collapseTimeout = nil }
    configuration.maximumBodyInMemory = Int64(memory / 16)
    // Bodies that slow clients have not read yet use at most a third of the budget.
    if memory > 0 { configuration.memoryBudget = memory }
    let memory = memory > 0 ? MemoryCache(limits: .init(cost: memory), clock: clock) : nil
    configuration.memory = memory
    var disk: DiskCache?
    if let folder { disk = try DiskCache(path: folder, configuration: .init(sizeLimit: self.disk, clock: clock)) }
    configuration.store = disk
    if waitsForDisk { (configuration.storeReadTimeout, configuration.storeWriteTimeout) = (nil, nil) }
    let heuristics = guesses.map { $0 ? Heuristics() : nil } ?? mode.heuristics
    configuration.validator = ETagValidator(
      mode: mode, heuristics: heuristics, parts: .completed, ignoresCookies: ignoresCookies,
      digestSecret: disk?.digestSecret ?? .random())
    return OpenCache(manager: ResourceManager(configuration), memory: memory, disk: disk)
  }
}

extension CacheSettings {
  /// Creates the default settings and changes some of them.
  public init(_ change: (inout Self) -> Void) {
    self.init()
    change(&self)
  }
}

/// An open cache.
struct OpenCache: Sendable {
  let manager: ResourceManager
  let memory: MemoryCache?
  let disk: DiskCache?

  /// The number and size of the stored entries, for the status page.
  var contents: StatusDocument.Store {
    get async {
      var store = StatusDocument.Store()
      // A response also has an entry with a transform, for its metadata. That entry is not counted.
      if let memory {
        (store.memoryEntries, store.memoryBytes) = (memory.keys().count { $0.transform.isEmpty }, Int64(memory.totalCost))
      }
      // If the folder cannot be read, its figures are left out. A write to it reports the error.
      if let disk { (store.diskEntries, store.diskBytes) = (try? await disk.entryCount, try? await disk.totalSize) }
      return store
    }
  }
}
