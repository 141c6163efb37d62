internal import CacheCore

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
