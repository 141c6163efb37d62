#if AsyncHTTP
internal import NIOCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Bytes that have come and not been read: the pieces as they came, joined when somebody reads them.
struct Chunk: Sendable {
  private var first: ByteBuffer?
  private var others: [ByteBuffer] = []
  /// Bytes in all pieces.
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  mutating func append(_ piece: ByteBuffer) {
    count += piece.readableBytes
    if first == nil { first = piece } else { others.append(piece) }
  }

  /// All bytes, copied once: a piece is a window into a larger buffer of the connection, which a stored body must not keep alive.
  ///
  /// NIOFoundationCompat could hand the window over without a copy, but would bring all of Foundation into a program that needs
  /// `FoundationEssentials` only.
  var data: Data {
    guard let first else { return Data() }
    guard !others.isEmpty else { return first.withUnsafeReadableBytes { Data($0) } }
    var data = Data(capacity: count)
    for piece in CollectionOfOne(first) + others { piece.withUnsafeReadableBytes { data.append(contentsOf: $0) } }
    return data
  }
}
#endif
