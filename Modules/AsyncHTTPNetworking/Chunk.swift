#if AsyncHTTP
internal import NIOCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Received bytes that were not read yet. The buffers are joined when they are read.
struct Chunk: Sendable {
  private var first: ByteBuffer?
  private var others: [ByteBuffer] = []
  /// The number of bytes in all buffers.
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  mutating func append(_ part: ByteBuffer) {
    count += part.readableBytes
    if first == nil { first = part } else { others.append(part) }
  }

  /// All bytes, copied once. A buffer is a slice of a larger buffer of the connection, which a stored body must not retain.
  ///
  /// NIOFoundationCompat could return the slice without a copy. But it would link all of Foundation into a program that needs
  /// `FoundationEssentials` only.
  var data: Data {
    guard let first else { return Data() }
    guard !others.isEmpty else { return first.withUnsafeReadableBytes { Data($0) } }
    var data = Data(capacity: count)
    for part in CollectionOfOne(first) + others { part.withUnsafeReadableBytes { data.append(contentsOf: $0) } }
    return data
  }
}
#endif
