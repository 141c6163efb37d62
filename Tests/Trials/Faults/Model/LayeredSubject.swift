import CacheCore
import DiskStore
import StoreComposition

/// A layered store of two disk caches.
struct LayeredSubject: Subject {
  private let path: String
  private let writing: LayeredStore.Writing
  private let clock: any CacheClock
  private var layers: [DiskCache] = []
  private var store: LayeredStore

  init(_ path: String, _ writing: LayeredStore.Writing, _ clock: any CacheClock) throws {
    (self.path, self.writing, self.clock) = (path, writing, clock)
    layers = try Self.layers(path, clock)
    store = try LayeredStore(layers, configuration: .init(writing: writing))
  }

  private static func layers(_ path: String, _ clock: any CacheClock) throws -> [DiskCache] {
    try ["upper", "lower"].map { try DiskCache(path: "\(path)/\($0)", configuration: .init(sizeLimit: nil, clock: clock)) }
  }

  var name: String { "LayeredStore of two DiskCaches, writing \(writing)" }

  var stores: [any CacheStore] { [store] }

  mutating func reopen() async throws {
    try await close()
    layers = try Self.layers(path, clock)
    store = try LayeredStore(layers, configuration: .init(writing: writing))
  }

  func settle() async throws { await store.flush() }

  func removeExpired() async throws { for layer in layers { _ = try await layer.removeExpired() } }

  func close() async throws {
    await store.flush()
    for layer in layers { await layer.close() }
  }
}
