/// The result of one pass over the rows. A value that is not known is `nil`.
struct PassResult: Encodable, Equatable, Sendable {
  var name: String
  /// The number of rows that show an image.
  var images: Int
  /// The number of rows whose image was available in the turn of the main actor in which the row appeared.
  var firstFrame: Int?
  /// The mean time from the appearance of a row to its first image.
  var meanFirstMilliseconds: Double?
  /// The mean time from the appearance of a row to the end of its load.
  var meanFinalMilliseconds: Double?
  /// The time to the end of the load that 95 % of the rows did not exceed.
  var p95FinalMilliseconds: Double?
  /// The number of requests that the server received.
  var requests: Int?
  /// The number of responses with status 304.
  var notModified: Int?
  /// The number of body bytes that the server sent.
  var bodyBytes: Int?
  /// The number of changes of an image after the turn in which its row appeared, for all rows together.
  var updates: Int?

  init(_ name: String, first: LoadStatistics, final: LoadStatistics) {
    self.name = name
    images = first.count
    meanFirstMilliseconds = first.mean
    meanFinalMilliseconds = final.mean
    p95FinalMilliseconds = final.percentile(0.95)
  }

  /// Sets the counts of the server.
  mutating func set(_ counts: ServerCounts?) {
    (requests, notModified, bodyBytes) = (counts?.requests, counts?.notModified, counts?.bodyBytes)
  }
}
