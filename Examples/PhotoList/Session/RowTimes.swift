/// The times of the rows in one pass. A row that appears twice is counted twice.
struct RowTimes: Sendable {
  private struct Load: Sendable {
    var start: Duration
    var first: Duration?
    var final: Duration?
  }

  private var runningLoads: [Int: Load] = [:]
  private var endedLoads: [Load] = []

  /// The number of loads that have not ended.
  var running: Int { runningLoads.count }
  /// The number of loads that have ended.
  var ended: Int { endedLoads.count }
  /// The times to the first image. A load that failed has none.
  var first: LoadStatistics { LoadStatistics(endedLoads.compactMap(\.first)) }
  /// The times to the end of the loads.
  var final: LoadStatistics { LoadStatistics(endedLoads.compactMap(\.final)) }

  /// Begins the load of a row. Returns `false` if it was running already.
  mutating func begin(_ row: Int, at time: Duration) -> Bool {
    guard runningLoads[row] == nil else { return false }
    runningLoads[row] = Load(start: time)
    return true
  }

  mutating func showFirst(_ row: Int, at time: Duration) {
    guard var load = runningLoads[row], load.first == nil else { return }
    load.first = time - load.start
    runningLoads[row] = load
  }

  mutating func end(_ row: Int, at time: Duration) {
    guard var load = runningLoads.removeValue(forKey: row) else { return }
    load.final = time - load.start
    endedLoads.append(load)
  }

  mutating func cancel(_ row: Int) { runningLoads[row] = nil }
}
