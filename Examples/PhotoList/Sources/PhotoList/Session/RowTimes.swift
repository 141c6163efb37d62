/// The times of the rows in one pass. A row that disappears and appears again is measured twice.
struct RowTimes: Sendable {
  private struct Load: Sendable {
    var start: Duration
    var first: Duration?
    var final: Duration?
  }

  /// The loads of the visible rows. A load that has ended stays until its row disappears, so that late reports do not begin a new
  /// one.
  private var visible: [Int: Load] = [:]
  private var endedLoads: [Load] = []

  /// The number of visible rows whose load has not ended.
  var running: Int { visible.values.count { $0.final == nil } }
  /// The number of loads that have ended.
  var ended: Int { endedLoads.count }
  /// The times to the first image. A load that failed has none.
  var first: LoadStatistics { LoadStatistics(endedLoads.compactMap(\.first)) }
  /// The times to the end of the loads.
  var final: LoadStatistics { LoadStatistics(endedLoads.compactMap(\.final)) }

  /// Begins the load of a row. Returns `false` if the row is visible already.
  mutating func begin(_ row: Int, at time: Duration) -> Bool {
    guard visible[row] == nil else { return false }
    visible[row] = Load(start: time)
    return true
  }

  mutating func showFirst(_ row: Int, at time: Duration) {
    guard var load = visible[row], load.first == nil else { return }
    load.first = time - load.start
    visible[row] = load
  }

  mutating func end(_ row: Int, at time: Duration) {
    guard var load = visible[row], load.final == nil else { return }
    load.final = time - load.start
    visible[row] = load
    endedLoads.append(load)
  }

  mutating func remove(_ row: Int) { visible[row] = nil }
}
