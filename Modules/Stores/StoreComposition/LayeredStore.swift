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

extension LayeredStore {
  /// The time at which stored entries reach the layers below the first.
  public enum Writing: Hashable, Sendable {
    /// With the commit, which returns when every layer that accepts the entry has it.
    case through
    /// Later. The commit waits only for the first layer that accepts the entry, and the others get it in the background.
    /// ``LayeredStore/flush()`` waits for these copies. If the first layer loses the entry or the process ends before the copy,
    /// the lower layers never get it. After a restart they may then show an older entry.
    case back
  }

  /// The settings of a ``LayeredStore``.
  public struct Configuration: Sendable {
    /// The time at which stored entries reach the layers below the first.
    public var writing: Writing
    /// The maximum size in bytes of a body that is copied into the layers above the one it was found in. With 0, no body is
    /// copied. The default is 16 MiB.
    public var promotionLimit: Int64
    /// The maximum number of entries that wait to be written back. A further commit waits. The minimum is 1 and the default
    /// 1,000.
    public var backlog: Int

    /// Creates a configuration.
    public init(writing: Writing = .through, promotionLimit: Int64 = 16 << 20, backlog: Int = 1_000) {
      self.writing = writing
      self.promotionLimit = promotionLimit
      self.backlog = backlog
    }

    func validate() throws(CacheError) {
      try CacheError.require("promotionLimit", promotionLimit, in: 0...)
      try CacheError.require("backlog", backlog, in: 1...)
    }
  }
}

/// The number of operations of a ``LayeredStore`` since it was created.
public struct LayeredCounters: Hashable, Sendable {
  /// The number of operations in one layer.
  public struct Layer: Hashable, Sendable {
    /// Entries that were found in this layer.
    public var hits = 0
    /// Lookups and changes that failed in this layer, even if another layer had the entry or stored it. Lists do not count, and
    /// neither do refusals because the layer is read-only, the entry is too large or its lease is no longer the latest.
    public var failures = 0

    /// Creates counters that are all zero.
    public init() {}
  }

  /// The layers, from first to last.
  public var layers: [Layer]
  /// Entries that were copied into layers above the one they were found in.
  public var promotions = 0
  /// Entries that were not copied up, because they exceed the limit or too many copies were in progress.
  public var skippedPromotions = 0
  /// Copies of entries that were written to lower layers with ``LayeredStore/Writing/back``.
  public var writtenBack = 0
  /// Entries that did not reach every lower layer, because they were gone or a layer refused them.
  public var lostWritesBack = 0

  /// Creates counters that are all zero, for this many layers.
  public init(layers: Int) { self.layers = Array(repeating: Layer(), count: max(0, layers)) }
}
