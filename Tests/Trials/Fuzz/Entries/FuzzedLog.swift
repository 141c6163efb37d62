import CacheCore

@testable import DiskStore

/// The metadata log of an entry that was read, to which a 304 appends.
struct FuzzedLog {
  private var area: [UInt8]
  private let newest: MetadataArea.Newest
  private let revision: Revision
  private let metadata: StoredMetadata

  /// Returns `nil` if a record may be inside another one, which is possible only with the entry's revision.
  init?(_ bytes: [UInt8], _ entry: EntryFile) {
    guard let start = Int(exactly: entry.header.metadataOffset), start < bytes.count else { return nil }
    area = Array(bytes[start...])
    (newest, revision, metadata) = (entry.newest, entry.header.revision, entry.metadata)
    let heads = stride(from: 0, to: area.count, by: MetadataRecord.slot).count { slot in
      area[slot...].starts(with: [0x45, 0x54, 0x4D, 0x52])
    }
    guard heads == records(in: area), newest.sequence < .max else { return nil }
  }

  private func records(in area: [UInt8]) -> Int {
    area.withUnsafeBytes { area in
      var (count, slot) = (0, 0)
      while slot * MetadataRecord.slot + MetadataRecord.headLength <= area.count {
        let record = MetadataRecord.parse(area.part(slot * MetadataRecord.slot..<area.count), revision: revision)
        count += record == nil ? 0 : 1
        slot += record.map { MetadataRecord.slots(payload: $0.payload.count) } ?? 1
      }
      return count
    }
  }

  /// Checks that an appended record is current, and that the one before it is current while the new one is half written.
  func append(tearing cut: Int) {
    let payload = metadata.encoded()
    let slots = (area.count + MetadataRecord.slot - 1) / MetadataRecord.slot
    let needed = MetadataRecord.slots(payload: payload.count)
    let place = MetadataArea.place(slots: needed, after: newest, areaSlots: slots)
    let own = newest.firstSlot..<newest.firstSlot + newest.slots
    precondition(!own.overlaps(place.firstSlot..<place.firstSlot + needed))
    let record = MetadataRecord.encoded(sequence: place.sequence, revision: revision, payload: payload)
    precondition(found(writing: record, at: place) == newest.sequence + 1)
    let torn = record.prefix(min(40 + cut, record.count - 1))
    let seen = found(writing: Array(torn), at: place)
    precondition(seen == newest.sequence || seen == newest.sequence + 1)
  }

  private func found(writing record: [UInt8], at place: MetadataArea.RecordLocation) -> UInt64? {
    var area = area
    let start = place.firstSlot * MetadataRecord.slot
    area += repeatElement(0, count: max(0, start + record.count - area.count))
    area.replaceSubrange(start..<start + record.count, with: record)
    return area.withUnsafeBytes { MetadataArea.newest(in: $0, revision: revision) }?.sequence
  }
}
