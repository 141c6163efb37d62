#if Tool
import Etagere
import Foundation
import HTTPTypes

/// A stored entry as a person knows it: URL, partition, variant, and the value that was made from the response. Keys and digests
/// are internal and not printed.
struct EntryDescription: Encodable {
  var url: String
  var partition: String?
  /// The request fields that select this response, if it has `Vary`.
  var variant: String?
  /// The image or other value that was made from the response, or `nil` for the response itself.
  var transform: String?
  var bytes: Int64
  var bodyBytes: Int64
  var status: Int
  var ageSeconds: Double
  var isFresh: Bool
  var etag: String?
  var lastModified: String?
  var storedAt: String?
  var usedAt: String?

  /// - Parameter store: The store that the first bytes of a transformed value are read from, or `nil` not to read them. Reading
  ///   counts as a use of the entry.
  init(_ entry: ListedEntry, readingFrom store: (any CacheStore)?, at now: Timestamp) async {
    let metadata = entry.metadata
    let fields = metadata.response.headerFields
    let parts = ResourceID.parts(of: entry.key.resource)
    url = ResourceID.readable(ResourceID.make(uri: parts.text))
    partition = parts.partition
    variant = Self.variant(metadata)
    transform = await Self.transform(entry, store)
    bodyBytes = metadata.bodyLength ?? 0
    bytes = entry.size ?? bodyBytes
    status = metadata.response.status.code
    ageSeconds = metadata.freshness.age(at: now) / .seconds(1)
    isFresh = metadata.freshness.isFresh(at: now)
    etag = fields.first(.eTag)?.value
    lastModified = fields[.lastModified]
    storedAt = entry.storedAt.map { HTTPDate($0).description }
    usedAt = entry.lastUsed.map { HTTPDate($0).description }
  }

  var state: String { isFresh ? "fresh" : "stale" }

  var age: String { Text.seconds(.seconds(ageSeconds)) }

  /// The URL, with everything that distinguishes this entry from the others of that URL.
  var name: String {
    let details = [partition.map { "partition \($0)" }, variant, transform].compactMap(\.self)
    return details.isEmpty ? url : "\(url)  (\(details.joined(separator: "; ")))"
  }

  private static func variant(_ metadata: StoredMetadata) -> String? {
    let stored = metadata.request.headerFields
    var names = metadata.response.headerFields[values: .vary].flatMap { $0.split(separator: ",") }
      .compactMap { HTTPField.Name($0.trimmingCharacters(in: .whitespaces)) }
    // A private cache selects by credentials even if Vary does not name them.
    if stored[.authorization] != nil, !names.contains(.authorization) { names.append(.authorization) }
    guard !names.isEmpty else { return nil }
    return names.map { name in
      guard let value = stored[name] else { return "without \(name.rawName)" }
      return "\(name.rawName): \(SecretFields.visible(value, of: name))"
    }.joined(separator: ", ")
  }

  private static func transform(_ entry: ListedEntry, _ store: (any CacheStore)?) async -> String? {
    guard !entry.key.transform.isEmpty else { return nil }
    let body = try? await store?.entry(for: entry.key, range: 0..<65_536)?.body
    let start = try? await body?.collect()
    return start.flatMap { ImageReport($0) }.map { "image \($0.brief)" } ?? "transformed"
  }
}
#endif
