import LoopbackOrigin

/// The origin's counters since the start of the scenario.
struct OriginReport: Codable, Sendable, Equatable {
  /// The counters of one image.
  struct Image: Codable, Sendable, Equatable {
    var requests = 0
    /// The number of responses with status 304.
    var notModified = 0
    /// The bytes of the heads and bodies that were sent over the link.
    var bytes = 0
  }

  /// The sums over all images.
  var requests = 0
  var notModified = 0
  var bytes = 0
  /// The counters of each image, by path.
  var images: [String: Image] = [:]

  init() {}

  init(_ origin: OriginServer, paths: [String]) {
    for path in paths {
      let counters = origin.counters(for: path)
      let image = Image(requests: counters.requests, notModified: counters.notModified, bytes: counters.bytesSent)
      images[path] = image
      requests += image.requests
      notModified += image.notModified
      bytes += image.bytes
    }
  }
}
