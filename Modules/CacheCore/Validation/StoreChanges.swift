/// The changes of stored responses that a response brings, whether it is stored itself or not. Indices refer to `stored`.
public struct StoreChanges: Hashable, Sendable {
  /// A stored answer that answers a request with other selecting fields as well: a 304 has named it.
  public struct Copy: Hashable, Sendable {
    /// Which stored answer: its body is the copy's.
    public var index: Int
    /// What the copy is filed under.
    public var variant: String
    /// The copy's metadata, with a revision of its own.
    public var metadata: StoredMetadata

    /// A copy of its parts.
    public init(_ index: Int, variant: String, _ metadata: StoredMetadata) {
      (self.index, self.variant, self.metadata) = (index, variant, metadata)
    }
  }

  /// New metadata, with the same revision, for stored responses whose bodies stay: a HEAD, or the 304 of another variant, has
  /// updated them. The keys are indices.
  public var updates: [Int: StoredMetadata]
  /// Stored answers to remove. Remove them before anything is stored: one may bear the new answer's own variant.
  public var drops: [Int]
  /// Resources of which everything is to be removed (RFC 9111 §4.4), as URIs in the form of ``ResourceID``.
  public var invalidations: [String]
  /// What is to be filed under another variant too, where its body is at hand. It is never more than a 304 has confirmed.
  public var copy: Copy?

  /// Changes of their parts; by default none.
  public init(updates: [Int: StoredMetadata] = [:], drops: [Int] = [], invalidations: [String] = [], copy: Copy? = nil) {
    self.updates = updates
    self.drops = drops
    self.invalidations = invalidations
    self.copy = copy
  }

  /// Nothing changes.
  public static let none = StoreChanges()
}
