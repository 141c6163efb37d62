/// What a ``LayeredStore`` did since it was made.
public struct LayeredCounters: Hashable, Sendable {
  /// What one of its layers did.
  public struct Layer: Hashable, Sendable {
    /// Entries that were found here.
    public var hits = 0
    /// Calls that failed here, and were taken for a miss or left to the other layers.
    public var failures = 0

    /// Nothing counted yet.
    public init() {}
  }

  /// The layers, the first one first.
  public var layers: [Layer]
  /// Entries that were copied into layers above the one they were found in.
  public var promotions = 0
  /// Entries that were not copied there because they are larger than the limit, or enough others were being copied.
  public var skippedPromotions = 0
  /// Copies of entries that were made in layers below, with ``LayeredStore/Writing/back``.
  public var writtenBack = 0
  /// Entries that were to be copied there and were not, or not everywhere: they were gone, or a layer did not take them.
  public var lostWritesBack = 0

  /// Nothing counted yet, for so many layers.
  public init(layers: Int) { self.layers = Array(repeating: Layer(), count: max(0, layers)) }
}
