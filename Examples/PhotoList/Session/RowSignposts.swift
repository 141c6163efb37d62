#if canImport(os)
import os
#endif

/// An interval in Instruments for each row, from its appearance to its first image. Elsewhere it does nothing.
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
