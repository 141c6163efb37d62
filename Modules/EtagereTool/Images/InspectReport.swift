#if Tool
import Etagere
import Foundation

/// What is told about one picture, in lines or in JSON.
struct InspectReport: Encodable {
  /// One entry of the store.
  struct Cached: Encodable {
    /// Absent for the original.
    var transform: String?
    /// Of an answer that depends on request fields (Vary): which one.
    var variant: String?
    var bytes: Int64
    var isFresh: Bool

    init(_ entry: ListedEntry, at now: Timestamp) {
      transform = entry.key.transform.isEmpty ? nil : entry.key.transform
      variant = entry.key.variant.isEmpty ? nil : entry.key.variant
      bytes = entry.metadata.bodyLength ?? 0
      isFresh = entry.metadata.freshness.isFresh(at: now)
    }
  }

  var target: String
  var bytes: Int?
  var image: ImageReport?
  var source: String?
  var status: Int?
  var etag: String?
  var lastModified: String?
  var cached: [Cached]?
  var error: LoadReport.Failure?

  init(target: String) { self.target = target }

  mutating func take(_ resource: Resource<Data>) {
    source = resource.source.rawValue
    status = resource.source == .revalidated ? 304 : resource.response.status.code
    etag = resource.response.headerFields[.eTag]
    lastModified = resource.response.headerFields[.lastModified]
  }

  /// For people: a name, and what is known.
  var lines: [String] {
    guard let bytes else { return [] }
    var rows = image?.lines ?? []
    rows.append(("length", Text.bytes(Int64(bytes))))
    if let source, let status { rows.append(("answer", "\(source), \(status)")) }
    if let etag { rows.append(("etag", etag)) }
    if let lastModified { rows.append(("modified", lastModified)) }
    for entry in cached ?? [] {
      let what = [entry.transform ?? "original", entry.variant.map { "variant \($0)" }].compactMap(\.self).joined(separator: ", ")
      rows.append(("cached", "\(Text.bytes(entry.bytes)), \(entry.isFresh ? "fresh" : "stale"), \(what)"))
    }
    return rows.map { "\(Text.left($0, 11))  \($1)" }
  }
}
#endif
