internal import CacheCore

/// The end of an entry's file: a log of metadata records, of which the valid one with the highest sequence counts.
///
/// A 304 appends a record and touches nothing else. When the log would outgrow its bound, writing goes on at its start, but never
/// over the newest valid record: at every instant one whole record is there, and a torn one is not taken for it.
struct MetadataArea {
  /// Slots that the area may take, unless four records of one entry need more.
  static let slotBound = 64
  /// Bytes beyond which no area of ours grows, with records of the largest size.
  static let lengthLimit = 8 * (MetadataRecord.payloadLimit + MetadataRecord.slot)

  /// Bytes of records that don't agree with their checksums, beyond which an area is damage, unless four times the area are more.
  /// Each append may leave one torn record, which the next writes over; but records that claim each other's bytes would be summed
  /// up again and again. An area within ``slotBound`` never has as many.
  static let vainLimit = 2 << 20

  /// The newest valid record.
  struct Newest {
    var firstSlot: Int
    var slots: Int
    var sequence: UInt64
    /// In bytes from the area's start.
    var payload: Range<Int>
  }

  /// Where the next record goes.
  struct Place: Equatable {
    var firstSlot: Int
    var sequence: UInt64
    /// The earlier records must reach the disk before this one is written, or a loss of power could take them and this one too.
    var wantsBarrier: Bool
  }

  /// The newest valid record; nil where there is none, or where more seem to have been torn than appends can tear: see
  /// ``vainLimit``.
  ///
  /// Linear in the area's length, whatever the records claim.
  static func newest(in area: UnsafeRawBufferPointer, revision: Revision) -> Newest? {
    var best: Newest?
    var slot = 0
    var vain = 0
    while slot * MetadataRecord.slot + MetadataRecord.headLength <= area.count {
      let start = slot * MetadataRecord.slot
      guard let found = MetadataRecord.parse(area.part(start..<area.count), revision: revision) else {
        vain += claimed(by: area.part(start..<area.count), revision)
        guard vain <= max(4 * area.count, vainLimit) else { return nil }
        slot += 1
        continue
      }
      let slots = MetadataRecord.slots(payload: found.payload.count)
      if best.map({ $0.sequence < found.sequence }) ?? true {
        let payload = start + found.payload.lowerBound..<start + found.payload.upperBound
        best = Newest(firstSlot: slot, slots: slots, sequence: found.sequence, payload: payload)
      }
      slot += slots
    }
    return best
  }

  /// Bytes that had to be summed up to see that a slot begins no valid record.
  private static func claimed(by slot: UnsafeRawBufferPointer, _ revision: Revision) -> Int {
    guard slot.integer(at: 0) == MetadataRecord.magic, slot.integer(at: 24) == revision.high,
      slot.integer(at: 32) == revision.low
    else { return 0 }
    let length = Int(clamping: slot.integer(at: 8, as: UInt32.self))
    return length <= min(MetadataRecord.payloadLimit, slot.count - MetadataRecord.headLength) ? length : 0
  }

  /// Where a record of `slots` slots goes after `newest`, in an area that has `areaSlots` slots now.
  static func place(slots: Int, after newest: Newest, areaSlots: Int) -> Place {
    let bound = max(slotBound, 4 * slots)
    let behind = newest.firstSlot + newest.slots
    let wraps = behind + slots > bound && slots <= newest.firstSlot
    let first = wraps ? 0 : behind
    // Whole halves of the log are known to be on the disk before the other half is written over.
    let changesHalf = first / (bound / 2) != newest.firstSlot / (bound / 2)
    return Place(firstSlot: first, sequence: newest.sequence &+ 1, wantsBarrier: first < areaSlots && changesHalf)
  }
}
