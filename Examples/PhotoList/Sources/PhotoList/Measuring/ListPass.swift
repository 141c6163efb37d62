import CacheUI
import Foundation

/// One pass over the list without a screen. All rows appear in one turn of the main actor, each with a new model.
@MainActor
struct ListPass {
  let rows: [MeasuredRow]

  /// Returns when the load of each row has ended.
  static func run(_ urls: [URL], with manager: ResourceManager, clock: any CacheClock) async -> ListPass {
    let rows = urls.map { _ in MeasuredRow(manager: manager, clock: clock) }
    // This loop does not suspend, so all rows appear in one turn.
    for (row, url) in zip(rows, urls) { row.appear(url) }
    for row in rows { await row.ended() }
    return ListPass(rows: rows)
  }

  /// Returns the times of the rows, and their counts.
  func result(_ name: String) -> PassResult {
    var result = PassResult(
      name, first: LoadStatistics(rows.compactMap(\.first)), final: LoadStatistics(rows.compactMap(\.final)))
    result.images = rows.count { $0.model.image != nil }
    result.firstFrame = rows.count(where: \.isInFirstFrame)
    result.updates = rows.reduce(0) { $0 + $1.updates }
    return result
  }
}
