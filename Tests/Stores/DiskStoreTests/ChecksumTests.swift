import CEtagereChecksum
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Disk store: checksums")
struct ChecksumTests {
  private func hardware(_ data: Data, _ crc: UInt32 = 0) -> UInt32 {
    data.withUnsafeBytes { cchecksum_crc32c(crc, $0.baseAddress, $0.count) }
  }

  private func instruction(_ data: Data, _ crc: UInt32 = 0) -> UInt32 {
    data.withUnsafeBytes { cchecksum_crc32c_instruction(crc, $0.baseAddress, $0.count) }
  }

  private func tables(_ data: Data, _ crc: UInt32 = 0) -> UInt32 {
    data.withUnsafeBytes { cchecksum_crc32c_portable(crc, $0.baseAddress, $0.count) }
  }

  /// RFC 3720 appendix B.4, and the check value of the CRC catalogs.
  static let known: [(Data, UInt32)] = [
    (Data(repeating: 0, count: 32), 0x8A91_36AA),
    (Data(repeating: 0xFF, count: 32), 0x62A8_AB43),
    (Data(0..<32), 0x46DD_794E),
    (Data((0..<32).reversed()), 0x113F_DB5C),
    (Data("123456789".utf8), 0xE306_9283),
    (Data(), 0),
  ]

  @Test("known inputs have the published checksums", arguments: known)
  func knownInputs(input: Data, checksum: UInt32) {
    #expect(hardware(input) == checksum)
    #expect(instruction(input) == checksum)
    #expect(tables(input) == checksum)
  }

  @Test("multiplication, the instruction and the tables agree on every length and alignment")
  func agreement() {
    let data = bytes(70_000, seed: 7)
    let lengths = Array(0...300) + [511, 512, 513, 767, 768, 769, 4096, 12_287, 12_288, 12_289, 24_577, 65_535, 65_536, 65_537]
    for length in lengths {
      for offset in 0..<9 {
        let part = Data(data[offset..<offset + length])
        #expect(hardware(part) == tables(part), "\(length) bytes from \(offset)")
        #expect(instruction(part) == tables(part), "\(length) bytes from \(offset)")
        let unaligned = data.withUnsafeBytes { bytes in
          cchecksum_crc32c(0, bytes.baseAddress.map { $0 + offset }, length)
        }
        #expect(unaligned == tables(part))
      }
    }
  }

  @Test("a checksum can be computed piece by piece", arguments: [1, 7, 8, 255, 4096, 12_288, 50_000])
  func pieces(size: Int) {
    let data = bytes(100_003, seed: 3)
    var one: UInt32 = 0
    var other: UInt32 = 0
    var start = 0
    while start < data.count {
      let piece = Data(data[start..<min(start + size, data.count)])
      one = hardware(piece, one)
      other = tables(piece, other)
      start += size
    }
    #expect(one == hardware(data))
    #expect(other == one)
  }
}
