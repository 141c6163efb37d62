/// The results of runs that differ only in their number of nodes, as a table for people.
enum Table {
  private static let headings = [
    "nodes", "origin requests", "revalidations", "hits memory", "hits shared", "from origin", "to shared", "from shared",
    "shared calls", "lease waits", "mean wait", "longest wait", "busiest node", "failed",
  ]

  static func text(_ runs: [(nodes: Int, report: FleetReport)]) -> String {
    let rows = [headings] + runs.map { cells($0.nodes, $0.report) }
    let widths = headings.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    return rows.map { row in
      zip(row, widths).map { String(repeating: " ", count: $1 - $0.count) + $0 }.joined(separator: "  ")
    }
    .joined(separator: "\n")
  }

  private static func cells(_ nodes: Int, _ report: FleetReport) -> [String] {
    let requests = report.total.requests
    func percent(_ count: Int) -> String { requests > 0 ? Text.fixed(Double(count) / Double(requests) * 100, 2) + " %" : "-" }
    let hasWaited = report.leaseWaits > 0
    return [
      "\(nodes)", Text.count(report.originRequests), Text.count(report.revalidations), percent(report.memoryHits.requests),
      percent(report.sharedHits.requests + report.sharedAfterWait.requests), Text.bytes(report.bytesFromOrigin),
      Text.bytes(report.bytesToShared), Text.bytes(report.bytesFromShared), Text.count(report.sharedCalls),
      Text.count(report.leaseWaits), hasWaited ? Text.time(report.leaseWaitTime / Double(report.leaseWaits)) : "-",
      hasWaited ? Text.time(report.longestLeaseWait) : "-", Text.fixed(report.imbalance, 2) + " ×",
      Text.count(report.failed.requests),
    ]
  }
}
