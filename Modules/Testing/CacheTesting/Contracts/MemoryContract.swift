public import CacheCore

/// The contract of every `MemoryStoring` with space for a few hundred bytes, as plain values for any test framework.
///
/// ```swift
/// @Test(arguments: MemoryContract.cases)
/// func myMemory(_ statement: MemoryContract.Case) throws {
///   try statement.run(on: MyMemory())   // a new, empty store for each
/// }
/// ```
public enum MemoryContract {
  /// A statement of the contract.
  public struct Case: Sendable, CustomStringConvertible {
    /// The statement as a sentence.
    public let name: String
    let body: @Sendable (any MemoryStoring) throws -> Void

    public var description: String { name }

    /// Checks the statement on a new, empty store.
    ///
    /// - Throws: ``ContractViolation`` if the store violates the statement, otherwise the store's error.
    public func run(on store: any MemoryStoring) throws { try body(store) }
  }

  private static let key = CacheKey(resource: "https://example.com/a", variant: "v", transform: "f")

  private static func entry(_ text: String, _ revision: Revision = .random()) -> MemoryEntry {
    MemoryEntry(text, cost: 10, revision: revision)
  }

  private static func expect(_ text: String?, of key: CacheKey, in store: any MemoryStoring, _ what: String) throws {
    try ContractViolation.expectEqual(store.entry(for: key)?.value(as: String.self), text, what)
  }

  /// All statements of the contract.
  public static let cases: [Case] = [
    Case(name: "a key without an entry is a miss") { store in try expect(nil, of: key, in: store, "an empty store's entry") },
    Case(name: "an entry is found only under its resource, variant and transform") { store in
      try ContractViolation.expect(store.insert(entry("a"), for: key), "an entry was refused")
      try expect("a", of: key, in: store, "the entry")
      for other in [
        key.with(transform: ""), CacheKey(resource: key.resource, transform: "f"), CacheKey(resource: "", variant: "v"),
      ] {
        try expect(nil, of: other, in: store, "another key's entry")
      }
    },
    Case(name: "an entry replaces the previous entry") { store in
      store.insert(entry("old"), for: key)
      store.insert(entry("new"), for: key)
      try expect("new", of: key, in: store, "the entry")
    },
    Case(name: "an expired entry is a miss and is not listed") { store in
      store.insert(MemoryEntry("a", cost: 10, revision: .random(), expiration: .at(.distantPast)), for: key)
      try expect(nil, of: key, in: store, "an expired entry")
      if let keys = try list(store) { try ContractViolation.expectEqual(keys, [], "the listed keys") }
    },
    Case(name: "an update keeps, removes or replaces the entry and reports it") { store in
      try ContractViolation.expect(!store.update(key) { _ in .keep }, "an update that keeps a missing entry reported a change")
      try expect(nil, of: key, in: store, "a missing entry")
      try ContractViolation.expect(store.update(key) { $0 == nil ? .replace(entry("a")) : .keep }, "an update was refused")
      try expect("a", of: key, in: store, "the entry that an update stored")
      var seen: String?
      store.update(key) { entry in
        seen = entry?.value(as: String.self)
        return .keep
      }
      try ContractViolation.expectEqual(seen, "a", "the entry passed to an update")
      try expect("a", of: key, in: store, "the entry that an update kept")
      store.update(key) { _ in .remove }
      try expect(nil, of: key, in: store, "the entry that an update removed")
    },
    Case(name: "an entry is removed by its revision, and removing a missing entry has no effect") { store in
      let revision = Revision.random()
      store.remove(key, ifRevision: nil)
      store.insert(entry("a", revision), for: key)
      store.remove(key, ifRevision: .random())
      try expect("a", of: key, in: store, "an entry of another revision")
      store.remove(key, ifRevision: revision)
      try expect(nil, of: key, in: store, "the removed entry")
    },
    Case(name: "an entry that was just inserted is stored, whatever the store evicts for it") { store in
      for number in 0..<500 {
        let key = CacheKey(resource: "\(number.isMultiple(of: 4) ? number / 8 : number)")
        try ContractViolation.expect(store.insert(entry("\(number)"), for: key), "entry \(number) was refused")
        try expect("\(number)", of: key, in: store, "entry \(number) after its insertion")
      }
    },
    Case(name: "an emptied store has no entries and stores later ones") { store in
      let keys = (0..<5).map { CacheKey(resource: "\($0)") }
      for key in keys { store.insert(entry("a"), for: key) }
      store.removeAll()
      for key in keys { try expect(nil, of: key, in: store, "an entry after removing all") }
      store.insert(entry("later"), for: key)
      try expect("later", of: key, in: store, "the later entry")
    },
    Case(name: "the list of keys contains exactly the stored entries") { store in
      let keys = [key, key.with(transform: ""), CacheKey(resource: "a"), CacheKey(resource: "b")]
      for key in keys { store.insert(entry("a"), for: key) }
      store.insert(entry("again"), for: keys[2])
      store.remove(keys[3], ifRevision: nil)
      guard let listed = try list(store) else { return }
      try ContractViolation.expectEqual(Set(listed), Set(keys.dropLast()), "the listed keys")
      try ContractViolation.expectEqual(listed.count, 3, "the number of listed keys")
    },
  ]

  /// Returns `nil` if the store does not support listing, which is optional.
  private static func list(_ store: any MemoryStoring) throws -> [CacheKey]? {
    do throws(CacheError) {
      return try store.keys()
    } catch {
      guard error.code == .unsupported else { throw error }
      return nil
    }
  }
}
