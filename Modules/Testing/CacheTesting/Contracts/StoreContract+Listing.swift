internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Statements about listing. Listing is optional, but a store that supports it must be correct.
extension StoreContract {
  static let listing: [Case] = [
    Case(name: "a store's usage counts the stored entries, and none after removing all") { store in
      guard let empty = try await store.usage() else { return }
      try ContractViolation.expectEqual(empty.entries, 0, "the number of entries in an empty store")
      let keys = ["one", "two"].map { CacheKey(resource: "https://example.com/counted/\($0)") }
      for (key, seed) in zip(keys, [1, 2] as [UInt64]) {
        try await store.store(bytes(1_000, seed: seed), for: key, metadata: metadata(key.resource))
      }
      // A composed store may count an entry once per component.
      guard let both = try await store.usage() else { throw ContractViolation("a store with entries reports no usage") }
      try ContractViolation.expect(
        both.entries >= 2 && both.bytes > empty.bytes, "the usage of two entries is \(both), that of none \(empty)")
      try await store.removeAll()
      try ContractViolation.expectEqual(try await store.usage(), empty, "the usage after removing all")
    },
    Case(name: "the list contains exactly the matching entries, with every variant and transform") { store in
      let resources = (0..<20).map { "https://example.com/listed/\($0)" }
      for resource in resources {
        try await store.store(bytes(100), for: CacheKey(resource: resource), metadata: metadata(resource))
      }
      let variant = CacheKey(resource: resources[0], variant: "accept=png")
      let transform = CacheKey(resource: resources[0], transform: "thumbnail")
      for key in [variant, transform] { try await store.store(bytes(100), for: key, metadata: metadata(key.resource)) }
      guard let all = try await list(store, { _, _ in true }) else { return }
      try ContractViolation.expectEqual(
        Set(all.map(\.key)), Set(resources.map { CacheKey(resource: $0) } + [variant, transform]), "the listed keys")
      try ContractViolation.expectEqual(all.count, 22, "the number of listed entries")
      let some = try await list(store) { key, _ in key.resource == resources[0] }
      try ContractViolation.expectEqual(
        Set((some ?? []).map(\.key)), [CacheKey(resource: resources[0]), variant, transform], "the requested keys")
    },
    Case(name: "the keys by tag are exactly those of the entries with that tag") { store in
      guard let field = HTTPField.Name("Cache-Tag") else { throw ContractViolation("the field is invalid") }
      let resource = "https://example.com/tagged"
      let keys = [
        CacheKey(resource: resource), CacheKey(resource: resource, transform: "t"), CacheKey(resource: resource + "/2"),
      ]
      for (key, tags) in zip(keys, ["news, sport", "news", "newspaper"]) {
        var metadata = metadata(key.resource)
        metadata.response.headerFields[field] = tags
        try await store.store(bytes(100), for: key, metadata: metadata)
      }
      var ended = metadata(resource + "/3")
      ended.response.headerFields[field] = "news"
      ended.expiration = .at(.distantPast)
      try await store.store(bytes(100), for: CacheKey(resource: resource + "/3"), metadata: ended)
      for (tag, tagged) in [("news", [keys[0], keys[1]]), ("sport", [keys[0]]), ("new", [])] {
        guard let listed = try await list({ () throws(CacheError) in try await store.keys(tagged: tag) }) else { return }
        try ContractViolation.expectEqual(listed, Set(tagged), "the keys with the tag \(tag)")
      }
    },
    Case(name: "the list contains current metadata, and the filter receives them") { store in
      let (key, other) = (CacheKey(resource: "https://example.com/told"), CacheKey(resource: "https://example.com/else"))
      var updated = metadata(key.resource)
      try await store.store(bytes(100), for: key, metadata: updated)
      try await store.store(bytes(100), for: other, metadata: metadata(other.resource))
      updated.bodyLength = 100
      updated.response.headerFields[.server] = "freshened"
      _ = try await store.updateMetadata(of: key, to: updated, ifRevision: updated.revision)
      guard let listed = try await list(store, { $1.response.headerFields[.server] == "freshened" }) else { return }
      try ContractViolation.expectEqual(listed.map(\.key), [key], "the listed keys")
      try ContractViolation.expectEqual(listed.first?.metadata.response, updated.response, "the listed head")
      try ContractViolation.expectEqual(listed.first?.metadata.revision, updated.revision, "the listed revision")
    },
    Case(name: "transformed values are listed for every variant and are not listed as variants") { store in
      let resource = "https://example.com/forms"
      let plain = metadata(resource)
      let transforms = [
        CacheKey(resource: resource, transform: "small"), CacheKey(resource: resource, transform: "large"),
        CacheKey(resource: resource, variant: "accept=png", transform: "small"),
      ]
      for key in transforms { try await store.store(bytes(100), for: key, metadata: plain) }
      try await store.store(
        bytes(100), for: CacheKey(resource: resource + "/other", transform: "small"), metadata: metadata(resource + "/other"))
      try ContractViolation.expectEqual(
        try await store.variants(of: resource).map(\.key), [], "the variants of a resource with transforms only")
      try await store.store(bytes(200), for: CacheKey(resource: resource), metadata: plain)
      try ContractViolation.expectEqual(
        try await store.variants(of: resource).map(\.key), [CacheKey(resource: resource)], "the variants")
      guard try await list(store, { _, _ in true }) != nil else { return }
      let listed = try await store.transforms(of: resource)
      try ContractViolation.expectEqual(Set(listed.map(\.key)), Set(transforms), "the listed transforms")
      try ContractViolation.expectEqual(Set(listed.map(\.metadata.revision)), [plain.revision], "the listed revisions")
      for key in transforms { try await store.remove(key, ifRevision: plain.revision) }
      try ContractViolation.expectEqual(try await store.transforms(of: resource).map(\.key), [], "the removed transforms")
    },
    Case(name: "uncommitted, removed, replaced and expired entries are not listed") { store in
      let keys = (0..<4).map { CacheKey(resource: "https://example.com/gone/\($0)") }
      let pending = try await store.makeWriter(for: keys[0], metadata: metadata(keys[0].resource))
      try await store.store(bytes(100), for: keys[1], metadata: metadata(keys[1].resource))
      try await store.remove(keys[1], ifRevision: nil)
      var ended = metadata(keys[2].resource)
      ended.expiration = .at(.distantPast)
      try await store.store(bytes(100), for: keys[2], metadata: ended)
      let kept = metadata(keys[3].resource)
      for metadata in [metadata(keys[3].resource), kept] { try await store.store(bytes(100), for: keys[3], metadata: metadata) }
      let listed = try await list(store) { _, _ in true }
      pending.abort()
      guard let listed else { return }
      try ContractViolation.expectEqual(listed.map(\.key), [keys[3]], "the listed keys")
      try ContractViolation.expectEqual(listed.first?.metadata.revision, kept.revision, "the listed revision")
    },
  ]

  /// Returns `nil` if the store does not support listing.
  private static func list(
    _ store: any CacheStore, _ isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws -> [ListedEntry]? {
    try await list { () throws(CacheError) in try await store.entries(where: isWanted) }
  }

  private static func list<Listed>(_ list: () async throws(CacheError) -> Listed) async throws -> Listed? {
    do throws(CacheError) {
      return try await list()
    } catch {
      guard error.code == .unsupported else { throw error }
      return nil
    }
  }
}
