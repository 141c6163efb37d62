/// The results of ``DiskCache/verify(removingDamaged:)`` and ``DiskCache/repair()``.
public struct VerificationReport: Hashable, Sendable {
  /// The number of intact entries.
  public var good = 0
  /// The total size of the bodies of the intact entries, in bytes.
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
  /// Whether a repair reset the folder's change counters. A process that ends during a change leaves two counters that differ.
  /// Until they are reset, every lookup that misses reads the file system.
  public var renewedCounters = false

  /// Creates an empty report.
  public init() {}

  /// Whether every damaged file was removed and every file could be read.
  public var isClean: Bool { damaged.count == removed && unreadable.isEmpty }
}
