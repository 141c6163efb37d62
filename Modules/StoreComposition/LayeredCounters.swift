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
