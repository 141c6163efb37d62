import CacheCore
import HTTPTypes
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("The coding of metadata")
struct MetadataCodingTests {
  /// Returns metadata whose optional parts are present or absent according to the bits.
  private static func metadata(_ bits: Int) -> StoredMetadata {
    var metadata = StoredMetadata.whole()
    if bits & 1 == 0 { metadata.trailers = nil }
    if bits & 2 == 0 { metadata.bodyLength = nil }
    if bits & 4 == 0 { metadata.expiration = nil }
    if bits & 8 == 0 { metadata.freshness.staleWhileRevalidateUntil = nil }
    if bits & 16 == 0 { metadata.freshness.staleIfErrorUntil = nil }
    if bits & 32 == 0 { metadata.request = HTTPRequest(method: .head, scheme: nil, authority: nil, path: nil) }
    if bits & 64 == 0 { metadata.response.headerFields = [:] }
    return metadata
  }

  @Test("metadata is decoded unchanged, with or without each optional part", arguments: 0..<128)
  func roundTrip(_ bits: Int) {
    let metadata = Self.metadata(bits)
    #expect(StoredMetadata(decoding: metadata.encoded()) == metadata)
  }

  @Test("the lifetime of a response that was stored without a validator is decoded unchanged")
  func unvalidated() {
    var metadata = StoredMetadata.whole()
    metadata.freshness = .unvalidated(at: metadata.responseTime)
    #expect(StoredMetadata(decoding: metadata.encoded())?.freshness.isUnvalidated == true)
  }

  @Test(
    "every kind of expiration is decoded unchanged",
    arguments: [Expiration.never, .after(.zero), .after(.seconds(-3)), .after(.milliseconds(1_500)), .at(.distantPast)])
  func expirations(_ expiration: Expiration) {
    var metadata = StoredMetadata.whole()
    metadata.expiration = expiration
    #expect(StoredMetadata(decoding: metadata.encoded())?.expiration == expiration)
  }

  @Test("repeated fields, their order, their spelling and non-ASCII bytes are decoded unchanged")
  func fields() throws {
    var metadata = StoredMetadata.whole()
    let odd = try #require(HTTPField.Name("X-oDD"))
    metadata.response = HTTPResponse(status: .init(code: 599, reasonPhrase: "Sch\u{F6}n"))
    metadata.response.headerFields.append(HTTPField(name: odd, value: "1"))
    metadata.response.headerFields.append(HTTPField(name: .setCookie, value: "a=b"))
    metadata.response.headerFields.append(HTTPField(name: odd, value: [0xFF, 0x80, 0x41] as [UInt8]))

    let back = try #require(StoredMetadata(decoding: metadata.encoded()))

    #expect(back == metadata)
    #expect(back.response.headerFields.map(\.name.rawName) == ["X-oDD", "Set-Cookie", "X-oDD"])
    #expect(back.response.headerFields[fields: odd].last?.withUnsafeBytesOfValue { Array($0) } == [0xFF, 0x80, 0x41])
  }

  /// Written by hand from the description of the format: a version, then parts with a tag, a length and content. Existing disk
  /// entries must stay readable.
  private static let golden = """
    01 \
    01 44000000 03000000474554 050000006874747073 0b0000006578616d706c652e636f6d 040000002f613f62 \
    01000000 0f0000004163636570742d4c616e6775616765 020000006465 \
    02 3b000000 c800 020000004f4b 02000000 0400000045546167 0400000022763122 \
    0d00000043616368652d436f6e74726f6c 0a0000006d61782d6167653d3630 \
    03 16000000 01000000 0400000045546167 06000000226c61746522 \
    04 10000000 e803000000000000 d007000000000000 \
    05 08000000 0201000000000000 \
    06 10000000 0807060504030201 100f0e0d0c0b0a09 \
    08 09000000 01 00ca9a3b00000000 \
    07 23000000 ffffffffffffffff b80b000000000000 01 01 a00f000000000000 01 ffffffffffffff7f
    """

  @Test("the encoding is that of the first version")
  func goldenEncoding() {
    let hex = StoredMetadata.whole().encoded().map { byte in
      let digits = String(byte, radix: 16)
      return digits.count == 1 ? "0" + digits : digits
    }.joined()
    #expect(hex == Self.golden.filter { !$0.isWhitespace })
  }

  @Test("an unknown part of a later version is skipped")
  func unknownParts() {
    let encoded = StoredMetadata.whole().encoded()
    var later = Data(encoded.prefix(1))
    later.append(contentsOf: [200, 3, 0, 0, 0, 1, 2, 3])
    later.append(encoded.dropFirst())
    later.append(contentsOf: [201, 0, 0, 0, 0])
    #expect(StoredMetadata(decoding: later) == .whole())
  }

