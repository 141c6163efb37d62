public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The contract of every `CacheStore`, as plain values for any test framework.
///
/// ```swift
/// @Test(arguments: StoreContract.cases)
/// func myStore(_ statement: StoreContract.Case) async throws {
///   try await statement.run(on: MyStore())   // a new, empty store for each
/// }
/// ```
///
/// If the store has a limit, run the cases also on a store with a limit of 5 MiB, which its `usage()` states.
public enum StoreContract {
  /// A statement of the contract.
  public struct Case: Sendable, CustomStringConvertible {
    /// The statement as a sentence.
    public let name: String
    let body: @Sendable (any CacheStore) async throws -> Void

    public var description: String { name }

    /// Checks the statement on a new, empty store.
    ///
    /// - Throws: ``ContractViolation`` if the store violates the statement, otherwise the store's error.
    public func run(on store: any CacheStore) async throws { try await body(store) }
  }

  /// All statements of the contract.
  public static let cases: [Case] = reading + keys + expiring + writing + conditional + listing + batches + evicting
}

extension StoreContract {
  /// Returns the metadata of a current 200 response.
  static func metadata(_ resource: String, revision: Revision = .random(), etag: String = "\"1\"") -> StoredMetadata {
    let now = SystemClock().now
    return StoredMetadata(
      request: HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/"),
      response: HTTPResponse(status: .ok, headerFields: [.eTag: etag, .contentType: "text/plain"]), requestTime: now,
      responseTime: now, revision: revision, freshness: Freshness(generatedAt: now, freshUntil: now + .seconds(86_400)))
  }

  /// Returns pseudorandom bytes, so that neither compression nor repetition hides an error.
  static func bytes(_ count: Int, seed: UInt64 = 1) -> Data {
    // Eight bytes at a time, because the contracts move many megabytes, also in debug builds and under sanitizers.
    var state = seed
    var words: [UInt64] = []
    words.reserveCapacity(count / 8 + 1)
    for _ in 0...(count / 8) {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      words.append((state ^ (state >> 29)).littleEndian)
    }
    return words.withUnsafeBytes { Data($0.prefix(count)) }
  }

  static func body(of key: CacheKey, in store: any CacheStore, range: Range<Int64>? = nil) async throws -> Data? {
    try await store.entry(for: key, range: range)?.body.collect()
  }

  private static let reading: [Case] = [
    Case(name: "a key without an entry is a miss, not an error") { store in
      let key = CacheKey(resource: "https://example.com/nothing")
      try ContractViolation.expect(try await store.entry(for: key, range: nil) == nil, "an empty store opened an entry")
      try ContractViolation.expectEqual(try await store.variants(of: key.resource).count, 0, "variants in an empty store")
    },
    Case(name: "a lookup without waiting returns the same entries as one that waits, and no removed entries") { store in
      for (resource, size) in [("https://example.com/at-hand", 20_000), ("https://example.com/large", 300_000)] {
        let key = CacheKey(resource: resource)
        try await store.store(bytes(size), for: key, metadata: metadata(resource))
        // Some stores know their entries only after the first lookup.
        let found = try await store.variants(of: resource)
        if let immediate = store.variantsWithoutWaiting(of: resource) {
          try ContractViolation.expectEqual(Set(immediate.map(\.key)), Set(found.map(\.key)), "the entries without waiting")
          for entry in immediate {
            try ContractViolation.expect(entry.body.data == bytes(size), "\(size) stored bytes differ without waiting")
          }
        }
        try await store.remove(key, ifRevision: nil)
        let left = store.variantsWithoutWaiting(of: resource) ?? []
        try ContractViolation.expectEqual(left.count, 0, "removed entries without waiting")
      }
    },
    Case(name: "bodies of any size are returned unchanged, with their metadata") { store in
      for size in [0, 1, 1_000, 65_535, 65_536, 65_537, 300_000] {
        let key = CacheKey(resource: "https://example.com/\(size)")
        let metadata = metadata(key.resource)
        let data = bytes(size, seed: UInt64(size + 1))
        try await store.store(data, for: key, metadata: metadata)
        guard let entry = try await store.entry(for: key, range: nil) else {
          throw ContractViolation("\(size) bytes were not found")
        }
        try ContractViolation.expect(try await entry.body.collect() == data, "\(size) stored bytes differ")
        try ContractViolation.expectEqual(entry.metadata.bodyLength, Int64(size), "the stored length")
        try ContractViolation.expectEqual(entry.metadata.response, metadata.response, "the stored head")
        try ContractViolation.expectEqual(entry.metadata.freshness, metadata.freshness, "the stored freshness")
        try ContractViolation.expectEqual(entry.metadata.revision, metadata.revision, "the stored revision")
      }
    },
    Case(name: "a range returns those bytes, clamped to the body's length") { store in
      let key = CacheKey(resource: "https://example.com/range")
      let data = bytes(200_000)
      try await store.store(data, for: key, metadata: metadata(key.resource))
      for range in [0..<1, 65_535..<65_537, 100_000..<200_000, 199_999..<300_000, 250_000..<260_000] as [Range<Int64>] {
        let clamped = min(Int(range.lowerBound), data.count)..<min(Int(range.upperBound), data.count)
        try ContractViolation.expect(
          try await body(of: key, in: store, range: range) == data[clamped], "the bytes \(range) differ")
      }
    },
    Case(name: "the variants of a resource are listed without those of other resources") { store in
      let resource = "https://example.com/varying"
      for variant in ["", "accept=png", "accept=webp"] {
        try await store.store(
          Data(variant.utf8), for: CacheKey(resource: resource, variant: variant),
          metadata: metadata(resource, etag: "\"\(variant)\""))
      }
      try await store.store(Data(), for: CacheKey(resource: resource + "/other"), metadata: metadata(resource))
      let variants = try await store.variants(of: resource)
      try ContractViolation.expectEqual(
        variants.map(\.key.variant).sorted(), ["", "accept=png", "accept=webp"], "the listed variants")
      for entry in variants {
        let variant = entry.key.variant
        try ContractViolation.expectEqual(entry.metadata.response.headerFields[.eTag], "\"\(variant)\"", "a variant's metadata")
        try ContractViolation.expect(try await entry.body.collect() == Data(variant.utf8), "a variant has wrong bytes")
      }
    },
  ]

