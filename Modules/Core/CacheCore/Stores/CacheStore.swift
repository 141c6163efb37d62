public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A stored response: its metadata, and its body as a stream.
public struct StoredEntry: Sendable {
  /// The key of the entry.
  public var key: CacheKey
  /// The metadata of the response.
  public var metadata: StoredMetadata
  /// The body, or the requested range of it. It continues to read the old bytes if a writer replaces the entry.
  public var body: ResourceBody

  /// Creates an entry.
  public init(key: CacheKey, metadata: StoredMetadata, body: ResourceBody) {
    self.key = key
    self.metadata = metadata
    self.body = body
  }
}

/// An entry in a list, without its body. A store may omit values that it does not record or would have to look up.
public struct ListedEntry: Sendable {
  /// The key of the entry.
  public var key: CacheKey
  /// The metadata of the response.
  public var metadata: StoredMetadata
  /// The number of bytes that the entry occupies in the store.
  public var size: Int64?
  /// The time at which the body was stored.
  public var storedAt: Timestamp?
  /// The time of the last use. Uses by other processes may be accurate only to the minute.
  public var lastUsed: Timestamp?

  /// Creates a listed entry.
  public init(
    key: CacheKey, metadata: StoredMetadata, size: Int64? = nil, storedAt: Timestamp? = nil, lastUsed: Timestamp? = nil
  ) {
    self.key = key
    self.metadata = metadata
    self.size = size
    self.storedAt = storedAt
    self.lastUsed = lastUsed
  }
}

/// A writer of one entry. The entry becomes visible with ``commit(trailers:)``. A writer that is released earlier discards it.
///
/// ``CollectingWriter`` is a writer for stores that write a whole body at once.
public protocol EntryWriter: AnyObject, Sendable {
  /// Appends bytes to the body.
  func write(_ chunk: Data) async throws(CacheError)
  /// Appends bytes to the body if that requires neither I/O nor waiting, for example because they stay in memory for now.
  ///
  /// A load calls this first for each chunk, on its own thread. The default implementation returns `false`.
  ///
  /// - Returns: Whether the bytes were appended. If not, the load passes the same bytes to ``write(_:)``.
  func writeWithoutWaiting(_ chunk: Data) throws(CacheError) -> Bool
  /// Makes the whole entry visible in one step and replaces an older entry with the same key.
  ///
  /// A store with a limit evicts other entries for this one, and never the entry itself. If it does not fit alone, the commit or
  /// an earlier call throws ``CacheError/Code/entryTooLarge`` and evicts nothing.
  ///
  /// - Returns: The stored metadata, with the length of the body.
  func commit(trailers: HTTPFields?) async throws(CacheError) -> StoredMetadata
  /// Makes the bytes so far visible as an entry with other metadata, because the rest of the body did not arrive. It is a part
  /// (206), which a later load completes.
  ///
  /// The metadata has the key and the revision of the writer's own. The default implementation discards the bytes and returns
  /// `nil`.
  ///
  /// - Returns: The stored metadata, with the length of the part, or `nil` if the store does not accept parts of bodies.
  func commitPart(as metadata: StoredMetadata) async throws(CacheError) -> StoredMetadata?
  /// Discards the written bytes. Does nothing after ``commit(trailers:)``.
  ///
  /// May be called from another thread while ``write(_:)`` is running. That write may then throw.
  func abort()
}

extension EntryWriter {
  public func writeWithoutWaiting(_ chunk: Data) throws(CacheError) -> Bool { false }

  public func commitPart(as metadata: StoredMetadata) async throws(CacheError) -> StoredMetadata? {
    abort()
    return nil
  }
}

