#if Gateway
import CacheCore
import CacheManager
import DiskStore
public import ETagValidation
import Foundation
import MemoryStore

/// What is stored, where, and by whose rules.
public struct CacheSettings: Sendable {
  /// Whose cache it is (RFC 9111 §1).
  public var mode = CacheMode.shared
  /// Whether lifetimes are guessed for answers that state none (RFC 9111 §4.2.2); nil: as the mode has it, on where many share
  /// the cache.
  public var guesses: Bool?
  /// Bytes in memory; 0: nothing.
  public var memory = 256 << 20
  /// Where files are kept; nil: nowhere.
  public var folder: String?
  /// Bytes on disk.
  public var disk: Int64 = 1 << 30
  /// Whether equal requests at the same moment become one to the origin (RFC 9111 §4).
  public var collapses = true

  /// The stores and the rules, ready to be used.
  ///
  /// - Throws: with path and reason, when the folder can't be used.
  func open(_ downloader: any Downloader, clock: any CacheClock) throws(CacheError) -> OpenCache {
    var configuration = ResourceManager.Configuration()
    configuration.downloader = downloader
    configuration.clock = clock
    if !collapses { configuration.collapseTimeout = nil }
    configuration.maximumBodyInMemory = Int64(memory / 16)
    let memory = memory > 0 ? MemoryCache(limits: .init(cost: memory), clock: clock) : nil
    configuration.memory = memory
    var disk: DiskCache?
    if let folder { disk = try DiskCache(path: folder, configuration: .init(sizeLimit: self.disk, clock: clock)) }
    configuration.store = disk
    let secret = disk.flatMap { DigestSecret(bytes: $0.digestSecret) } ?? .random()
    switch guesses {
    case nil: configuration.validator = ETagValidator(mode: mode, parts: .completed, digestSecret: secret)
    case let guesses?:
      configuration.validator = ETagValidator(
        mode: mode, heuristics: guesses ? Heuristics() : nil, parts: .completed, digestSecret: secret)
    }
    return OpenCache(manager: ResourceManager(configuration), memory: memory, disk: disk)
  }
}

extension CacheSettings {
  /// The defaults, changed by `change`.
  public init(_ change: (inout Self) -> Void) {
    self.init()
    change(&self)
  }
}

/// A cache at work.
struct OpenCache: Sendable {
  let manager: ResourceManager
  let memory: MemoryCache?
  let disk: DiskCache?

  /// What is stored, for the status page.
  var contents: StatusDocument.Store {
    get async {
      var store = StatusDocument.Store()
      // Beside its bytes an answer has its metadata in memory, as an entry that has a transform.
      if let memory {
        (store.memoryEntries, store.memoryBytes) = (memory.keys().count { $0.transform.isEmpty }, Int64(memory.totalCost))
      }
      // A folder that can't be looked into tells nothing; it says so where it is written.
      if let disk { (store.diskEntries, store.diskBytes) = (try? await disk.entryCount, try? await disk.totalSize) }
      return store
    }
  }
}
#endif
