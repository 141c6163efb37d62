internal import CacheCore

/// The checksum of each 64 KiB block of a body, made as the bytes come in.
///
/// A checksum per block lets streams, ranges and mapped reads be checked as they go, without reading what nobody asked for.
struct BlockChecksums: Sendable {
  /// Bytes.
  static let blockSize = 65_536

  private var full: [UInt32] = []
  private var current: UInt32 = 0
  private var filled = 0

  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes
    while !rest.isEmpty {
      let count = min(Self.blockSize - filled, rest.count)
      current = Checksum.of(rest.part(0..<count), goingOnFrom: current)
      filled += count
      if filled == Self.blockSize {
        full.append(current)
        (current, filled) = (0, 0)
      }
      rest = rest.part(count..<rest.count)
    }
  }

  /// The table as it is written: one checksum per block, then one over the table itself.
  func table() -> [UInt8] {
    var writer = ByteWriter()
    for checksum in full { writer.integer(checksum) }
    if filled > 0 { writer.integer(current) }
    writer.integer(Checksum.of(writer.bytes))
    return writer.bytes
  }

  /// Bytes that the table of a body of `length` bytes takes.
  static func tableLength(ofBody length: UInt64) -> UInt64 {
    (length / UInt64(blockSize) + (length % UInt64(blockSize) == 0 ? 0 : 1)) * 4 + 4
  }

  /// The checksums in a written table, or nil when the table is damaged.
  static func checksums(inTable table: UnsafeRawBufferPointer) -> [UInt32]? {
    let end = table.count - 4
    guard end >= 0, end % 4 == 0, table.integer(at: end) == Checksum.of(table.part(0..<end)) else { return nil }
    return stride(from: 0, to: end, by: 4).map { table.integer(at: $0) }
  }

  /// Whether `bytes`, which begin with block `first` and hold whole blocks (the last one of the body may be short), are what was written.
  static func match(_ bytes: UnsafeRawBufferPointer, _ checksums: [UInt32], from first: Int = 0) -> Bool {
    var block = first
    var start = 0
    while start < bytes.count {
      let end = min(start + blockSize, bytes.count)
      guard block < checksums.count, Checksum.of(bytes.part(start..<end)) == checksums[block] else { return false }
      (block, start) = (block + 1, end)
    }
    return true
  }
}
