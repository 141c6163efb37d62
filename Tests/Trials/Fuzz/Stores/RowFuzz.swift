import CacheCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks a row of the database, with a wrong checksum and with the right one. Each of the first three columns follows its count
/// of bytes, and the rest is the metadata.
func checkRow(_ data: Data) {
  var rest = data
  func column() -> Data {
    guard let count = rest.popFirst() else { return Data() }
    defer { rest = rest.dropFirst(Int(count)) }
    return Data(rest.prefix(Int(count)))
  }
  let (resource, variant, transform) = (column(), column(), column())
  let payload = Data(rest)
  let metadata = StoredMetadata(decoding: payload)
  let (revision, length) = (metadata?.revision ?? Revision(high: 0, low: 0), metadata?.bodyLength ?? 0)
  func key(_ data: Data) -> String { String(decoding: data, as: UTF8.self) }
  let checksum = EntryRow.checksum(
    CacheKey(resource: key(resource), variant: key(variant), transform: key(transform)), payload, revision, length)
  func row(_ id: Int64, _ checksum: Int64, tag: Data) -> EntryRow? {
    EntryRow(
      id: id, resource: resource, variant: variant, transform: transform, payload: payload, tag: tag, length: length,
      checksum: checksum)
  }
  let tag = EntryRow.tag(revision)
  precondition(row(1, checksum ^ 1, tag: tag) == nil && row(0, checksum, tag: tag) == nil)
  precondition(row(1, checksum, tag: tag.dropLast()) == nil && row(ChunkRow.entries.upperBound + 1, checksum, tag: tag) == nil)
  guard let found = row(1, checksum, tag: tag) else { return }
  precondition(found.metadata == metadata && found.length == length && length >= 0)
  precondition(Data(found.key.resource.utf8) == resource && Data(found.key.variant.utf8) == variant)
  let written = Data(found.metadata.encoded())
  guard
    let again = EntryRow(
      id: 1, resource: resource, variant: variant, transform: transform, payload: written, tag: tag, length: length,
      checksum: EntryRow.checksum(found.key, written, revision, length))
  else { preconditionFailure("a row is lost") }
  precondition(again.key == found.key && again.metadata.revision == revision)
}

/// Checks that a range of a body is read from its chunks and from no others, in a database and in a Redis server. The first bytes
/// are the length of the body, the bounds of the range, and the change that damages a chunk.
func checkChunks(_ data: Data) {
  let numbers = data.withUnsafeBytes { bytes in
    var reader = RawByteReader(bytes)
    return (0..<4).map { _ in Int64(reader.integer(UInt32.self) ?? 0) }
  }
  let length = numbers[0] % 200_000
  guard length > 0 else { return }
  let start = numbers[1] % length
  let range = start..<start + 1 + numbers[2] % (length - start)
  let body = Data((0..<Int(length)).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) })
  let wanted = body[Int(range.lowerBound)..<Int(range.upperBound)]
  let damage = Int(numbers[3])
  checkRows(body, range, wanted, damage)
  checkValues(body, range, wanted, damage)
}

private func checkRows(_ body: Data, _ range: Range<Int64>, _ wanted: Data, _ damage: Int) {
  let revision = Revision(high: 1, low: 2)
  let rows = stride(from: 0, to: body.count, by: ChunkRow.size).enumerated().map { number, start in
    ChunkRow(Data(body.dropFirst(start).prefix(ChunkRow.size)), 5, revision, number: Int64(number))
  }
  func read(_ rows: [ChunkRow]) -> Data? {
    var collected = ChunkedRange(range, of: Int64(body.count), 5, revision)
    for row in rows where collected.places.contains(row.place) {
      guard collected.add(place: row.place, checksum: row.checksum, bytes: row.bytes) else { return nil }
    }
    return collected.bytes
  }
  precondition(read(rows) == wanted)
  let places = ChunkedRange(range, of: Int64(body.count), 5, revision).places
  let used = rows.filter { places.contains($0.place) }
  let index = damage % used.count
  precondition(read(Array(used[..<index] + used[(index + 1)...])) == nil)
  precondition(used.count == 1 || read(used.reversed()) == nil)
  var changed = used[index].bytes
  changed[damage % changed.count] ^= 1
  var collected = ChunkedRange(range, of: Int64(body.count), 5, revision)
  let isRead = used.enumerated().allSatisfy { number, row in
    collected.add(place: row.place, checksum: row.checksum, bytes: number == index ? changed : row.bytes)
  }
  precondition(!isRead)
}

private func checkValues(_ body: Data, _ range: Range<Int64>, _ wanted: Data, _ damage: Int) {
  let id = "0123456789abcdef"
  let numbers = BodyChunks.numbers(of: range)
  var values = BodyChunks.framed(body, from: 0, id).filter { numbers.contains($0.number) }.map { RESPValue.bytes($0.value) }
  func read(_ id: String) -> Data? {
    BodyChunks.bytes(range, of: Int64(body.count), id, in: values).map { $0.reduce(Data(), +) }
  }
  precondition(read(id) == wanted && read("another identifier") == nil)
  precondition(BodyChunks.count(of: Int64(body.count)) > numbers.upperBound)
  let index = damage % values.count
  if var changed = values[index].bytes {
    changed[changed.startIndex + damage % changed.count] ^= 1
    values[index] = .bytes(changed)
  }
  precondition(read(id) == nil)
  values[index] = .null
  precondition(read(id) == nil)
}
