#if Demo
import Etagere
import Foundation

/// The results of the demo, as a table for people and as JSON for scripts.
struct DemoReport: Encodable {
  struct Row: Encodable {
    var pass: String
    var loads: Int
    var requests: Int
    var notModified: Int
    var bodyBytes: Int
    var meanMilliseconds: Double
    var p50Milliseconds: Double
    var p95Milliseconds: Double
    var maxMilliseconds: Double
    var sumMilliseconds: Double
    var wallMilliseconds: Double
    /// The mean time without a cache, divided by the mean time of this pass.
    var factor: Double

    init(_ pass: DemoPass, against baseline: DemoPass) {
      self.pass = pass.name
      loads = pass.times.count
      requests = pass.requests
      notModified = pass.notModified
      bodyBytes = pass.bodyBytes
      meanMilliseconds = Text.milliseconds(pass.mean)
      p50Milliseconds = Text.milliseconds(pass.times.percentile(0.5))
      p95Milliseconds = Text.milliseconds(pass.times.percentile(0.95))
      maxMilliseconds = Text.milliseconds(pass.times.percentile(1))
      sumMilliseconds = Text.milliseconds(pass.sum)
      wallMilliseconds = Text.milliseconds(pass.wall)
      factor = baseline.mean / pass.mean
    }
  }

  /// A time, and the shortest time that the link permits.
  struct Limit: Encodable {
    var what: String
    var milliseconds: Double
    var allowedMilliseconds: Double
    var ratio: Double
    private let work: String

    private enum CodingKeys: CodingKey {
      case what, milliseconds, allowedMilliseconds, ratio
    }

    init(_ what: String, _ time: Duration, bytes: Int, roundTrips: Int) {
      self.what = what
      let allowed = DemoLink.transmission(bytes) + DemoLink.roundTrip * roundTrips
      milliseconds = Text.milliseconds(time)
      allowedMilliseconds = Text.milliseconds(allowed)
      ratio = time / allowed
      work = "\(Text.count(roundTrips, "round trip", "round trips")), \(Text.bytes(Int64(bytes)))"
    }

    var line: String {
      "\(Text.left(what, 16)) \(Text.right(Text.time(milliseconds), 5)) ms, \(Text.decimal(ratio, 2)) × the link's minimum (\(work))"
    }
  }

  /// All passes with this number of loads at a time.
  struct Table: Encodable {
    var parallel: Int
    var rows: [Row] = []
    /// The mean time of the cold and the revalidated pass together, and its factor against no cache.
    var coldAndRevalidatedMilliseconds = 0.0
    var coldAndRevalidatedFactor = 0.0
    var revalidated: Limit?

    mutating func add(_ pass: DemoPass, against baseline: DemoPass) -> Row {
      let row = Row(pass, against: baseline)
      rows.append(row)
      return row
    }
  }

  var tables: [Table] = []
  var limits: [Limit] = []
  /// The sum of the durations of the photographs that were loaded together. The loads overlap.
  var overlappingSumMilliseconds = 0.0
  var sharedLoads = 0
  var sharedRequests = 0
  var wrong: [String] = []

  /// The heading of the table, which fits into 80 columns.
  static var header: String {
    let columns = ["requests", "304s", "body bytes", "mean ms", "p95 ms", "all ms", "faster"]
    return Text.row("pass", passWidth, columns, widths)
  }

  private static let passWidth = 23
  private static let widths = [9, 5, 11, 8, 8, 8, 8]

  static func line(_ row: Row) -> String {
    let cells = [
      "\(row.requests)", "\(row.notModified)", "\(row.bodyBytes)", Text.time(row.meanMilliseconds),
      Text.time(row.p95Milliseconds),
      Text.time(row.wallMilliseconds), factor(row.factor),
    ]
    return Text.row(row.pass, passWidth, cells, widths)
  }

  private static func factor(_ factor: Double) -> String { Text.decimal(factor, factor < 10 ? 2 : 0) + " ×" }
}
#endif
