#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Something that one download does with its bytes beside handing them over: showing a picture as it grows, hashing, counting.
///
/// Each has a gate of its own, asked before each chunk. It runs when its own download's body is read, before the reader gets the
/// chunk: however slow it is, and also when it refuses, other downloads that share the transfer don't notice.
///
/// ```swift
/// let preview = DataSideEffect(when: { view.isVisible }) { chunk in await view.add(chunk.data) }
/// let response = try await downloader.download(request, as: DownloadTask(sideEffects: [preview]))
/// ```
public struct DataSideEffect: Sendable {
  /// Bytes that came.
  public struct Chunk: Hashable, Sendable {
    /// The bytes, as the reader gets them. Never empty.
    public var data: Data
    /// How many there were before them.
    public var offset: Int64
    /// How many there will be in all, where that is known.
    public var expected: Int64?

    /// A chunk of its parts.
    public init(data: Data, offset: Int64, expected: Int64?) {
      self.data = data
      self.offset = offset
      self.expected = expected
    }
  }

  let applies: @Sendable () -> Bool
  let run: @Sendable (Chunk) async throws(CacheError) -> Void

  /// A side effect, held strongly until its download is over.
  ///
  /// - Parameters:
  ///   - applies: the gate: whether the next chunk is for it. A chunk that is not passes by unseen.
  ///   - run: called with each chunk that the gate lets through, one at a time. What it throws ends this download alone.
  public init(
    when applies: @escaping @Sendable () -> Bool = { true },
    run: @escaping @Sendable (Chunk) async throws(CacheError) -> Void
  ) {
    self.applies = applies
    self.run = run
  }
}
