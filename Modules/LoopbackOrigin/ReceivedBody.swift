#if Origin
internal import NIOCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The body of a request as it arrives. Its first bytes are stored and all are counted. A digest is computed if some are not
/// stored.
struct ReceivedBody {
  private let recordedLimit: Int
  private var buffer = ByteBuffer()
  private var hash: UInt64?
  private(set) var length = 0

  init(recordedLimit: Int) { self.recordedLimit = max(0, recordedLimit) }

  /// The stored bytes.
  var start: Data { Data(buffer.readableBytesView) }

  /// The digest of the whole body, or `nil` if all of it is stored.
  var digest: UInt64? { hash }

  mutating func append(_ part: ByteBuffer) {
    length += part.readableBytes
    if hash == nil, length > recordedLimit { hash = Self.hash(buffer.readableBytesView, from: Self.offsetBasis) }
    if let hash { self.hash = Self.hash(part.readableBytesView, from: hash) }
    let space = max(0, recordedLimit - buffer.readableBytes)
    if var slice = part.getSlice(at: part.readerIndex, length: min(space, part.readableBytes)) { buffer.writeBuffer(&slice) }
  }

  /// Computes the 64-bit FNV-1a digest. It detects lost, duplicated and swapped bytes, which is sufficient for tests.
  static func digest(of bytes: some Sequence<UInt8>) -> UInt64 { hash(bytes, from: offsetBasis) }

  private static let offsetBasis: UInt64 = 0xcbf2_9ce4_8422_2325

  private static func hash(_ bytes: some Sequence<UInt8>, from start: UInt64) -> UInt64 {
    let hash: UInt64? = bytes.withContiguousStorageIfAvailable { storage in
      var hash = start
      for byte in storage { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
      return hash
    }
    return hash ?? bytes.reduce(start) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
  }
}
#endif
