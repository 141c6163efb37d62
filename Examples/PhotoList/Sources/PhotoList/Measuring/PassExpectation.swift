import CacheUI
import Foundation

/// The counts that a pass must have, and the state of each row.
struct PassExpectation: Sendable {
  var counts = ServerCounts()
  /// Whether each image is available in the turn of the main actor in which its row appears.
  var isInFirstFrame = false
  /// Returns how often the image of a row changes after that turn.
  var updates: @Sendable (ListRow) -> Int = { _ in 0 }
  /// Returns the outcome of the revalidation of a row.
  var validation: @Sendable (ListRow) -> RevalidationOutcome = { _ in .notAttempted }

  /// Returns a sentence for each difference.
  @MainActor
  func differences(from result: PassResult, of pass: ListPass) -> [String] {
    let rows = ListRow.all
    let counts: [(String, Int?, Int)] = [
      ("images", result.images, rows.count), ("images in the first frame", result.firstFrame, isInFirstFrame ? rows.count : 0),
      ("requests", result.requests, counts.requests), ("responses 304", result.notModified, counts.notModified),
      ("body bytes", result.bodyBytes, counts.bodyBytes),
    ]
    var differences = counts.filter { $0.1 != $0.2 }.map { name, counted, expected in
      "\(result.name): \(counted.map { "\($0)" } ?? "unknown") \(name), not \(expected)"
    }
    for (row, measured) in zip(rows, pass.rows) {
      if measured.updates != updates(row) {
        differences.append("\(result.name): \(row.path) was updated \(measured.updates) times, not \(updates(row)) times")
      }
      guard case .loaded(let resource) = measured.model.phase else {
        let reason = measured.model.phase.error.map { "\($0)" } ?? "the load has not ended"
        differences.append("\(result.name): \(row.path): \(reason)")
        continue
      }
      if resource.validation != validation(row) {
        differences.append(
          "\(result.name): the outcome of the revalidation of \(row.path) is \(resource.validation), not \(validation(row))")
      }
    }
    return differences
  }
}
