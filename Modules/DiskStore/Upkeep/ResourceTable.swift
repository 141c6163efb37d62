internal import CacheCore

/// Entries by resource, with their number and the sum of their sizes.
struct ResourceTable: Sendable {
  private(set) var resources: [NameDigest: ResourceEntries] = [:]
  /// Bytes; ``Int64/max`` stands for more.
  var total: Int64 { Int64(clamping: sum) }
  /// Of eight million files with holes that are as large as an entry can be, the sizes add up to more than 64 bits hold.
  private var sum: Int128 = 0
  private(set) var count = 0

  init() {}

  init(minimumCapacity: Int) { resources.reserveCapacity(minimumCapacity) }

  init(_ entries: [EntryName: EntryIndex.Use]) {
    resources.reserveCapacity(entries.count)
    for (name, use) in entries {
      _ = resources[name.resource, default: ResourceEntries()].replace(name.member, use)
      sum += Int128(use.size)
    }
    count = entries.count
  }

  subscript(name: EntryName) -> EntryIndex.Use? { resources[name.resource]?[name.member] }

  /// - Returns: what was known before.
  @discardableResult
  mutating func set(_ name: EntryName, _ use: EntryIndex.Use) -> EntryIndex.Use? {
    // In place: a copy of the shelf would copy all its members.
    let known = resources[name.resource, default: ResourceEntries()].replace(name.member, use)
    sum += Int128(use.size - (known?.size ?? 0))
    if known == nil { count += 1 }
    return known
  }

  /// - Returns: what was known.
  @discardableResult
  mutating func remove(_ name: EntryName) -> EntryIndex.Use? {
    guard let place = resources.index(forKey: name.resource), let known = resources.values[place].replace(name.member, nil) else {
      return nil
    }
    if resources.values[place].isEmpty { resources.remove(at: place) }
    sum -= Int128(known.size)
    count -= 1
    return known
  }

  /// Changes what is known of an entry, if it is known.
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

/// What is known of one resource's entries.
struct ResourceEntries: Sendable {
  private var plain: EntryIndex.Use?
  private var members: [EntryName.Member: EntryIndex.Use] = [:]

  var isEmpty: Bool { plain == nil && members.isEmpty }

  var hasVariants: Bool { members.keys.contains { !$0.isTransform } }

  subscript(member: EntryName.Member?) -> EntryIndex.Use? { member.map { members[$0] } ?? plain }

  /// - Returns: what was there.
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
