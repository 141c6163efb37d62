public import CacheCore

/// What every `MemoryStoring` with room for a few hundred bytes must do, as plain values for any test framework.
///
/// ```swift
/// @Test(arguments: MemoryContract.cases)
/// func myMemory(_ statement: MemoryContract.Case) throws {
///   try statement.run(on: MyMemory())   // a new, empty store for each
/// }
/// ```
public enum MemoryContract {
  /// One statement.
  public struct Case: Sendable, CustomStringConvertible {
    /// The statement, as a sentence.
    public let name: String
    let body: @Sendable (any MemoryStoring) throws -> Void

    public var description: String { name }

    /// Checks the statement on a new, empty store.
    ///
    /// - Throws: ``ContractViolation`` when the store breaks it, or the store's own error.
    public func run(on store: any MemoryStoring) throws { try body(store) }
  }

  private static let key = CacheKey(resource: "https://example.com/a", variant: "v", transform: "f")

  private static func entry(_ text: String, _ revision: Revision = .random()) -> MemoryEntry {
    MemoryEntry(text, cost: 10, revision: revision)
  }

  private static func expect(_ text: String?, of key: CacheKey, in store: any MemoryStoring, _ what: String) throws {
    try ContractViolation.expectEqual(store.entry(for: key)?.value(as: String.self), text, what)
  }

  /// Every statement.
  public static let cases: [Case] = [
    Case(name: "what was never stored is a miss") { store in try expect(nil, of: key, in: store, "an empty store's entry") },
    Case(name: "what is stored comes back, under its own resource, variant and form alone") { store in
      try ContractViolation.expect(store.insert(entry("a"), for: key), "an entry was refused")
      try expect("a", of: key, in: store, "the entry")
      for other in [
        key.with(transform: ""), CacheKey(resource: key.resource, transform: "f"), CacheKey(resource: "", variant: "v"),
      ] {
        try expect(nil, of: other, in: store, "another key's entry")
      }
    },
    Case(name: "an entry replaces the one before it") { store in
      store.insert(entry("old"), for: key)
      store.insert(entry("new"), for: key)
      try expect("new", of: key, in: store, "the entry")
    },
    Case(name: "an entry whose time to live has ended is a miss, and is not listed") { store in
      store.insert(MemoryEntry("a", cost: 10, revision: .random(), expiration: .at(.distantPast)), for: key)
      try expect(nil, of: key, in: store, "an expired entry")
      if let keys = try list(store) { try ContractViolation.expectEqual(keys, [], "the listed keys") }
    },
    Case(name: "what a change keeps, removes or replaces is kept, removed or replaced, and said so") { store in
      try ContractViolation.expect(!store.update(key) { _ in .keep }, "nothing was kept, and it was said to be a change")
      try expect(nil, of: key, in: store, "an entry that nobody stored")
      try ContractViolation.expect(store.update(key) { $0 == nil ? .replace(entry("a")) : .keep }, "a change was refused")
      try expect("a", of: key, in: store, "the entry that a change stored")
      var seen: String?
      store.update(key) { entry in
        seen = entry?.value(as: String.self)
        return .keep
      }
      try ContractViolation.expectEqual(seen, "a", "what a change was shown")
      try expect("a", of: key, in: store, "the entry that a change kept")
      store.update(key) { _ in .remove }
      try expect(nil, of: key, in: store, "the entry that a change removed")
    },
    Case(name: "an entry is removed by its revision, and to remove what is not there does nothing") { store in
      let revision = Revision.random()
      store.remove(key, ifRevision: nil)
      store.insert(entry("a", revision), for: key)
      store.remove(key, ifRevision: .random())
      try expect("a", of: key, in: store, "an entry of another revision")
      store.remove(key, ifRevision: revision)
      try expect(nil, of: key, in: store, "the removed entry")
    },
    Case(name: "a store that was emptied holds nothing, and keeps what comes after") { store in
      let keys = (0..<5).map { CacheKey(resource: "\($0)") }
      for key in keys { store.insert(entry("a"), for: key) }
      store.removeAll()
      for key in keys { try expect(nil, of: key, in: store, "an entry after the removal of all") }
      store.insert(entry("later"), for: key)
      try expect("later", of: key, in: store, "what was stored later")
    },
    Case(name: "the list of keys has what is there, and nothing else") { store in
      let keys = [key, key.with(transform: ""), CacheKey(resource: "a"), CacheKey(resource: "b")]
      for key in keys { store.insert(entry("a"), for: key) }
      store.insert(entry("again"), for: keys[2])
      store.remove(keys[3], ifRevision: nil)
      guard let listed = try list(store) else { return }
      try ContractViolation.expectEqual(Set(listed), Set(keys.dropLast()), "the listed keys")
      try ContractViolation.expectEqual(listed.count, 3, "the number of listed keys")
    },
  ]

  /// Nil: the store says that it can't. It may leave listing to the seam's default; one that lists has to be right.
  private static func list(_ store: any MemoryStoring) throws -> [CacheKey]? {
    do throws(CacheError) {
      return try store.keys()
    } catch {
      guard error.code == .unsupported else { throw error }
      return nil
    }
  }
}
