internal import CacheCore

/// The end of an entry's file: a log of metadata records, of which the valid one with the highest sequence counts.
///
/// A 304 appends a record and touches nothing else. When the log would outgrow its bound, writing goes on at its start, but never over the newest
/// valid record: at every instant one whole record is there, and a torn one is not taken for it.
struct MetadataArea {
  /// Slots that the area may take, unless four records of one entry need more.
  static let slotBound = 64
  /// Bytes beyond which no area of ours grows, with records of the largest size.
  static let lengthLimit = 8 * (MetadataRecord.payloadLimit + MetadataRecord.slot)

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

  static func newest(in area: UnsafeRawBufferPointer, revision: Revision) -> Newest? {
    var best: Newest?
    var slot = 0
    while slot * MetadataRecord.slot + MetadataRecord.headLength <= area.count {
      let start = slot * MetadataRecord.slot
      guard let found = MetadataRecord.parse(area.part(start..<area.count), revision: revision) else {
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
