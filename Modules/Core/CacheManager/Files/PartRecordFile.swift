internal import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The file of a ``PartRecord``, beside its part. It consists of the record and the CRC32C of each block of the part,
/// little-endian.
///
/// The file can be damaged or changed by another program. No number in it is used unchecked, and its size is limited.
final class PartRecordFile: Sendable {
  /// The largest size in bytes. It suffices for parts of almost 4 TiB.
  private static let largestSize: Int64 = 64 << 20

  private let descriptor: Int32
  /// The offset of the checksum of the first block.
  private let start: Int64

  private init(_ descriptor: Int32, start: Int64) { (self.descriptor, self.start) = (descriptor, start) }

  deinit { closeFile(descriptor) }

  /// Replaces the file at a path. Returns `nil` if that is not possible.
  static func create(_ path: String, _ record: PartRecord) -> PartRecordFile? {
    guard let bytes = record.encoded() else { return nil }
    unlink(path)
    let descriptor = openFile(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return nil }
    let file = PartRecordFile(descriptor, start: Int64(bytes.count))
    guard bytes.withUnsafeBytes({ FileSystemCalls.system.writeAll(descriptor, $0, at: 0) }) == nil else {
      unlink(path)
      return nil
    }
    return file
  }

  /// Opens the file at a path. Returns `nil` if there is none, if the record is damaged or invalid, if the file is too large, or
  /// if another user may have written it.
  static func open(_ path: String) -> (record: PartRecord, file: PartRecordFile)? {
    let descriptor = openFile(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    guard let status = FileStatus.own(descriptor), status.st_size <= largestSize, let (record, start) = read(descriptor) else {
      closeFile(descriptor)
      return nil
    }
    return (record, PartRecordFile(descriptor, start: start))
  }

  /// Returns the record, and the offset after it.
  private static func read(_ descriptor: Int32) -> (PartRecord, start: Int64)? {
    var bytes = Data(count: PartRecord.encodedLimit)
    bytes.count = bytes.withUnsafeMutableBytes { readFile(descriptor, $0, at: 0) }
    return PartRecord.decoded(bytes).map { ($0.record, Int64($0.count)) }
  }

  /// Returns the checksum of a block of the part, or `nil` if it has none.
  func checksum(ofBlock block: Int64) -> UInt32? {
    guard let offset = offset(ofBlock: block) else { return nil }
    return withUnsafeTemporaryAllocation(byteCount: 4, alignment: 4) { bytes in
      guard readFile(descriptor, bytes, at: offset) == 4 else { return nil }
      return UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self))
    }
  }

  /// Writes the checksum of a block of the part. If that fails, a later load requests the block again.
  func write(_ checksum: UInt32, ofBlock block: Int64) {
    guard let offset = offset(ofBlock: block) else { return }
    _ = withUnsafeBytes(of: checksum.littleEndian) { FileSystemCalls.system.writeAll(descriptor, $0, at: offset) }
  }

  private func offset(ofBlock block: Int64) -> Int64? {
    let offset = start + 4 * block
    return offset + 4 <= Self.largestSize ? offset : nil
  }
}

/// The bytes of a recorded body at the beginning of a partial file, with a checksum of each block.
///
/// A later load verifies the blocks in order and continues after the last one that matches. Bytes that a crash of the system
/// lost, or that a program changed without changing the record, are found in this way, so nothing needs to be flushed.
///
/// The last block may be incomplete. Its checksum is written only when a load ends in order, and then covers the bytes up to the
/// end of the file. It no longer matches if bytes were added afterwards, so a killed process loses the incomplete block.
struct RecordedBytes: Sendable {
  /// The size of a block in bytes.
  static let blockSize: Int64 = 256 << 10

  let record: PartRecord
  private let file: PartRecordFile
  /// The number of bytes from the start that were written by this load or verified.
  private(set) var count: Int64 = 0
  /// The checksum of the bytes after the last complete block.
  private var checksum: UInt32 = 0
  /// The size of the partial file if an earlier load has written it and not all blocks are verified yet.
  private(set) var unverifiedSize: Int64?

  /// Creates the record of a body whose bytes are all written by this load.
  init(_ record: PartRecord, _ file: PartRecordFile) { (self.record, self.file) = (record, file) }

  /// Creates the record of bytes that an earlier load has written.
  init(_ record: PartRecord, _ file: PartRecordFile, size: Int64) {
    self.init(record, file)
    unverifiedSize = size
  }

  // MARK: Writing

  /// Adds the next bytes, before they are written to the partial file. Each whole block in that file thus has a checksum, even
  /// if the process is killed.
  mutating func add(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes
    while !rest.isEmpty {
      let length = Int(min(Self.blockSize - count % Self.blockSize, Int64(rest.count)))
      checksum = crc32c(UnsafeRawBufferPointer(rebasing: rest[..<length]), after: checksum)
      rest = UnsafeRawBufferPointer(rebasing: rest[length...])
      count += Int64(length)
      if count % Self.blockSize == 0 {
        file.write(checksum, ofBlock: count / Self.blockSize - 1)
        checksum = 0
      }
    }
  }

  /// Writes the checksum of the incomplete block, so that a later load can continue after its bytes.
  func writeLastChecksum() {
    if count % Self.blockSize > 0 { file.write(checksum, ofBlock: count / Self.blockSize) }
  }

  /// Removes the last block, which is then requested again, if the body is complete. The origin must confirm the validator.
  mutating func removeLastBlockIfComplete() {
    guard count >= record.length else { return }
    (count, checksum) = ((record.length - 1) / Self.blockSize * Self.blockSize, 0)
  }

  // MARK: Verification

  /// Verifies the next blocks of the partial file.
  ///
  /// - Parameter limit: The largest number of blocks. It bounds the time of the call.
  mutating func verify(_ part: Int32, limit: Int) {
    guard let size = unverifiedSize else { return }
    // Bytes after the end of the body must not stay in the file.
    let end = min(size, record.length)
    withUnsafeTemporaryAllocation(byteCount: Int(Self.blockSize), alignment: 16) { buffer in
      for _ in 0..<limit {
        let length = Int(min(Self.blockSize, end - count))
        let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<length])
        guard length > 0, let expected = file.checksum(ofBlock: count / Self.blockSize),
          readFile(part, bytes, at: count) == length, crc32c(UnsafeRawBufferPointer(bytes)) == expected
        else {
          unverifiedSize = nil
          return
        }
        count += Int64(length)
        if length < Self.blockSize { checksum = expected }
      }
    }
  }
}
