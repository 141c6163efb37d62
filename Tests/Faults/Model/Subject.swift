import CacheCore

/// A store beside the model: what is asked of it is asked of one of its faces, in turn.
protocol Subject {
  /// How it is told apart in what is printed.
  var name: String { get }
  /// Objects that share what they hold.
  var stores: [any CacheStore] { get }
  /// Ends all that is under way, lets go of everything, and opens what it left behind.
  mutating func reopen() async throws
  /// Returns when nothing is under way any more.
  func settle() async throws
  /// Entries that the store itself has removed so far because it was full, or was told to hold less.
  var evictions: Int { get }
  /// Removes the least used until no more than so many bytes are left; nil: it can't.
  ///
  /// - Returns: how many were removed.
  func trim(to size: Int64) async throws -> Int?
  /// Removes what is expired.
  func removeExpired() async throws
  /// How many entries are counted; nil: it can't tell.
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
