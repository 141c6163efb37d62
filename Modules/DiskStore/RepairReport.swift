/// What ``DiskCache/repair()`` found and did.
public struct RepairReport: Hashable, Sendable {
  /// What was found in the entries, and how many damaged ones were removed.
  public var verification = VerificationReport()
  /// Temporary files that were removed because who wrote them is gone.
  public var orphans = 0
  /// Whether the folder's counters were made anew: somebody had ended in the middle of a change, and since then each miss had to
  /// ask the file system.
  public var renewedCounters = false
  /// Entries that are there now.
  public var entries = 0
  /// Bytes that their files take.
  public var size: Int64 = 0

  /// Nothing found yet.
  public init() {}

  /// Whether all that was wrong has been put right: nothing is damaged any more, and everything could be read.
  public var isClean: Bool { verification.damaged.count == verification.removed && verification.unreadable.isEmpty }
}