  private static let expiring: [Case] = [
    Case(name: "an expired entry is a miss in every call") { store in
      let ended: [Expiration] = [.after(.zero), .after(.seconds(-1)), .at(.distantPast)]
      for (index, expiration) in ended.enumerated() {
        let key = CacheKey(resource: "https://example.com/ended/\(index)")
        var metadata = metadata(key.resource)
        metadata.expiration = expiration
        try await store.store(bytes(100), for: key, metadata: metadata)
        try ContractViolation.expect(try await store.entry(for: key, range: nil) == nil, "an entry with \(expiration) was opened")
        try ContractViolation.expectEqual(
          try await store.variants(of: key.resource).count, 0, "listed variants with \(expiration)")
      }
      let key = CacheKey(resource: "https://example.com/lasting")
      var metadata = metadata(key.resource)
      metadata.expiration = .after(.seconds(3_600))
      try await store.store(bytes(100), for: key, metadata: metadata)
      try ContractViolation.expect(try await store.entry(for: key, range: nil) != nil, "an unexpired entry is missing")
    }
  ]

  private static let writing: [Case] = [
    Case(name: "bytes that a writer takes without waiting and others are stored in their order") { store in
      let key = CacheKey(resource: "https://example.com/chunks")
      let data = bytes(400_000)
      let writer = try await store.makeWriter(for: key, metadata: metadata(key.resource))
      var offset = 0
      for size in [0, 1, 30_000, 30_000, 10_000, 100_000, 0, 60_000, 20_000, 149_000, 999] {
        let chunk = Data(data[offset..<offset + size])
        if try !writer.writeWithoutWaiting(chunk) { try await writer.write(chunk) }
        offset += size
      }
      _ = try await writer.commit(trailers: nil)
      try ContractViolation.expect(try await body(of: key, in: store) == data, "the stored bytes differ")
    },
    Case(name: "an entry is not visible before its commit") { store in
      let key = CacheKey(resource: "https://example.com/pending")
      let writer = try await store.makeWriter(for: key, metadata: metadata(key.resource))
      try await writer.write(bytes(1_000))
      try ContractViolation.expect(try await store.entry(for: key, range: nil) == nil, "an uncommitted entry was visible")
      _ = try await writer.commit(trailers: nil)
      try ContractViolation.expect(try await body(of: key, in: store) == bytes(1_000), "a committed entry is missing")
    },
    Case(name: "an aborted or released writer does not change the stored entry") { store in
      let key = CacheKey(resource: "https://example.com/aborted")
      try await store.store(Data("old".utf8), for: key, metadata: metadata(key.resource))
      let writer = try await store.makeWriter(for: key, metadata: metadata(key.resource))
      try await writer.write(Data("new".utf8))
      writer.abort()
      try await store.makeWriter(for: key, metadata: metadata(key.resource)).write(Data("newer".utf8))
      try ContractViolation.expect(try await body(of: key, in: store) == Data("old".utf8), "the old entry is missing")
    },
    Case(name: "the part of a body is stored with its own metadata, or leaves no entry") { store in
      for count in [1_000, 300_000] {
        let key = CacheKey(resource: "https://example.com/part-\(count)")
        let whole = metadata(key.resource)
        let writer = try await store.makeWriter(for: key, metadata: whole)
        try await writer.write(bytes(count))
        var part = whole
        part.response.status = .partialContent
        part.response.headerFields[.contentRange] = "bytes 0-\(count - 1)/\(2 * count)"
        let stored = try await writer.commitPart(as: part)
        let entry = try await store.entry(for: key, range: nil)
        try ContractViolation.expect((stored == nil) == (entry == nil), "the result does not tell whether there is an entry")
        guard let entry else { continue }
        try ContractViolation.expectEqual(stored?.bodyLength, Int64(count), "the length of the part")
        try ContractViolation.expectEqual(entry.metadata.response, part.response, "the head of the part")
        try ContractViolation.expectEqual(entry.metadata.revision, whole.revision, "the revision of the part")
        try ContractViolation.expect(try await entry.body.collect() == bytes(count), "the bytes of the part differ")
      }
    },
    Case(name: "an entry replaces the previous entry completely") { store in
      let key = CacheKey(resource: "https://example.com/replaced")
      try await store.store(bytes(100_000, seed: 1), for: key, metadata: metadata(key.resource, etag: "\"1\""))
      try await store.store(bytes(10, seed: 2), for: key, metadata: metadata(key.resource, etag: "\"2\""))
      let entry = try await store.entry(for: key, range: nil)
      try ContractViolation.expectEqual(entry?.metadata.response.headerFields[.eTag], "\"2\"", "the entity tag")
      try ContractViolation.expect(try await entry?.body.collect() == bytes(10, seed: 2), "the bytes are not the new ones")
    },
    Case(name: "an open entry returns its old bytes after it is replaced or removed") { store in
      let key = CacheKey(resource: "https://example.com/held")
      let old = bytes(400_000, seed: 1)
      try await store.store(old, for: key, metadata: metadata(key.resource))
      let held = try await store.entry(for: key, range: nil)
      let secondHeld = try await store.entry(for: key, range: nil)
      try await store.store(bytes(400_000, seed: 2), for: key, metadata: metadata(key.resource))
      try ContractViolation.expect(try await held?.body.collect() == old, "the replaced bytes changed during reading")
      try await store.remove(key, ifRevision: nil)
      try ContractViolation.expect(try await secondHeld?.body.collect() == old, "the removed bytes changed during reading")
    },
    Case(name: "concurrent writers each store their entry") { store in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for index in 0..<50 {
          group.addTask {
            let key = CacheKey(resource: "https://example.com/many/\(index)")
            try await store.store(bytes(5_000, seed: UInt64(index)), for: key, metadata: metadata(key.resource))
          }
        }
        try await group.waitForAll()
      }
      for index in 0..<50 {
        let key = CacheKey(resource: "https://example.com/many/\(index)")
        try ContractViolation.expect(
          try await body(of: key, in: store) == bytes(5_000, seed: UInt64(index)), "entry \(index) has wrong bytes")
      }
    },
  ]

  private static let conditional: [Case] = [
    Case(name: "updating the metadata does not change the bytes") { store in
      let key = CacheKey(resource: "https://example.com/fresh")
      var metadata = metadata(key.resource)
      try await store.store(bytes(70_000), for: key, metadata: metadata)
      for round in 1...40 {
        metadata.bodyLength = 70_000
        metadata.response.headerFields[.init("X-Round") ?? .eTag] = "\(round)"
        metadata.freshness.freshUntil = metadata.freshness.freshUntil + .seconds(60)
        try ContractViolation.expect(
          try await store.updateMetadata(of: key, to: metadata, ifRevision: metadata.revision), "update \(round) was refused")
      }
      let entry = try await store.entry(for: key, range: nil)
      try ContractViolation.expectEqual(entry?.metadata.response, metadata.response, "the updated head")
      try ContractViolation.expectEqual(entry?.metadata.freshness, metadata.freshness, "the updated freshness")
      try ContractViolation.expect(try await entry?.body.collect() == bytes(70_000), "the update changed the bytes")
    },
    Case(name: "updating another revision or a missing entry has no effect and reports it") { store in
      let key = CacheKey(resource: "https://example.com/moved")
      let metadata = metadata(key.resource)
      try ContractViolation.expect(
        try await !store.updateMetadata(of: key, to: metadata, ifRevision: metadata.revision), "a missing entry was updated")
      try await store.store(Data("new".utf8), for: key, metadata: metadata)
      let other = StoreContract.metadata(key.resource, etag: "\"other\"")
      try ContractViolation.expect(
        try await !store.updateMetadata(of: key, to: other, ifRevision: other.revision), "another revision was updated")
      try ContractViolation.expectEqual(
        try await store.entry(for: key, range: nil)?.metadata.response.headerFields[.eTag], "\"1\"", "the entity tag")
    },
    Case(name: "an entry is removed by its revision, and removing a missing entry is not an error") { store in
      let key = CacheKey(resource: "https://example.com/removed")
      let metadata = metadata(key.resource)
      try await store.remove(key, ifRevision: nil)
      try await store.store(Data("kept".utf8), for: key, metadata: metadata)
      try await store.remove(key, ifRevision: .random())
      try ContractViolation.expect(try await store.entry(for: key, range: nil) != nil, "another revision was removed")
      try await store.remove(key, ifRevision: metadata.revision)
      try ContractViolation.expect(try await store.entry(for: key, range: nil) == nil, "the entry was not removed")
    },
    Case(name: "removing everything leaves no entries and does not affect later ones") { store in
      let keys = (0..<10).map { CacheKey(resource: "https://example.com/all/\($0)", variant: $0.isMultiple(of: 2) ? "" : "a=b") }
      for key in keys { try await store.store(bytes(100), for: key, metadata: metadata(key.resource)) }
      try await store.removeAll()
      for key in keys {
        try ContractViolation.expect(try await store.entry(for: key, range: nil) == nil, "\(key) survived")
        try ContractViolation.expectEqual(try await store.variants(of: key.resource).count, 0, "listed variants")
      }
      try await store.store(Data("later".utf8), for: keys[0], metadata: metadata(keys[0].resource))
      try ContractViolation.expect(try await body(of: keys[0], in: store) == Data("later".utf8), "a later entry is missing")
    },
  ]
}

