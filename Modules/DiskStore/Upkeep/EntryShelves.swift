internal import CacheCore

/// Entries by resource, with their number and the sum of their sizes.
struct EntryShelves: Sendable {
  private(set) var resources: [NameDigest: EntryShelf] = [:]
  /// Bytes.
  private(set) var total: Int64 = 0
  private(set) var count = 0

  init() {}

  init(_ entries: [EntryName: EntryIndex.Use]) {
    resources.reserveCapacity(entries.count)
    for (name, use) in entries {
      resources[name.resource, default: EntryShelf()][name.member] = use
      total += use.size
    }
    count = entries.count
  }

  subscript(name: EntryName) -> EntryIndex.Use? { resources[name.resource]?[name.member] }

  mutating func set(_ name: EntryName, _ use: EntryIndex.Use?) {
    let old = self[name]
    guard use != nil || old != nil else { return }
    // In place: a copy of the shelf would copy all its members.
    resources[name.resource, default: EntryShelf()][name.member] = use
    if use == nil, resources[name.resource]?.isEmpty == true { resources[name.resource] = nil }
    total += (use?.size ?? 0) - (old?.size ?? 0)
    count += (use == nil ? 0 : 1) - (old == nil ? 0 : 1)
  }

  /// Notes a use, and the size that was seen; false when the entry is not known.
  mutating func use(_ name: EntryName, at time: Timestamp, size: Int64? = nil) -> Bool {
    guard let known = self[name] else { return false }
    resources[name.resource]?[name.member] = EntryIndex.Use(size: size ?? known.size, last: time)
    total += (size ?? known.size) - known.size
    return true
  }

  /// Takes later uses over.
  mutating func takeUses(of other: EntryShelves) {
    other.forEach { name, use in
      if let last = self[name]?.last, last < use.last { _ = self.use(name, at: use.last) }
    }
  }

  func forEach(_ body: (EntryName, EntryIndex.Use) -> Void) {
    for (resource, shelf) in resources { shelf.forEach { body(EntryName(resource: resource, member: $0), $1) } }
  }
}

/// What is known of one resource's entries.
struct EntryShelf: Sendable {
  private var plain: EntryIndex.Use?
  private var members: [EntryName.Member: EntryIndex.Use] = [:]

  var isEmpty: Bool { plain == nil && members.isEmpty }

  subscript(member: EntryName.Member?) -> EntryIndex.Use? {
    get { member.map { members[$0] } ?? plain }
    set { if let member { members[member] = newValue } else { plain = newValue } }
  }

  func forEach(_ body: (EntryName.Member?, EntryIndex.Use) -> Void) {
    if let plain { body(nil, plain) }
    for (member, use) in members { body(member, use) }
  }
}
