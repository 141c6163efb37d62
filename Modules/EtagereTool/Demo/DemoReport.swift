#if Tool
import Etagere
import Foundation

/// What the demo found, as a table for people or JSON for scripts.
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
    /// How many times faster the mean load is than with no cache.
    var factor: Double

    init(_ pass: DemoPass, against baseline: DemoPass) {
      self.pass = pass.name
      loads = pass.times.count
      requests = pass.requests
      notModified = pass.notModified
      bodyBytes = pass.bodyBytes
      meanMilliseconds = Text.milliseconds(pass.mean)
      p50Milliseconds = Text.milliseconds(pass.percentile(0.5))
      p95Milliseconds = Text.milliseconds(pass.percentile(0.95))
      maxMilliseconds = Text.milliseconds(pass.percentile(1))
      sumMilliseconds = Text.milliseconds(pass.sum)
      wallMilliseconds = Text.milliseconds(pass.wall)
      factor = baseline.mean / pass.mean
    }
  }

  /// A time beside what the link allows.
  struct Limit: Encodable {
    var what: String
    var milliseconds: Double
    var allowedMilliseconds: Double
    var ratio: Double

    init(_ what: String, _ time: Duration, allowed: Duration) {
      self.what = what
      milliseconds = Text.milliseconds(time)
      allowedMilliseconds = Text.milliseconds(allowed)
      ratio = time / allowed
    }

    var line: String {
      "\(Text.left(what, 46)) \(Text.right(Text.time(milliseconds), 8)) ms; the link allows \(Text.right(Text.time(allowedMilliseconds), 8)) ms: \(Text.decimal(ratio, 3)) ×"
    }
  }

  /// All passes with so many loads at a time.
  struct Table: Encodable {
    var parallel: Int
    var rows: [Row] = []
    /// Mean over a cold and a revalidated pass together, and its factor against no cache.
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
  /// The single loads of the photographs, loaded together, summed although they overlap.
  var overlappingSumMilliseconds = 0.0
  var sharedLoads = 0
  var sharedRequests = 0
  var wrong: [String] = []

  static var header: String {
    let columns = [
      "loads", "requests", "304s", "body bytes", "mean ms", "p50 ms", "p95 ms", "max ms", "sum ms", "wall ms", "factor",
    ]
    return Text.left("pass", 28) + zip(columns, widths).map { Text.right($0, $1) }.joined()
  }

  private static let widths = [7, 10, 6, 12, 10, 10, 10, 10, 10, 10, 10]

  static func line(_ row: Row) -> String {
    let cells = [
      "\(row.loads)", "\(row.requests)", "\(row.notModified)", "\(row.bodyBytes)", Text.time(row.meanMilliseconds),
      Text.time(row.p50Milliseconds), Text.time(row.p95Milliseconds), Text.time(row.maxMilliseconds),
      Text.time(row.sumMilliseconds),
      Text.time(row.wallMilliseconds), Text.time(row.factor) + " ×",
    ]
    return Text.left(row.pass, 28) + zip(cells, widths).map { Text.right($0, $1) }.joined()
  }
}
#endif
