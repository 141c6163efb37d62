internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

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
