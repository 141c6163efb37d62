internal import CacheCore

/// Putting right what can be, in the upkeep's lane.
extension DiskEngine {
  func repair() throws(CacheError) -> RepairReport {
    try requireWritable()
    var report = RepairReport()
    report.orphans = folder.collectOrphans()
    // It is a hint, and made again from the files below.
    forgetIndexFile()
    report.renewedCounters = folder.renewCounters()
    report.verification = try verify(removingDamaged: true)
    try list()
    (report.size, report.entries) = index.known
    saveIndex()
    return report
  }
}