/// A durable store. It reads and writes bodies as streams and makes changes conditional on the entry's revision.
///
/// ```swift
/// for entry in try await store.entries(of: "https://example.com/logo.svg") {
///   print(entry.key.variant, entry.metadata.response.status, entry.size ?? 0)
/// }
/// ```
///
/// A damaged entry is removed and counts as a miss. An error names the operation and the entry, and leaves the other entries
/// unchanged.
public protocol CacheStore: Component {
  /// Returns all stored variants of a resource without a transform. It omits damaged and expired entries.
  ///
  /// A load looks up the store with this call, so it counts as a use of the entries. A small body may already be in memory
  /// (``ResourceBody/data``). Any other body is read when it is pulled.
  func variants(of resource: String) async throws(CacheError) -> [StoredEntry]
  /// Whether every call of ``variants(of:)`` ends by itself within a fixed time, also while the store cannot be reached.
  ///
  /// That time includes connecting and all commands of the call. A call whose task is cancelled throws `CacheError.cancelled` at
  /// once. A store that wraps others returns `true` only if all stores that it looks up do.
  ///
  /// A manager may call such a store in the task of its caller. A hit whose body is in memory (``ResourceBody/data``) then needs
  /// no other task. It calls other stores in a task of its own, so that a load can end while the store hangs. The default is
  /// `false`.
  var boundsLookupTime: Bool { get }
  /// Returns the result of ``variants(of:)`` with all bodies in memory (``ResourceBody/data``), or `nil` if that requires
  /// waiting.
  ///
  /// A load of bytes calls this first, on its caller's thread, so it must not wait for a disk or for a contended lock. It counts
  /// as a use of the entries. After `nil`, the load calls ``variants(of:)``. The default implementation returns `nil`.
  func variantsWithoutWaiting(of resource: String) -> [StoredEntry]?
  /// Returns the variants of a resource like ``variants(of:)``. If several layers have a variant, it returns the latest one.
  ///
  /// A load with a ``CacheFleet`` calls this before it sends a request, because another process may have stored a response. The
  /// default implementation calls ``variants(of:)``.
  func latestVariants(of resource: String) async throws(CacheError) -> [StoredEntry]
  /// Returns the stored transformed values of a resource, those with a ``CacheKey/transform``, in all variants. It does not count
  /// as a use.
  ///
  /// Their metadata is that of the original, which may no longer be stored.
  ///
  /// The default implementation filters ``entries(where:)``. A store with an index by resource should implement it, because it is
  /// called whenever a resource changes.
  func transforms(of resource: String) async throws(CacheError) -> [ListedEntry]
  /// Returns all entries of a resource, including transformed values.
  ///
  /// It must list each entry that a lookup in any process could return, because a purge relies on it. The default implementation
  /// calls ``variants(of:)``, which counts as a use, and ``transforms(of:)``. A store that composes others must list the entries
  /// of all of them.
  func entries(of resource: String) async throws(CacheError) -> [ListedEntry]
  /// Returns an entry, or `nil` if it is missing, damaged or expired.
  ///
  /// - Parameters:
  ///   - key: The key of the entry.
  ///   - range: The bytes of the body to read, clamped to its length, or `nil` for the whole body.
  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry?
  /// Returns several entries at once. The result omits keys without an entry. `keys` may contain duplicates.
  ///
  /// The default implementation calls ``entry(for:range:)`` for one key after another.
  ///
  /// - Throws: The error of ``entry(for:range:)`` for one of the keys.
  func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry]
  /// Returns a writer for a new entry.
  ///
  /// It must not wait for I/O, because a load waits for it without a time limit. A store that cannot accept an entry now throws.
  func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter
  /// Returns a writer for the response to a request that was sent under a lease.
  ///
  /// The commit throws ``CacheError/Code/superseded`` if a later lease has been granted. The default implementation calls
  /// ``makeWriter(for:metadata:)``. A store that processes share should implement it. The writer must not
  /// retain the lease, because releasing the lease ends it.
  func makeWriter(
    for key: CacheKey, metadata: StoredMetadata, lease: any RequestLease
  ) async throws(CacheError) -> any EntryWriter
  /// Replaces the metadata of an entry after a 304, without rewriting the body.
  ///
  /// - Returns: `false` if the entry no longer exists or has another revision.
  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool
  /// Removes an entry if it has the given revision. With `nil`, any revision matches. A missing entry is not an error.
  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError)
  /// Removes several entries, whatever their revisions. A missing entry is not an error.
  ///
  /// A purge removes its entries with this call. The default implementation calls ``remove(_:ifRevision:)`` for each key.
  ///
  /// - Throws: The first error, after every key was tried.
  func remove(_ keys: [CacheKey]) async throws(CacheError)
  /// Marks several entries stale, whatever their revisions (``Freshness/markedStale(at:)``). A missing entry is not an error.
  ///
  /// A soft purge marks its entries with this call. An entry that is replaced during the call may remain fresh. The default
  /// implementation calls ``entry(for:range:)`` and ``updateMetadata(of:to:ifRevision:)`` for each key.
  ///
  /// - Throws: The first error, after every key was tried.
  func markStale(_ keys: [CacheKey], at now: Timestamp) async throws(CacheError)
  /// Removes every entry that was committed before the call.
  func removeAll() async throws(CacheError)
  /// Returns the entries that `isWanted` accepts, in any order, including transformed values. It does not count as a use.
  ///
  /// It omits expired entries, and damaged entries that the store detects without reading bodies. Entries that change during the
  /// call may or may not be listed. Only accepted entries are held in memory.
  ///
  /// The default implementation throws ``CacheError/Code/unsupported``.
  ///
  /// - Parameter isWanted: The filter. It is called at least once for each entry that can be listed, and for no others, on any
  ///   thread. It must be quick and must not call the store.
  func entries(where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool) async throws(CacheError) -> [ListedEntry]
  /// Returns the keys of the entries whose response has the cache tag `tag` in `Cache-Tag` or `Surrogate-Key`, including those of
  /// transformed values.
  ///
  /// A purge by tag removes these entries, or marks them stale. The set must contain the key of every tagged entry that a lookup
  /// in any process could return. It must not contain other keys. A store with layers includes a key if any layer has a tagged
  /// entry with it. The default implementation calls ``entries(where:)``, which reads every entry. A store with an index by tag
  /// should implement it.
  func keys(tagged tag: String) async throws(CacheError) -> Set<CacheKey>
  /// Returns the part of the store that other machines do not use, or `nil` if they use all of it.
  ///
  /// A process applies a purge that it receives from another process to this part. If it was without contact when the purge was
  /// sent, it applies the purge to the whole store. A store on a shared server must return `nil`. A store that copies entries
  /// from its shared part must wait for the copies in progress before it returns, or discard them. The default implementation
  /// returns the store.
  func unsharedPart() async -> (any CacheStore)?
  /// Returns the part of the store that other machines use too, or `nil` if they use none of it.
  ///
  /// A purge changes this part before any machine changes its unshared part. In the opposite order, a lookup could copy a purged
  /// response from the shared part again. The default implementation returns `nil` if ``unsharedPart()`` returns this store, and
  /// the store otherwise. A store that is partly shared should implement both.
  func sharedPart() async -> (any CacheStore)?
  /// Returns the number and size of the stored entries, or `nil` if the store does not count them. The default implementation
  /// returns `nil`.
  ///
  /// A store that evicts in the background first finishes the evictions for earlier commits.
  func usage() async throws(CacheError) -> StoreUsage?
}

