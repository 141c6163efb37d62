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

  /// Stored answers with new metadata.
  public var updates: [Update]
  /// Stored answers to remove. Remove them before anything is stored: one may bear the new answer's own variant.
  public var drops: [Int]
  /// Resources of which everything is to be removed (RFC 9111 §4.4), as URIs in the form of ``ResourceID``.
  public var invalidations: [String]
  /// What is to be filed under another variant too, where its body is at hand. It is never more than a 304 has confirmed.
  public var copy: Copy?

  /// Changes of their parts; by default none.
  public init(updates: [Update] = [], drops: [Int] = [], invalidations: [String] = [], copy: Copy? = nil) {
    self.updates = updates
    self.drops = drops
    self.invalidations = invalidations
    self.copy = copy
  }

  /// Nothing changes.
  public static let none = StoreChanges()
}
