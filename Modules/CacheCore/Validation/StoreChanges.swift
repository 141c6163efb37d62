/// What an answer means for the stored ones, whatever becomes of the answer itself. Indices point into `stored`.
public struct StoreChanges: Hashable, Sendable {
  /// New metadata for a stored answer whose body stays: a HEAD, or the 304 of another variant, has news of it.
  public struct Update: Hashable, Sendable {
    /// Which stored answer.
    public var index: Int
    /// What is known of it from now on; its revision is the stored one's.
    public var metadata: StoredMetadata

    /// An update of its parts.
    public init(_ index: Int, _ metadata: StoredMetadata) { (self.index, self.metadata) = (index, metadata) }
  }

  /// Stored answers with new metadata.
  public var updates: [Update]
  /// Stored answers to remove. Remove them before anything is stored: one may bear the new answer's own variant.
  public var drops: [Int]
  /// Resources of which everything is to be removed (RFC 9111 §4.4), as URIs in the form of ``ResourceID``.
  public var invalidations: [String]

  /// Changes of their parts; by default none.
  public init(updates: [Update] = [], drops: [Int] = [], invalidations: [String] = []) {
    self.updates = updates
    self.drops = drops
    self.invalidations = invalidations
  }

  /// Nothing changes.
  public static let none = StoreChanges()
}