extension CacheStore {
  public var boundsLookupTime: Bool { false }

  public func variantsWithoutWaiting(of resource: String) -> [StoredEntry]? { nil }

  public func latestVariants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    try await variants(of: resource)
  }

  public func makeWriter(
    for key: CacheKey, metadata: StoredMetadata, lease: any RequestLease
  ) async throws(CacheError) -> any EntryWriter {
    try await makeWriter(for: key, metadata: metadata)
  }

  public func remove(_ keys: [CacheKey]) async throws(CacheError) {
    try await forEach(keys) { key throws(CacheError) in try await remove(key, ifRevision: nil) }
  }

  public func markStale(_ keys: [CacheKey], at now: Timestamp) async throws(CacheError) {
    try await forEach(keys) { key throws(CacheError) in
      guard let metadata = try await entry(for: key, range: 0..<0)?.metadata else { return }
      _ = try await updateMetadata(of: key, to: metadata.markedStale(at: now), ifRevision: metadata.revision)
    }
  }

  /// Calls `work` for up to 64 keys at once, because a store on a server takes most of the time to reply.
  ///
  /// - Throws: The first error, after every key was tried.
  private func forEach(
    _ keys: [CacheKey], _ work: @escaping @Sendable (CacheKey) async throws(CacheError) -> Void
  ) async throws(CacheError) {
    let failure = await withTaskGroup(of: CacheError?.self) { group in
      var failure: CacheError?
      for (number, key) in keys.enumerated() {
        if number >= 64, let result = await group.next() { failure = failure ?? result }
        group.addTask {
          do throws(CacheError) {
            try await work(key)
            return nil
          } catch {
            return error
          }
        }
      }
      return await group.reduce(failure) { $0 ?? $1 }
    }
    if let failure { throw failure }
  }

  public func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    throw CacheError(.unsupported, reason: "\(Self.self) cannot list its entries")
  }

  public func entries(of resource: String) async throws(CacheError) -> [ListedEntry] {
    let variants = try await variants(of: resource).map { ListedEntry(key: $0.key, metadata: $0.metadata) }
    return try await variants + transforms(of: resource)
  }

  public func keys(tagged tag: String) async throws(CacheError) -> Set<CacheKey> {
    let tagged = Lock<Set<CacheKey>>([])
    // A list would hold the metadata of all tagged entries in memory.
    _ = try await entries { key, metadata in
      if CacheTags(metadata.response.headerFields).contains(tag) { tagged.withLock { _ = $0.insert(key) } }
      return false
    }
    return tagged.withLock { $0 }
  }

  /// Returns all entries. See ``entries(where:)``.
  public func entries() async throws(CacheError) -> [ListedEntry] { try await entries { _, _ in true } }

  public func usage() async throws(CacheError) -> StoreUsage? { nil }

  public func unsharedPart() async -> (any CacheStore)? { self }

  public func sharedPart() async -> (any CacheStore)? { await unsharedPart()?.id == id ? nil : self }

  /// Filters ``entries(where:)``. The result is empty for a store that cannot list its entries.
  public func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    do throws(CacheError) {
      return try await entries { key, _ in !key.transform.isEmpty && key.resource == resource }
    } catch {
      guard error.code == .unsupported else { throw error }
      return []
    }
  }

  public func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry] {
    var found: [CacheKey: StoredEntry] = [:]
    for key in keys where found[key] == nil { found[key] = try await entry(for: key, range: nil) }
    return found
  }

  /// Returns an entry with its whole body, or `nil` if it is missing, damaged or expired.
  public func entry(for key: CacheKey) async throws(CacheError) -> StoredEntry? { try await entry(for: key, range: nil) }

  /// Stores an entry whose body is in memory.
  ///
  /// - Returns: The stored metadata, with the length of the body.
  @discardableResult
  public func store(_ body: Data, for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> StoredMetadata {
    let writer = try await makeWriter(for: key, metadata: metadata)
    do throws(CacheError) {
      if !body.isEmpty { try await writer.write(body) }
      return try await writer.commit(trailers: nil)
    } catch {
      writer.abort()
      throw error
    }
  }
}

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

/// The number and size of the entries in a store.
public struct StoreUsage: Hashable, Sendable {
  /// The number of entries. A transformed value counts as a separate entry. So does the metadata of a resource if it comes from a
  /// memory store itself, and not from `ResourceManager.usage()`.
  public var entries: Int
  /// The size of the entries in bytes, as counted towards the store's limit.
  public var bytes: Int64
  /// The maximum size in bytes, or `nil` if the store has no limit.
  public var limit: Int64?

  /// Creates a usage.
  public init(entries: Int, bytes: Int64, limit: Int64? = nil) {
    self.entries = entries
    self.bytes = bytes
    self.limit = limit
  }
}

extension StoreUsage: CustomStringConvertible {
  /// The numbers as text: `12 entries, 34567 of 1048576 bytes`.
  public var description: String {
    "\(entries) \(entries == 1 ? "entry" : "entries"), \(bytes)\(limit.map { " of \($0)" } ?? "") bytes"
  }
}
