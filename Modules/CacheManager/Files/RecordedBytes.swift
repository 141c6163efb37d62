internal import CacheCore

/// The bytes of a recorded body at the beginning of a partial file, with a checksum of each block.
///
/// A later load verifies the blocks in order and continues after the last one that matches. Neither a crash of the system nor
/// another program can therefore add a wrong byte without notice, so nothing needs to be flushed.
///
/// The last block may be incomplete. Its checksum is written only when a load ends in order, and then covers the bytes up to the
/// end of the file. It no longer matches if bytes were added afterwards, so a killed process loses the incomplete block.
struct RecordedBytes: Sendable {
  /// The size of a block in bytes.
  static let blockSize: Int64 = 256 << 10

  let record: PartRecord
  /// The file of the record, or `nil` if only the current load can continue the bytes.
  private let file: PartRecordFile?
  /// The number of bytes from the start that were written by this load or verified.
  private(set) var count: Int64 = 0
  /// The checksum of the bytes after the last complete block.
  private var checksum: UInt32 = 0
  /// The size of the partial file if an earlier load has written it and not all blocks are verified yet.
  private(set) var unverifiedSize: Int64?

  /// Creates the record of a body whose bytes are all written by this load.
  init(_ record: PartRecord, _ file: PartRecordFile?) { (self.record, self.file) = (record, file) }

  /// Creates the record of bytes that an earlier load has written.
  init(_ record: PartRecord, _ file: PartRecordFile, size: Int64) {
    self.init(record, file)
    unverifiedSize = size
  }

  // MARK: Writing

  /// Adds the next bytes, before they are written to the partial file. Each whole block in that file thus has a checksum, even
  /// if the process is killed.
  mutating func add(_ bytes: UnsafeRawBufferPointer) {
    guard let file else { return count += Int64(bytes.count) }
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
    if count % Self.blockSize > 0 { file?.write(checksum, ofBlock: count / Self.blockSize) }
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
    guard let size = unverifiedSize, let file else { return }
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
