import CacheCore
import Testing

@Suite("SipHash-2-4 with 128 bits")
struct SipHashTests {
  /// The bytes 00 01 … 0f, as two little-endian words.
  private let key = SipHash.Key(first: 0x0706_0504_0302_0100, second: 0x0F0E_0D0C_0B0A_0908)

  @Test(
    "the digests of 00 01 02 … equal the reference vectors",
    arguments: [
      (0, "a3817f04ba25a8e66df67214c7550293"), (1, "da87c1d86b99af44347659119b22fc45"), (2, "8177228da4a45dc7fca38bdef60affe4"),
      (3, "9c70b60c5267a94e5f33b6b02985ed51"), (4, "f88164c12d9c8faf7d0f6e7c7bcd5579"), (5, "1368875980776f8854527a07690e9627"),
      (6, "14eeca338b208613485ea0308fd7a15e"), (7, "a1f1ebbed8dbc153c0b84aa61ff08239"), (8, "3b62a9ba6258f5610f83e264f31497b4"),
      (9, "264499060ad9baabc47f8b02bb6d71ed"), (10, "00110dc378146956c95447d3f3d0fbba"), (11, "0151c568386b6677a2b4dc6f81e5dc18"),
      (12, "d626b266905ef35882634df68532c125"), (13, "9869e247e9c08b10d029934fc4b952f7"),
      (14, "31fcefac66d7de9c7ec7485fe4494902"),
      (15, "5493e99933b0a8117e08ec0f97cfc3d9"), (16, "6ee2a4ca67b054bbfd3315bf85230577"),
      (63, "5150d1772f50834a503e069a973fbd7c"),
    ])
  func vectors(_ count: Int, _ digest: String) {
    let input = (0..<count).map { UInt8($0) }
    let (first, second) = SipHash.digest(input, key: key)
    #expect(Hexadecimal.text(first.byteSwapped) + Hexadecimal.text(second.byteSwapped) == digest)

    // The same bytes as text, since all of them are ASCII.
    #expect(SipHash.hexadecimal(String(decoding: input, as: UTF8.self), key: key) == digest)
  }

  @Test("the digest of a number is that of its eight bytes")
  func numbers() {
    #expect(SipHash.digest(UInt64(0x0706_0504_0302_0100), key: key) == SipHash.digest([0, 1, 2, 3, 4, 5, 6, 7], key: key))
  }

  @Test("the digest depends on every bit of the key")
  func keys() {
    let digests = (0..<64).flatMap { bit in
      [
        SipHash.hexadecimal("text", key: .init(first: key.first ^ 1 << bit, second: key.second)),
        SipHash.hexadecimal("text", key: .init(first: key.first, second: key.second ^ 1 << bit)),
      ]
    }
    #expect(Set(digests + [SipHash.hexadecimal("text", key: key)]).count == 129)
    #expect(SipHash.Key.random() != SipHash.Key.random())
  }

  @Test(
    "hexadecimal text has leading zeros",
    arguments: [(0, "0000000000000000"), (.max, "ffffffffffffffff"), (0x1F, "000000000000001f")] as [(UInt64, String)])
  func hexadecimal(_ word: UInt64, _ text: String) {
    #expect(Hexadecimal.text(word) == text)
  }
}
