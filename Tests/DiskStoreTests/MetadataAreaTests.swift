import CacheCore
import Foundation
import Testing

@testable import DiskStore

@Suite("The log of metadata")
struct MetadataAreaTests {
  private let revision = Revision(high: 1, low: 2)

  private func record(_ sequence: UInt64) -> [UInt8] {
    MetadataRecord.encoded(sequence: sequence, revision: revision, payload: Data("metadata".utf8))
  }

  /// Slots whose records claim everything behind them, and are what they claim in nothing.
  private func forged(slots: Int, of area: Int) -> [UInt8] {
    let record = record(9)
    return (0..<slots).flatMap { slot in
      var bytes = record
      let claim = min((area - slot) * MetadataRecord.slot - MetadataRecord.headLength, MetadataRecord.payloadLimit)
      withUnsafeBytes(of: UInt32(claim).littleEndian) { bytes.replaceSubrange(8..<12, with: $0) }
      return bytes
    }
  }

  private func newest(_ area: [UInt8]) -> UInt64? {
    area.withUnsafeBytes { MetadataArea.newest(in: $0, revision: revision)?.sequence }
  }

  @Test("finds the one whole record, however many others of its bound are torn")
  func torn() {
    let slots = MetadataArea.slotBound
    #expect(newest(forged(slots: slots - 1, of: slots) + record(7)) == 7)
    #expect(newest(forged(slots: slots, of: slots)) == nil)
  }

  @Test(
    "is damage where records claim each other's bytes many times over, which would take quadratic time", .timeLimit(.minutes(30)))
  func forged() {
    let slots = 4_000
    #expect(newest(forged(slots: slots - 1, of: slots) + record(7)) == nil)
  }

  @Test("finds a record behind a large one that is torn")
  func large() {
    let slots = MetadataRecord.slots(payload: MetadataRecord.payloadLimit)
    var large = MetadataRecord.encoded(sequence: 8, revision: revision, payload: Data(count: MetadataRecord.payloadLimit))
    large[large.count / 2] ^= 1
    #expect(large.count == slots * MetadataRecord.slot)
    #expect(newest(record(6) + large + record(7)) == 7)
  }
}
