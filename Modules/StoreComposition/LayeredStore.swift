public import CacheCore

/// Several stores as one: a look goes through them in order, and what is stored goes to all.
///
/// ```swift
/// let store = try LayeredStore([DiskCache(folder: caches), ReadOnlyStore(folder: shipped)])
/// configuration.store = store
/// ```
///
/// The first layer that has an entry answers; the layers above it get a copy in the background, piece by piece, which neither
/// holds the body nor keeps its reader waiting. A layer that fails is a miss, and counted: it never fails what another layer can
/// do. Removing goes to every layer, and what one of them can't remove is hidden for as long as this object lives.
///
/// The layers are this object's own: who changes one of them past it may be overwritten by a copy that was under way.
public final class LayeredStore: CacheStore {
  let layers: [Layer]
  let barrier = CopyBarrier()
  let copyTable = CopyTable()
  private let counted: Lock<LayeredCounters>

  /// How it was set up.
  public let configuration: Configuration

  /// Two of them never answer alike: each hides what it could not remove.
  public let id = ComponentID.unique(LayeredStore.self)

  /// Stores in the order in which they are asked, the quickest first.
  ///
  /// - Throws: `CacheError.Code.invalidConfiguration` when there is none, or a setting makes no sense.
  public init(_ stores: [any CacheStore], configuration: Configuration = Configuration()) throws(CacheError) {
    try configuration.validate()
    guard !stores.isEmpty else { throw CacheError(.invalidConfiguration, reason: "a layered store needs a layer") }
    layers = stores.map(Layer.init)
    self.configuration = configuration
    counted = Lock(LayeredCounters(layers: stores.count))
  }

  /// What this object did so far.
  public var counters: LayeredCounters {
    var counters = counted.withLock { $0 }
    counters.layers = layers.map(\.counters)
    return counters
  }

  func count(_ change: (inout LayeredCounters) -> Void) { counted.withLock { change(&$0) } }

  /// Returns when nothing is being copied between the layers, and nothing waits to be.
  public func flush() async { await copyTable.idle() }
}
