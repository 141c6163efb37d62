import CacheCore
import Foundation
import Testing

@testable import DiskStore

@Suite("Disk store: the metadata log")
struct MetadataAreaTests {
  private let revision = Revision(high: 1, low: 2)

  private func record(_ sequence: UInt64) -> [UInt8] {
    MetadataRecord.encoded(sequence: sequence, revision: revision, payload: Data("metadata".utf8))
  }

  /// Returns slots whose invalid records claim all bytes behind them.
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

  @Test("the log finds the one intact record, however many others within its bound are torn")
  func torn() {
    let slots = MetadataArea.slotBound
    #expect(newest(forged(slots: slots - 1, of: slots) + record(7)) == 7)
    #expect(newest(forged(slots: slots, of: slots)) == nil)
  }

  @Test(
    "the log is damaged if reading its records would take quadratic time", .timeLimit(.minutes(30)))
  func forged() {
    let slots = 4_000
    #expect(newest(forged(slots: slots - 1, of: slots) + record(7)) == nil)
  }

  @Test("the log finds a record behind a large torn one")
  func large() {
    let slots = MetadataRecord.slots(payload: MetadataRecord.payloadLimit)
    var large = MetadataRecord.encoded(sequence: 8, revision: revision, payload: Data(count: MetadataRecord.payloadLimit))
    large[large.count / 2] ^= 1
    #expect(large.count == slots * MetadataRecord.slot)
    #expect(newest(record(6) + large + record(7)) == 7)
  }
}
