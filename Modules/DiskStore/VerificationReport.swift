/// What ``DiskCache/verify(removingDamaged:)`` found.
public struct VerificationReport: Hashable, Sendable {
  /// Entries whose every byte is as it was written.
  public var good = 0
  /// Bytes of their bodies.
  public var bodyBytes: Int64 = 0
  /// Damaged files: path, and what is damaged.
  public var damaged: [Damage] = []
  /// Damaged files that were removed.
  public var removed = 0
  /// Entries of a later version of the format, which were left alone.
  public var newer = 0
  /// Files that could not be read: path, and why.
  public var unreadable: [Damage] = []

  /// One file and what is wrong with it.
  public struct Damage: Hashable, Sendable {
    /// The file.
    public var path: String
    /// What is wrong, in words.
    public var reason: String

    /// A file and what is wrong with it.
    public init(path: String, reason: String) { (self.path, self.reason) = (path, reason) }
  }

  /// Nothing found yet.
  public init() {}

  /// Whether nothing was damaged or unreadable.
  public var isClean: Bool { damaged.isEmpty && unreadable.isEmpty }
}
