internal import CacheCore

/// The repair of a folder, in the upkeep's lane.
extension DiskEngine {
  func repair() throws(CacheError) -> VerificationReport {
    try requireWritable()
    let orphans = folder.collectOrphans()
    // The index file is a hint. It is made again from the files below.
    forgetIndexFile()
    let renewedCounters = folder.renewCounters()
    var report = try verify(removingDamaged: true)
    (report.orphans, report.renewedCounters) = (orphans, renewedCounters)
    try list()
    saveIndex()
    return report
  }
}
