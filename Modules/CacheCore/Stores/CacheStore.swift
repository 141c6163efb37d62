public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A stored answer: what is known about it, and its bytes as a stream.
public struct StoredEntry: Sendable {
  /// What it is filed under.
  public var key: CacheKey
  /// Everything but the bytes.
  public var metadata: StoredMetadata
  /// The bytes, or the range that was asked for. Keeps reading the old bytes while a writer replaces the entry.
  public var body: Body

  /// An entry of its parts.
  public init(key: CacheKey, metadata: StoredMetadata, body: Body) {
    self.key = key
    self.metadata = metadata
    self.body = body
  }
}

/// What a store tells of an entry when it lists what it holds: everything but the body.
public struct ListedEntry: Sendable {
  /// What it is filed under.
  public var key: CacheKey
  /// Everything but the bytes.
  public var metadata: StoredMetadata

  /// A listed entry of its parts.
  public init(key: CacheKey, metadata: StoredMetadata) {
    self.key = key
    self.metadata = metadata
  }
}

/// Writes one entry. Nothing of it is visible before ``commit(trailers:)``; dropping a writer aborts it.
public protocol EntryWriter: AnyObject, Sendable {
  /// Appends bytes to the body.
  func write(_ chunk: Data) async throws(CacheError)
  /// A body that follows the writer from its first byte on: it waits where it has caught up, ends with the commit and throws when the writer is aborted.
  func reader() throws(CacheError) -> Body
  /// Makes the entry visible, whole, in one step, in place of what was there.
  ///
  /// - Returns: the metadata as stored, with the body's length.
  func commit(trailers: HTTPFields?) async throws(CacheError) -> StoredMetadata
  /// Drops what was written. Does nothing after ``commit(trailers:)``.
  ///
  /// May be called while ``write(_:)`` is under way, from another thread: that write may throw then.
  func abort()
}

/// A durable store: bodies stream in and out, and changes are conditional on the revision.
///
/// A damaged entry is a miss, and removed. Every error says what failed and where, and leaves the other entries alone.
public protocol CacheStore: Component {
  /// Every stored variant of a resource in its original form that is whole and alive. Empty: a miss.
  ///
  /// This is how a load looks into the store, so it counts as a use. A small body may be at hand already (``Body/data``); any other is read only when it
  /// is pulled.
  func variants(of resource: String) async throws(CacheError) -> [StoredEntry]
  /// What ``variants(of:)`` would answer, where the store has it at hand, bodies and all (``Body/data``); nil says nothing, and then ``variants(of:)`` is asked.
  ///
  /// A load of bytes asks in its caller's thread before anything else is set in motion, so this must wait for nobody: no disk, no lock that is held for long. It counts as
  /// a use, and a miss is none here. The default, nil, is right for every store.
  func variantsAtHand(of resource: String) -> [StoredEntry]?
  /// What is stored of a resource in derived forms (``CacheKey/form`` is not empty), in every variant, as far as it is whole and alive. To be listed is no use.
  ///
  /// A derived form is never an answer: its metadata is that of the original it was made of, which may be gone, and only who knows the form can use its bytes.
  ///
  /// The default goes through all ``entries(where:)``. A store that can find them by their resource should say how: it is asked whenever a resource changes.
  func forms(of resource: String) async throws(CacheError) -> [ListedEntry]
  /// An entry, or nil when there is none that is whole and alive.
  ///
  /// - Parameters:
  ///   - key: the entry's key, variant and form included.
  ///   - range: bytes of the body, clamped to its length; nil: all of it.
  func open(_ key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry?
  /// Opens several entries at once; what is missing in the answer is a miss. Naming a key twice is the same as naming it once.
  ///
  /// Who wants many of them asks once and so waits once. A store that has no quicker way leaves this to the default, which opens one after the other.
  ///
  /// - Throws: what ``open(_:range:)`` would throw for one of them.
  func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry]
  /// Starts an entry, which its writer's commit makes visible.
  ///
  /// Must not wait for I/O: a load waits for this as long as it takes, however slow the store is. What can't be taken now is refused.
  func begin(_ key: CacheKey, _ metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter
  /// Replaces the metadata after a 304; the body is not rewritten. False when the entry is gone or of another revision.
  func refresh(_ key: CacheKey, _ metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool
  /// Removes an entry, but not another revision than the one given. Removing what is not there is no error.
  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError)
  /// Removes everything that was committed before the call.
  func removeAll() async throws(CacheError)
  /// The entries, in any order and in every form, that `isWanted` picks of those that are whole, as far as that is known without their bodies, and alive. To be
  /// listed is no use.
  ///
  /// What is stored, removed or freshened meanwhile may be listed or not. Only what is wanted is held in memory.
  ///
  /// A store that can't list what it holds leaves this to the default, which throws ``CacheError/Code/unsupported``.
  ///
  /// - Parameter isWanted: called once for each entry, in any thread: it must be quick and must not call the store.
  func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry]
}

extension CacheStore {
  /// Nothing is at hand.
  public func variantsAtHand(of resource: String) -> [StoredEntry]? { nil }

  /// Throws ``CacheError/Code/unsupported``: a store that does not say otherwise can't list what it holds.
  public func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    throw CacheError(.unsupported, reason: "\(Self.self) can't list what it holds")
  }

  /// Goes through all that is stored; a store that can't list it is taken to hold no derived forms.
  public func forms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    do throws(CacheError) {
      return try await entries { key, _ in !key.form.isEmpty && key.resource == resource }
    } catch {
      guard error.code == .unsupported else { throw error }
      return []
    }
  }

  /// Opens one entry after the other.
  public func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry] {
    var found: [CacheKey: StoredEntry] = [:]
    for key in keys where found[key] == nil { found[key] = try await open(key, range: nil) }
    return found
  }

  /// Opens the whole body.
  public func open(_ key: CacheKey) async throws(CacheError) -> StoredEntry? { try await open(key, range: nil) }

  /// Stores a body that is at hand.
  @discardableResult
  public func store(_ body: Data, for key: CacheKey, _ metadata: StoredMetadata) async throws(CacheError) -> StoredMetadata {
    let writer = try await begin(key, metadata)
    do throws(CacheError) {
      if !body.isEmpty { try await writer.write(body) }
      return try await writer.commit(trailers: nil)
    } catch {
      writer.abort()
      throw error
    }
  }
}
