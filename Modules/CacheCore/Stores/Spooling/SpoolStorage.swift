#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The operations of a store for one entry that ``SpooledWriter`` writes.
package protocol SpoolStorage: Sendable {
  /// The place of a body that is being written.
  associatedtype Location: Sendable

  /// The unit in which a body is stored. Only the last chunk of a body can be shorter.
  static var chunkSize: Int { get }

  /// Throws `CacheError.Code.entryTooLarge` if the store accepts no body of this length.
  func requireAllowedSize(_ length: Int64) throws(CacheError)

  /// Stores whole chunks, which lookups do not find yet.
  ///
  /// - Parameters:
  ///   - bytes: One or more chunks.
  ///   - offset: The position of the bytes in the body.
  ///   - location: The place of the earlier chunks, or `nil` for the first ones.
  /// - Returns: The place of the chunks.
  func append(_ bytes: Data, at offset: Int64, to location: Location?) async throws(CacheError) -> Location

  /// Stores the rest of the body and makes the entry visible in one step.
  ///
  /// - Parameters:
  ///   - metadata: The complete metadata.
  ///   - tail: The bytes after the stored chunks.
  ///   - offset: The position of the tail in the body.
  ///   - location: The place of the chunks, or `nil` if there are none.
  func commit(_ metadata: StoredMetadata, tail: Data, at offset: Int64, in location: Location?) async throws(CacheError)

  /// Removes the chunks of an entry that is not committed.
  func discard(_ location: Location)

  /// Counts a failure of the writer.
  func note(_ error: CacheError)
}
