import CacheCore

@testable import DiskStore

/// Corrects an entry's checksums, if its offsets are inside the file.
func mendChecksums(_ bytes: inout [UInt8]) {
  guard bytes.count >= EntryHeader.length else { return }
  bytes.setChecksum(of: 0..<EntryHeader.length - 4, at: EntryHeader.length - 4)
  func offset(_ place: Int) -> Int? {
    let value = bytes.withUnsafeBytes { $0.integer(at: place, as: UInt64.self) }
    return value <= UInt64(bytes.count) ? Int(value) : nil
  }
  guard let key = offset(40), let keyLength = offset(48), let body = offset(56), let bodyLength = offset(64),
    let table = offset(72), let metadata = offset(80)
  else { return }
  if keyLength >= 4, key + keyLength <= bytes.count {
    bytes.setChecksum(of: key..<key + keyLength - 4, at: key + keyLength - 4)
  }
  if body + bodyLength <= bytes.count {
    var checksums = BlockChecksums()
    bytes.withUnsafeBytes { checksums.update($0.part(body..<body + bodyLength)) }
    var writer = ByteWriter()
    checksums.encode(into: &writer)
    let mended = writer.bytes
    if table + mended.count <= bytes.count { bytes.replaceSubrange(table..<table + mended.count, with: mended) }
  }
  mendRecords(&bytes, from: metadata)
}

/// Writes the entry's revision and the checksum into every record, except into those inside another one.
private func mendRecords(_ bytes: inout [UInt8], from start: Int) {
  let revision = bytes[16..<32]
  var place = start
  while place + MetadataRecord.headLength <= bytes.count {
    let (magic, length) = bytes.withUnsafeBytes {
      ($0.integer(at: place, as: UInt32.self), $0.integer(at: place + 8, as: UInt32.self))
    }
    let end = place + MetadataRecord.headLength + Int(length)
    guard magic == MetadataRecord.magic, Int(length) <= MetadataRecord.payloadLimit, end <= bytes.count else {
      place += MetadataRecord.slot
      continue
    }
    bytes.replaceSubrange(place + 24..<place + 40, with: revision)
    bytes.setChecksum(of: place + 8..<end, at: place + 4)
    place += MetadataRecord.slots(payload: Int(length)) * MetadataRecord.slot
  }
}

extension [UInt8] {
  mutating func setChecksum(of range: Range<Int>, at place: Int) {
    let checksum = withUnsafeBytes { crc32c($0.part(range)) }
    Swift.withUnsafeBytes(of: checksum.littleEndian) { replaceSubrange(place..<place + 4, with: $0) }
  }
}
