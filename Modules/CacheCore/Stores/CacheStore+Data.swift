internal import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Storage of bytes under names that the caller chooses, without a resource manager.
///
/// The bytes share the store's size limit with cached responses and may be evicted. `removeAll()` removes them, and so do
/// `clear()` and `purge(.everything)` of a `ResourceManager` that uses the store.
extension CacheStore {
  /// Stores bytes under a name and replaces its previous bytes.
  ///
  /// ```swift
  /// try await cache.store(avatar, for: "avatar-42", expiration: .after(.seconds(3_600)))
  /// let avatar = try await cache.data(for: "avatar-42")
  /// ```
  ///
  /// - Parameters:
  ///   - data: The bytes.
  ///   - name: Any text. Names do not collide with the URLs and keys of responses.
  ///   - expiration: The time to live, or `nil` for the store's default.
  ///   - now: The start of the time to live. Pass `clock.now` for a store with a clock of its own.
  public func store(
    _ data: Data, for name: String, expiration: Expiration? = nil, now: Timestamp = SystemClock().now
  ) async throws(CacheError) {
    let metadata = StoredMetadata(
      request: HTTPRequest(method: .get, scheme: nil, authority: nil, path: nil), response: HTTPResponse(status: .ok),
      requestTime: now, responseTime: now, revision: .random(),
      freshness: Freshness(generatedAt: now, freshUntil: .distantFuture),
      expiration: expiration)
    try await store(data, for: .named(name), metadata: metadata)
  }

  /// Returns the bytes of a name, or `nil` if there are none or if they have expired.
  public func data(for name: String) async throws(CacheError) -> Data? {
    guard let entry = try await entry(for: .named(name)) else { return nil }
    return try await entry.body.collect()
  }

  /// Removes the bytes of a name. A missing name is not an error.
  public func removeData(for name: String) async throws(CacheError) { try await remove(.named(name), ifRevision: nil) }
}

extension CacheKey {
  fileprivate static func named(_ name: String) -> CacheKey { CacheKey(resource: ResourceID.make(name: name)) }
}
