internal import CacheCore

/// The repair of a folder, in the maintenance lane.
extension DiskEngine {
  func repair() throws(CacheError) -> VerificationReport {
    try requireWritable()
    let orphans = folder.collectOrphans()
    // The index file is only a hint. It is written again below.
    forgetIndexFile()
    let renewedCounters = folder.renewCounters()
    var report = try verify(removingDamaged: true)
    (report.orphans, report.renewedCounters) = (orphans, renewedCounters)
    try list()
    saveIndex()
    return report
  }
}
