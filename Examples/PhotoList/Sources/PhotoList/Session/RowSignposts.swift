#if canImport(os)
import os
#endif

/// The intervals of the rows in Instruments, from the appearance of a row to its first image. On other platforms than Apple's,
/// this type does nothing.
@MainActor
final class RowSignposts {
  #if canImport(os)
  private let signposter = OSSignposter(subsystem: "PhotoList", category: "Rows")
  private var intervals: [Int: OSSignpostIntervalState] = [:]
  #endif

  func begin(_ row: ListRow) {
    #if canImport(os)
    intervals[row.id] = signposter.beginInterval("Row", id: signposter.makeSignpostID(), "\(row.path)")
    #endif
  }

  func end(_ row: ListRow) {
    #if canImport(os)
    if let interval = intervals.removeValue(forKey: row.id) { signposter.endInterval("Row", interval) }
    #endif
  }
}