  @Test("metadata of another version or without a required part is rejected", arguments: [1, 2, 4, 6, 7] as [UInt8])
  func missingParts(_ tag: UInt8) {
    var encoded = StoredMetadata.whole().encoded()
    encoded[0] = 2
    #expect(StoredMetadata(decoding: encoded) == nil)
    #expect(StoredMetadata(decoding: Data()) == nil)

    // The part is still present, with an unknown tag.
    var renamed = [UInt8(1)]
    StoredMetadata.whole().encoded().dropFirst().withUnsafeBytes { bytes in
      var rest = RawByteReader(bytes)
      while let found = rest.integer(UInt8.self), let content = rest.counted() {
        var part = ByteWriter()
        part.integer(found == tag ? 99 : found)
        part.counted(content)
        renamed += part.bytes
      }
    }
    #expect(StoredMetadata(decoding: renamed) == nil)
  }

  @Test(
    "metadata with an invalid part is rejected: a negative length, or malformed trailers or expiration",
    arguments: [
      (5, [0, 0, 0, 0, 0, 0, 0, 0x80]), (5, [9]), (3, [1, 0, 0, 0]), (8, [3]), (8, [1, 0]),
    ] as [(UInt8, [UInt8])])
  func unreadableParts(_ tag: UInt8, _ content: [UInt8]) {
    var part = ByteWriter()
    part.integer(tag)
    part.counted(content)
    let encoded = StoredMetadata.whole().encoded()
    #expect(StoredMetadata(decoding: encoded) != nil)
    #expect(StoredMetadata(decoding: encoded + part.bytes) == nil)
  }

  @Test("metadata with more fields than a server sends is rejected", arguments: [16_384, 16_385])
  func tooManyFields(_ count: Int) {
    var trailers = ByteWriter()
    trailers.integer(UInt32(count))
    for _ in 0..<count {
      trailers.text("a")
      trailers.text("")
    }
    var part = ByteWriter()
    part.integer(UInt8(3))
    part.counted(trailers.bytes)
    let metadata = StoredMetadata(decoding: StoredMetadata.whole().encoded() + part.bytes)
    #expect(metadata?.trailers?.count == (count == 16_384 ? count : nil))
  }

  @Test(
    "a status that no final response has is rejected",
    arguments: [0, 1, 99, 100, 103, 199, 200, 204, 599, 999, 1_000, 9_999, 32_768, 65_535] as [UInt16])
  func statuses(_ status: UInt16) {
    var part = ByteWriter()
    part.integer(UInt8(2))
    part.counted(withUnsafeBytes(of: status.littleEndian) { Array($0) } + [0, 0, 0, 0, 0, 0, 0, 0])
    let metadata = StoredMetadata(decoding: StoredMetadata.whole().encoded() + part.bytes)
    #expect(metadata?.response.status.code == ((200...999).contains(status) ? Int(status) : nil))
  }

  @Test("concurrent readers get equal values, and a change leaves the other values unchanged")
  func readByMany() async throws {
    let whole = StoredMetadata.whole()
    for _ in 0..<50 {
      let metadata = try #require(StoredMetadata(decoding: whole.encoded()))
      await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<4 { group.addTask { metadata.response == whole.response && metadata.trailers == whole.trailers } }
        for await isSame in group { #expect(isSame) }
      }
      var (changed, unread) = (metadata, try #require(StoredMetadata(decoding: whole.encoded())))
      changed.response.headerFields[.eTag] = "\"other\""
      unread.responseTime = .distantFuture
      #expect(changed.request == whole.request && changed.response != whole.response && metadata == whole)
      #expect(unread.response == whole.response && unread != whole)
    }
  }

  @Test("truncated metadata is never accepted", arguments: 0..<8)
  func truncations(_ bits: Int) {
    let encoded = Self.metadata(bits | 120).encoded()
    let taken = (0..<encoded.count).filter { StoredMetadata(decoding: encoded.prefix($0)) != nil }
    #expect(taken.isEmpty)
  }

  @Test("random bytes never trap, and accepted metadata encodes and decodes unchanged")
  func randomBytes() {
    var generator = SeededGenerator(state: 3)
    let whole = [UInt8](StoredMetadata.whole().encoded())
    var accepted = 0
    for round in 0..<20_000 {
      var bytes: [UInt8]
      if round.isMultiple(of: 4) {
        bytes = [1] + (0..<Int.random(in: 0...80, using: &generator)).map { _ in UInt8.random(in: 0...9, using: &generator) }
      } else {
        bytes = whole
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
          bytes[Int.random(in: 0..<bytes.count, using: &generator)] = .random(in: .min ... .max, using: &generator)
        }
      }
      guard let metadata = StoredMetadata(decoding: bytes) else { continue }
      accepted += 1
      if StoredMetadata(decoding: metadata.encoded()) != metadata { Issue.record("round \(round) is not stable: \(bytes)") }
    }
    // Bits flipped within texts and numbers leave valid metadata. If none were accepted, the test would prove nothing.
    #expect(accepted > 1_000)
  }
}
