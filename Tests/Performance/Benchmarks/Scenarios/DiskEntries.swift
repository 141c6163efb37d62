import CacheCore
import Foundation
import HTTPTypes

/// The entries of the disk measurements: heads that a common server sends, and URLs of 60 characters.
enum DiskEntries {
  private static let now = Timestamp(seconds: 784_111_780)
  private static let fields: HTTPFields = {
    var fields = HTTPFields()
    for (name, value) in [
      ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("Server", "nginx/1.25.3"), ("Content-Type", "image/webp"),
      ("Content-Length", "20480"), ("Last-Modified", "Sat, 05 Nov 1994 08:49:37 GMT"), ("ETag", "\"65a-1f2e3d4c\""),
      ("Cache-Control", "public, max-age=3600"), ("Accept-Ranges", "bytes"),
    ] {
      guard let name = HTTPField.Name(name) else { continue }
      fields.append(HTTPField(name: name, value: value))
    }
    return fields
  }()

  static func key(_ number: Int) -> CacheKey {
    CacheKey(resource: "https://images.example.com/photographs/2026/11/22/\(1_000_000 + number).w")
  }

  static func metadata(revision: Revision = .random()) -> StoredMetadata {
    let request = HTTPRequest(method: .get, scheme: "https", authority: "images.example.com", path: "/photographs")
    let freshness = Freshness(generatedAt: now, freshUntil: now + .seconds(3600))
    return StoredMetadata(
      request: request, response: HTTPResponse(status: .ok, headerFields: fields), requestTime: now, responseTime: now,
      revision: revision, freshness: freshness)
  }

  /// Creates a folder for one measurement in the run's temporary folder.
  static func folder() throws -> String {
    let folder = FileManager.default.temporaryDirectory.appending(path: "disk-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    return folder
  }
}
