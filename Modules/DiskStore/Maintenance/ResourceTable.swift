internal import CacheCore

/// The entries by resource, with their number and total size. The total includes the folders of the resources.
struct ResourceTable: Sendable {
  private(set) var resources: [NameDigest: ResourceEntries] = [:]
  /// The total size in bytes, capped at ``Int64/max``.
  var total: Int64 { Int64(clamping: sum) }
  /// The sum. Eight million sparse files of the maximum size exceed 64 bits.
  private var sum: Int128 = 0
  private(set) var count = 0

  init() {}

  init(minimumCapacity: Int) { resources.reserveCapacity(minimumCapacity) }

  init(_ entries: [EntryName: EntryIndex.Use]) {
    resources.reserveCapacity(entries.count)
    for (name, use) in entries { set(name, use) }
  }

  /// Returns the size in bytes of the folder that an entry has for itself, or 0 if there is none.
  func folderSize(ifOnly name: EntryName) -> Int64 {
    name.member != nil && resources[name.resource]?.memberCount == 1 ? FileStatus.blockSize : 0
  }

  subscript(name: EntryName) -> EntryIndex.Use? { resources[name.resource]?[name.member] }

  /// - Returns: The previous record.
  @discardableResult
  mutating func set(_ name: EntryName, _ use: EntryIndex.Use) -> EntryIndex.Use? {
    // Updated in place, because a copy of the resource's entries would copy all its members.
    let known = resources[name.resource, default: ResourceEntries()].replace(name.member, use)
    sum += Int128(use.size - (known?.size ?? 0))
    if known == nil {
      count += 1
      sum += Int128(folderSize(ifOnly: name))
    }
    return known
  }

  /// - Returns: The removed record.
  @discardableResult
  mutating func remove(_ name: EntryName) -> EntryIndex.Use? {
    let folder = folderSize(ifOnly: name)
    guard let place = resources.index(forKey: name.resource), let known = resources.values[place].replace(name.member, nil) else {
      return nil
    }
    sum -= Int128(folder)
    if resources.values[place].isEmpty { resources.remove(at: place) }
    sum -= Int128(known.size)
    count -= 1
    return known
  }

  /// Changes the record of an entry, if it has one.
  @discardableResult
  mutating func update(_ name: EntryName, _ change: (inout EntryIndex.Use) -> Void) -> Bool {
    guard let place = resources.index(forKey: name.resource), var use = resources.values[place][name.member] else { return false }
    let before = use.size
    change(&use)
    sum += Int128(use.size - before)
    _ = resources.values[place].replace(name.member, use)
    return true
  }

  func forEach(_ body: (EntryName, EntryIndex.Use) -> Void) {
    for (resource, entries) in resources { entries.forEach { body(EntryName(resource: resource, member: $0), $1) } }
  }
}

/// The records of one resource's entries.
struct ResourceEntries: Sendable {
  private var plain: EntryIndex.Use?
  private var members: [EntryName.Member: EntryIndex.Use] = [:]

  var isEmpty: Bool { plain == nil && members.isEmpty }

  /// The number of entries in the resource's folder.
  var memberCount: Int { members.count }

  var hasVariants: Bool { members.keys.contains { !$0.isTransform } }

  var hasTransforms: Bool { members.keys.contains { $0.isTransform } }

  subscript(member: EntryName.Member?) -> EntryIndex.Use? { member.map { members[$0] } ?? plain }

  /// - Returns: The previous record.
  mutating func replace(_ member: EntryName.Member?, _ use: EntryIndex.Use?) -> EntryIndex.Use? {
    guard let member else {
      defer { plain = use }
      return plain
    }
    guard let use else { return members.removeValue(forKey: member) }
    return members.updateValue(use, forKey: member)
  }

  func forEach(_ body: (EntryName.Member?, EntryIndex.Use) -> Void) {
    if let plain { body(nil, plain) }
    for (member, use) in members { body(member, use) }
  }
}