extension StoreContract {
  static let evicting: [Case] = [
    Case(name: "an entry stays stored after its own commit, whatever the store evicts for it") { store in
      // The entries exceed a limit of up to 8 MiB several times.
      let limit = try await store.usage()?.limit ?? 0
      let size = (1...8 << 20).contains(limit) ? max(1, Int(limit / 8)) : 10_000
      for number in 0..<40 {
        // Every fourth entry replaces an earlier one, which may be gone.
        let key = CacheKey(
          resource: "https://example.com/recent/\(number.isMultiple(of: 4) ? number / 8 : number)",
          variant: number.isMultiple(of: 3) ? "a=b" : "")
        let data = bytes(size + number % 4 * size / 2, seed: UInt64(number))
        try await store.store(data, for: key, metadata: metadata(key.resource))
        try ContractViolation.expect(try await body(of: key, in: store) == data, "entry \(number) is missing after its commit")
        // A store that evicts in the background has done so when it counts its entries.
        _ = try await store.usage()
        try ContractViolation.expect(try await body(of: key, in: store) == data, "the store evicted entry \(number) for itself")
      }
    }
  ]
}

extension StoreContract {
  /// Names that a store must distinguish. They must not reach a path, a SQL statement or a column unchanged.
  package static let oddNames = [
    "", " ", "\n", "\0", "a\0b", ".", "..", "../../../../tmp/x", "/", "/etc/passwd", "~", "a/b", "a/b?c=d#e", "%2e%2e%2f", "CON",
    "\\", "'; DROP TABLE entry; --", "\u{1F600}", "e\u{301}",
    String(decoding: [0xFF, 0xC3, 0x28, 0x00, 0xED, 0xA0, 0x80] as [UInt8], as: UTF8.self),
    String(repeating: "k", count: 1_000_000),
  ]

