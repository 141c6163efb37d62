import CacheCore

/// A store that is compared with the model. Each operation uses one of its objects.
protocol Subject {
  /// The name in the output.
  var name: String { get }
  /// The objects that share the same entries.
  var stores: [any CacheStore] { get }
  /// Waits for all work, closes the stores, and opens them again.
  mutating func reopen() async throws
  /// Waits until no work is in progress.
  func settle() async throws
  /// The number of entries that the store has evicted because of a limit or a trim.
  var evictions: Int { get }
  /// Removes the least used entries until their total size is at most `size` bytes. Returns `nil` if the store does not support
  /// it.
  ///
  /// - Returns: The number of removed entries.
  func trim(to size: Int64) async throws -> Int?
  /// Removes the expired entries.
  func removeExpired() async throws
  /// Returns the number of counted entries, or `nil` if the store does not count them.
  func count() async throws -> Int?
  func close() async throws
}

extension Subject {
  func settle() async throws {}
  var evictions: Int { 0 }
  func trim(to size: Int64) async throws -> Int? { nil }
  func removeExpired() async throws {}
  func count() async throws -> Int? { nil }
}
