#if SQLite
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A CRC32C checksum over several pieces in sequence.
struct Checksum {
  private(set) var value: UInt32 = 0

  mutating func add(_ bytes: UnsafeRawBufferPointer) { value = crc32c(bytes, after: value) }

  mutating func add(_ data: Data) { data.withUnsafeBytes { add($0) } }

  mutating func add(_ number: some FixedWidthInteger) { withUnsafeBytes(of: number.littleEndian) { add($0) } }

  mutating func add(_ revision: Revision) {
    add(revision.high)
    add(revision.low)
  }
}
#endif