  static let keys: [Case] = [
    Case(name: "a key can have any characters and any length") { store in
      var keys: [CacheKey] = []
      for name in oddNames {
        keys += [
          CacheKey(resource: name), CacheKey(resource: "r", variant: name),
          CacheKey(resource: "r", variant: "v", transform: name),
        ]
      }
      for (index, key) in keys.enumerated() {
        try await store.store(bytes(100, seed: UInt64(index)), for: key, metadata: metadata(key.resource))
      }
      for (index, key) in keys.enumerated() {
        guard let entry = try await store.entry(for: key, range: nil) else { throw ContractViolation("key \(index) is a miss") }
        try ContractViolation.expect(entry.key == key, "key \(index) is returned as another key")
        try ContractViolation.expect(
          try await entry.body.collect() == bytes(100, seed: UInt64(index)), "key \(index) has wrong bytes")
      }
    },
    Case(name: "keys with the same characters in different parts differ") { store in
      let key = CacheKey(resource: "r", variant: "ab", transform: "c")
      try await store.store(bytes(100), for: key, metadata: metadata(key.resource))
      for (variant, transform) in [("a", "bc"), ("abc", ""), ("", "abc"), ("ab", "")] {
        let other = CacheKey(resource: "r", variant: variant, transform: transform)
        try ContractViolation.expect(
          try await store.entry(for: other, range: nil) == nil, "\(variant)|\(transform) finds the entry of ab|c")
      }
      let other = CacheKey(resource: "rab", variant: "", transform: "c")
      try ContractViolation.expect(try await store.entry(for: other, range: nil) == nil, "rab||c finds the entry of r|ab|c")
    },
  ]
}

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
