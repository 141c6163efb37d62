#if Tool
import Etagere
import Foundation

/// The properties of one image, as lines or as JSON.
struct InspectReport: Encodable {
  /// One entry of the store.
  struct Cached: Encodable {
    /// The image that was made, or `nil` for the response itself.
    var transform: String?
    /// The request fields that select this response, if it has `Vary`.
    var variant: String?
    var bytes: Int64
    var isFresh: Bool

    init(_ entry: EntryDescription) {
      (transform, variant, bytes, isFresh) = (entry.transform, entry.variant, entry.bodyBytes, entry.isFresh)
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
    source = Text.kebabCase(resource.source.rawValue)
    status = resource.source == .revalidated ? 304 : resource.response.status.code
    etag = resource.response.headerFields.first(.eTag)?.value
    lastModified = resource.response.headerFields[.lastModified]
  }

  /// A line for each known property.
  var lines: [String] {
    guard let bytes else { return [] }
    var rows = image?.lines ?? []
    rows.append(("size", Text.bytes(Int64(bytes))))
    if let source, let status { rows.append(("response", "\(status), \(source)")) }
    if let etag { rows.append(("etag", etag)) }
    if let lastModified { rows.append(("modified", lastModified)) }
    for entry in cached ?? [] {
      let what = [entry.transform ?? "original", entry.variant].compactMap(\.self).joined(separator: ", ")
      rows.append(("cached", "\(Text.bytes(entry.bytes)), \(entry.isFresh ? "fresh" : "stale"), \(what)"))
    }
    return rows.map { "\(Text.left($0, 11))  \($1)" }
  }
}
#endif
