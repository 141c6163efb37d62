#if Gateway
import LoopbackOrigin

/// The origin's counters since the scenario began.
struct OriginReport: Codable, Sendable, Equatable {
  /// The counters of one image.
  struct Image: Codable, Sendable, Equatable {
    var requests = 0
    /// Responses 304.
    var notModified = 0
    /// Heads and bodies that were sent over the link.
    var bytes = 0
  }

  /// All images together.
  var requests = 0
  var notModified = 0
  var bytes = 0
  /// By path.
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
#endif
