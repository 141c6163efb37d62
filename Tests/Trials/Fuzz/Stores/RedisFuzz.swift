import CacheCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks that replies do not depend on the parts in which they arrive, that each is within its limit, and that the bytes of a
/// reply are read as the same reply.
func checkReply(_ data: Data, cut: Int) {
  let limit = 4_096
  let (replies, failure) = read(data, cut: data.count, limit)
  let (others, otherFailure) = read(data, cut: 1 + cut, limit)
  precondition(others.map(\.written) == replies.map(\.written) && otherFailure == failure)
  for reply in replies {
    precondition(reply.size <= limit)
    // Bytes of a status that are not UTF-8 become three bytes.
    let (again, failure) = read(Data(reply.written), cut: 7, 3 * limit)
    precondition(failure == nil && again.map(\.written) == [reply.written])
    checkNames(reply)
  }
}

private func read(_ data: Data, cut: Int, _ limit: Int) -> ([RESPValue], failure: String?) {
  var (reader, replies) = (ReplyReader(), [RESPValue]())
  let failure: CacheError? = data.withUnsafeBytes { bytes in
    var start = 0
    while start < bytes.count {
      let end = min(bytes.count, start + cut)
      var rest = bytes[start..<end]
      start = end
      do throws(CacheError) {
        while let reply = try reader.next(in: &rest, limit: limit) { replies.append(reply) }
      } catch {
        return error
      }
      precondition(rest.isEmpty)
    }
    return nil
  }
  return (replies, failure?.reason)
}

extension RESPValue {
  /// The bytes of the reply.
  fileprivate var written: [UInt8] {
    switch self {
    case .bytes(let data): Array("$\(data.count)\r\n".utf8) + data + [13, 10]
    case .status(let text): Array("+\(text)\r\n".utf8)
    case .error(let text): Array("-\(text)\r\n".utf8)
    case .integer(let number): Array(":\(number)\r\n".utf8)
    case .null: Array("$-1\r\n".utf8)
    case .array(let values): Array("*\(values.count)\r\n".utf8) + values.flatMap(\.written)
    }
  }

  /// The number of bytes of all strings in the reply.
  fileprivate var size: Int {
    switch self {
    case .bytes(let data): data.count
    case .status, .error, .integer, .null: 0
    case .array(let values): values.reduce(0) { $0 + $1.size }
    }
  }
}

/// Checks the names of keys that a scan returns.
private func checkNames(_ reply: RESPValue) {
  let names = KeyNames(namespace: "etagere")
  for name in (reply.array ?? [reply]).compactMap(\.bytes) {
    _ = names.isBody(name)
    guard let tag = names.tag(of: name) else { continue }
    let start = names.bodies(tag).dropLast(2)
    precondition(tag.bytes.count == HashTag.count && name.starts(with: start))
    precondition(names.tag(of: names.bodies(tag)) == tag && names.isBody(names.bodies(tag)))
  }
}

/// Checks a value as it is, and with a trailer that fits. What is read must survive its stored form, and the body must be intact.
func checkValue(_ data: Data, isChunked: Bool, bodyCount: Int) {
  _ = EntryRecord.decode(data)
  let body = data.prefix(isChunked ? 0 : bodyCount)
  guard let value = mended(Data(data.dropFirst(body.count)), body: isChunked ? nil : Data(body)) else { return }
  guard case .entry(let record) = EntryRecord.decode(value) else { return }
  precondition(record.isChunked == isChunked && record.metadata.bodyLength == record.length)
  let stored = isChunked ? nil : record.body(in: value)
  precondition(isChunked || stored == Data(body))
  let length = record.length
  guard
    let again = try? EntryRecord.value(
      record.key, record.metadata, body: stored, length: length, bodyID: record.bodyID, storedAt: record.storedAt),
    case .entry(let copy) = EntryRecord.decode(again)
  else { preconditionFailure("an entry is lost") }
  precondition(copy.key == record.key && copy.length == length && copy.storedAt == record.storedAt)
  precondition(copy.bodyID == record.bodyID)
  precondition(copy.metadata.revision == record.metadata.revision && copy.body(in: again) == (isChunked ? nil : stored))
}

/// Returns the value with a description, whose checksum is corrected, and a body; or `nil` if the description has no metadata.
private func mended(_ description: Data, body: Data?) -> Data? {
  let metadata: StoredMetadata? = description.withUnsafeBytes { bytes in
    var reader = RawByteReader(bytes)
    guard reader.integer(UInt32.self) != nil, reader.text() != nil, reader.text() != nil, reader.text() != nil,
      let encoded = reader.counted()
    else { return nil }
    return StoredMetadata(decoding: encoded)
  }
  guard let revision = metadata?.revision else { return nil }
  var checked = ByteWriter()
  checked.integer(revision.high)
  checked.integer(revision.low)
  checked.raw(description.dropFirst(4))
  var value = ByteWriter()
  value.raw(body ?? Data())
  value.integer(checked.bytes.withUnsafeBytes { crc32c($0) })
  value.raw(description.dropFirst(4))
  value.raw(EntryRecord.digits(of: description.count))
  var trailer = ByteWriter()
  trailer.integer(UInt8(ascii: body == nil ? "C" : "I"))
  trailer.raw("0123456789abcdef".utf8)
  trailer.raw(EntryRecord.bytes(of: revision))
  trailer.integer(Int64(body?.count ?? 70_000))
  trailer.integer(body.map { EntryRecord.checksum($0) } ?? 0)
  trailer.integer(Int64(description.count))
  trailer.integer(trailer.bytes.withUnsafeBytes { crc32c($0) })
  trailer.raw(EntryRecord.magic.utf8)
  value.raw(trailer.bytes)
  return Data(value.bytes)
}
