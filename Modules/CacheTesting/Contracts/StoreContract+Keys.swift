internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

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
