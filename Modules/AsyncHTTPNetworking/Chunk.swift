#if AsyncHTTP
internal import NIOCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Received bytes that were not read yet. The buffers are joined when they are read. If the body is collected, they are joined
/// when they arrive.
struct Chunk: Sendable {
  private var first: ByteBuffer?
  private var others: [ByteBuffer] = []
  /// The bytes of a body that is collected.
  private var collected: Data?
  /// The number of bytes in all buffers.
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// Creates an empty chunk whose bytes are joined when they are read.
  init() {}

  /// Creates an empty chunk for a body of this length. Its bytes are copied when they arrive, so that the connection can reuse
  /// its buffer.
  init(collecting length: Int) {
    // The length is the server's claim, so it must not reserve a large buffer.
    collected = Data(capacity: min(length, 1 << 20))
  }

  mutating func append(_ part: ByteBuffer) {
    count += part.readableBytes
    if collected != nil { return part.withUnsafeReadableBytes { collected?.append(contentsOf: $0) } }
    if first == nil { first = part } else { others.append(part) }
  }

  /// All bytes, copied once. A buffer is a slice of a larger buffer of the connection, which a stored body must not retain.
  ///
  /// NIOFoundationCompat could return the slice without a copy. But it would link all of Foundation into a program that needs
  /// `FoundationEssentials` only.
  var data: Data {
    guard let first else { return collected ?? Data() }
    guard !others.isEmpty else { return first.withUnsafeReadableBytes { Data($0) } }
    var data = Data(capacity: count)
    for part in CollectionOfOne(first) + others { part.withUnsafeReadableBytes { data.append(contentsOf: $0) } }
    return data
  }
}
#endif
