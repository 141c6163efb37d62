internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension StoreContract {
  static let batches: [Case] = [
    Case(name: "a batch read returns the same entries as single reads") { store in
      let resource = "https://example.com/batch"
      var stored: [CacheKey: Int] = [:]
      for size in [0, 1, 5_000, 70_000, 200_000] { stored[CacheKey(resource: "\(resource)/\(size)")] = size }
      stored[CacheKey(resource: resource, variant: "a=b")] = 10
      stored[CacheKey(resource: resource, transform: "thumbnail")] = 20
      for number in 0..<60 { stored[CacheKey(resource: "\(resource)/many/\(number)")] = 100 + number }
      for (key, size) in stored {
        try await store.store(bytes(size, seed: UInt64(size + 1)), for: key, metadata: metadata(key.resource))
      }
      let ended = CacheKey(resource: "\(resource)/ended")
      var past = metadata(ended.resource)
      past.expiration = .at(.distantPast)
      try await store.store(bytes(100), for: ended, metadata: past)
      let absent = [CacheKey(resource: resource), CacheKey(resource: "\(resource)/0", variant: "a=b"), ended]
      let requested = Array(stored.keys)
      let found = try await store.values(for: requested + absent + requested.prefix(3))
      try ContractViolation.expectEqual(Set(found.keys), Set(requested), "the found keys")
      for (key, entry) in found {
        try ContractViolation.expectEqual(entry.key, key, "an entry's key")
        try ContractViolation.expectEqual(entry.metadata.bodyLength, stored[key].map { Int64($0) }, "an entry's length")
        try ContractViolation.expect(
          try await entry.body.collect() == bytes(stored[key] ?? 0, seed: UInt64((stored[key] ?? 0) + 1)),
          "\(key) has wrong bytes")
      }
      try ContractViolation.expectEqual(try await store.values(for: []).count, 0, "entries for no keys")
    },
    Case(name: "a batch removal removes exactly the named entries, in any revision") { store in
      let entries = try await manyEntries(in: store)
      let removed = Array(entries.prefix(40))
      try await store.remove(removed + removed.prefix(3) + [CacheKey(resource: "https://example.com/absent")])
      for key in entries {
        try ContractViolation.expectEqual(
          try await store.entry(for: key) != nil, !removed.contains(key), "the existence of \(key)")
      }
      try await store.remove([])
    },
    Case(name: "a batch marks exactly the named entries stale, in any revision") { store in
      let entries = try await manyEntries(in: store)
      let marked = entries.prefix(40)
      let now = SystemClock().now
      try await store.markStale(Array(marked) + [CacheKey(resource: "https://example.com/absent")], at: now)
      for key in entries {
        guard let entry = try await store.entry(for: key) else { throw ContractViolation("\(key) is gone") }
        try ContractViolation.expectEqual(
          entry.metadata.freshness.isFresh(at: now), !marked.contains(key), "the freshness of \(key)")
        try ContractViolation.expect(try await entry.body.collect() == bytes(100), "\(key) has wrong bytes")
      }
    },
  ]

  /// Stores entries of several resources, also with variants and transforms.
  private static func manyEntries(in store: any CacheStore) async throws -> [CacheKey] {
    let keys = (0..<60).flatMap { number in
      let resource = "https://example.com/many/\(number)"
      return [CacheKey(resource: resource, variant: "a=b"), CacheKey(resource: resource, transform: "thumbnail")]
    }
    for key in keys { try await store.store(bytes(100), for: key, metadata: metadata(key.resource)) }
    return keys
  }
}
