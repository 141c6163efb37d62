public import CacheCore

/// Several stores as one. Lookups go through them in order, and new entries go to all of them.
///
/// ```swift
/// let store = try LayeredStore([DiskCache(folder: caches), ReadOnlyStore(folder: shipped)])
/// configuration.store = store
/// ```
///
/// A lookup returns the entry of the first layer that has it. The layers above get a copy in the background, in chunks, and the
/// reader does not wait for it. A lookup or a write that fails in one layer causes an error only if no other layer has
/// or accepts the entry. Removals go to every layer, and throw if one of them fails. Lookups do not return an entry that a layer
/// could not remove.
///
/// Change the layers only through this object. A copy in progress can overwrite other changes.
public final class LayeredStore: CacheStore {
  let layers: [Layer]
  let barrier: CopyBarrier
  let copyTable: CopyTable
  private let counted: Lock<LayeredCounters>

  /// The configuration that the store was created with.
  public let configuration: Configuration

  /// A unique identifier, because each store hides the entries that it could not remove.
  public let id = ComponentID.unique(LayeredStore.self)

  /// Creates a store from layers in lookup order, the fastest first.
  ///
  /// - Throws: `CacheError.Code.invalidConfiguration` if there is no layer or a setting is invalid.
  public init(_ stores: [any CacheStore], configuration: Configuration = Configuration()) throws(CacheError) {
    try configuration.validate()
    guard !stores.isEmpty else { throw CacheError(.invalidConfiguration, reason: "a layered store needs a layer") }
    layers = stores.map(Layer.init)
    (barrier, copyTable) = (CopyBarrier(), CopyTable())
    self.configuration = configuration
    counted = Lock(LayeredCounters(layers: stores.count))
  }

  /// Creates a view of some layers of a store.
  private init(_ layers: [Layer], of store: LayeredStore) {
    self.layers = layers
    (barrier, copyTable, configuration) = (store.barrier, store.copyTable, store.configuration)
    counted = Lock(LayeredCounters(layers: layers.count))
  }

  /// Returns the layers that other machines do not use, or `nil` if they use all of them.
  ///
  /// A layer that is only partly shared counts as shared, so purges by other machines do not reach its unshared part. Do not use
  /// a layered store with a shared layer as a layer.
  public func unsharedPart() async -> (any CacheStore)? {
    // Copies that have begun do not commit after this.
    await barrier.beginSweep()
    defer { barrier.endSweep() }
    return await part(isShared: false)
  }

  /// Returns the layers that other machines use too, or `nil` if there are none. A layer with a shared part counts as shared.
  ///
  /// With ``Writing/back``, it returns all layers, because the entries of the first one are copied into the shared ones later.
  public func sharedPart() async -> (any CacheStore)? {
    guard let shared = await part(isShared: true) else { return nil }
    return configuration.writing == .back ? self : shared
  }

  private func part(isShared: Bool) async -> LayeredStore? {
    var part: [Layer] = []
    for layer in layers where await layer.isShared == isShared { part.append(layer) }
    if part.count == layers.count { return self }
    return part.isEmpty ? nil : LayeredStore(part, of: self)
  }

  /// The operations of this store since it was created.
  public var counters: LayeredCounters {
    var counters = counted.withLock { $0 }
    counters.layers = layers.map(\.counters)
    return counters
  }

  func count(_ change: (inout LayeredCounters) -> Void) { counted.withLock { change(&$0) } }

  /// Waits until no copy between the layers is in progress or pending.
  public func flush() async { await copyTable.idle() }
}
