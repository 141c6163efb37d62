/// The changes to stored responses that a response causes, even if it is not stored itself. Indices refer to `stored`.
public struct StoreChanges: Hashable, Sendable {
  /// A stored response that a 304 has also selected for a request with other selecting fields.
  public struct Copy: Hashable, Sendable {
    /// The index of the stored response, whose body is copied.
    public var index: Int
    /// The variant of the copy.
    public var variant: String
    /// The metadata of the copy, which has a new revision.
    public var metadata: StoredMetadata

    /// Creates a copy.
    public init(_ index: Int, variant: String, _ metadata: StoredMetadata) {
      (self.index, self.variant, self.metadata) = (index, variant, metadata)
    }
  }

  /// New metadata for stored responses whose bodies remain, keyed by index. The revision stays the same. A HEAD, or a 304 for
  /// another variant, causes such an update.
  public var updates: [Int: StoredMetadata]
  /// The indices of stored responses to remove. Remove them before storing anything, because one of them may have the variant of
  /// the new response.
  public var drops: [Int]
  /// The URIs, in the form of ``ResourceID``, of resources to remove completely (RFC 9111 §4.4).
  public var invalidations: [String]
  /// The response to store under another variant too, if its body is available. Only a 304 causes a copy.
  public var copy: Copy?

  /// Creates changes, by default none.
  public init(updates: [Int: StoredMetadata] = [:], drops: [Int] = [], invalidations: [String] = [], copy: Copy? = nil) {
    self.updates = updates
    self.drops = drops
    self.invalidations = invalidations
    self.copy = copy
  }

  /// No changes.
  public static let none = StoreChanges()
}
