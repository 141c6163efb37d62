/// The results of ``DiskCache/verify(removingDamaged:)`` and ``DiskCache/repair()``.
public struct VerificationReport: Hashable, Sendable {
  /// The number of entries whose every byte is as it was written.
  public var good = 0
  /// The bytes of the bodies of these entries.
  public var bodyBytes: Int64 = 0
  /// The damage of each damaged file, by path.
  public var damaged: [String: String] = [:]
  /// The number of damaged files that were removed.
  public var removed = 0
  /// The number of entries of a later format version, which were not touched.
  public var newer = 0
  /// The error of each file that could not be read, by path.
  public var unreadable: [String: String] = [:]

  /// The number of temporary files that a repair removed because the process that wrote them has ended.
  public var orphans = 0
  /// Whether a repair made the counters of the folder anew. A process that ends in the middle of a change leaves them unequal,
  /// and then each miss asks the file system.
  public var renewedCounters = false

  /// Creates an empty report.
  public init() {}

  /// Whether every damaged file was removed and every file could be read.
  public var isClean: Bool { damaged.count == removed && unreadable.isEmpty }
}
