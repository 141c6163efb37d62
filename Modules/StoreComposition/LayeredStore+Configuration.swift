internal import CacheCore

extension LayeredStore {
  /// When what is stored reaches the layers below the first.
  public enum Writing: Hashable, Sendable {
    /// With the commit: it returns when every layer that takes the entry has it.
    case through
    /// Later: the commit waits for the first layer that takes the entry alone, and the others get it in the background;
    /// ``LayeredStore/flush()`` waits for that. What the first layer loses before then, or the end of the process, never reaches
    /// them; after the latter they show what is older there when the first has lost the entry.
    case back
  }

  /// How a ``LayeredStore`` is set up.
  public struct Configuration: Sendable {
    /// When what is stored reaches the layers below the first.
    public var writing: Writing
    /// Bytes of the largest body that is copied into the layers above the one it was found in; 0: none is. 16 MiB.
    public var promotionLimit: Int64
    /// How many entries wait to be written back, at most; a commit beyond that waits for room. 1 or more; 1,000.
    public var backlog: Int

    /// A configuration; see the properties for what they mean.
    public init(writing: Writing = .through, promotionLimit: Int64 = 16 << 20, backlog: Int = 1_000) {
      self.writing = writing
      self.promotionLimit = promotionLimit
      self.backlog = backlog
    }

    func validate() throws(CacheError) {
      guard promotionLimit >= 0 else {
        throw CacheError(.invalidConfiguration, reason: "promotionLimit is negative: \(promotionLimit)")
      }
      guard backlog > 0 else { throw CacheError(.invalidConfiguration, reason: "backlog is not positive: \(backlog)") }
    }
  }
}
