internal import CacheCore
internal import HTTPTypes

extension HTTPFields {
  /// Returns the fields without those that concern a single connection (RFC 9111 §3.1, RFC 9110 §7.6.1).
  ///
  /// It also removes the fields that `Connection` lists, except those that caches depend on. A sender must not list those, and
  /// removing them would hide a `no-cache`.
  func withoutHopByHop() -> HTTPFields {
    let named = namedByConnection()
    var left = self
    left.removeAll { Self.isHopByHop($0.name.canonicalName) || named.contains($0.name) }
    return left
  }

  /// Returns the names that `Connection` lists and that may be removed.
  private func namedByConnection() -> [HTTPField.Name] {
    guard contains(.connection) else { return [] }
    var names: [HTTPField.Name] = []
    for line in self[fields: .connection] {
      // This is by far the most frequent value. Its field is removed by its name anyway.
      if line.value == "keep-alive" { continue }
      for member in FieldList(line.value) {
        guard let name = HTTPField.Name(String(Substring(member))), !Self.decisive.contains(name.canonicalName), contains(name)
        else { continue }
        names.append(name)
      }
    }
    return names
  }

  /// Returns these stored fields as a 304 updates them (RFC 9111 §3.2). A field of the 304 replaces all stored values of that
  /// name.
  ///
  /// Fields that describe the stored bytes remain, as does `ETag`, which labels them; no others may be excluded (§3.2). `Date`
  /// and `Age` state the age of one message, so the earlier values are always removed.
  func updated(by notModified: HTTPFields) -> HTTPFields {
    let newFields = notModified.withoutHopByHop().filter { !Self.isTiedToBytes($0.name.canonicalName) } as [HTTPField]
    if let updated = updated(atEndBy: newFields) { return updated }
    var merged = HTTPFields()
    merged.reserveCapacity(count + newFields.count)
    for field in self where field.name != .date && field.name != .age && !Self.names(newFields, field.name) {
      merged.append(field)
    }
    merged.append(contentsOf: newFields)
    return merged
  }

  /// Returns the updated fields if an earlier 304 has already moved the same fields to the end, or `nil` otherwise. Equal values
  /// stay in place, usually all except the date.
  private func updated(atEndBy newFields: [HTTPField]) -> HTTPFields? {
    let end = count - newFields.count
    guard end >= 0 else { return nil }
    for index in 0..<end {
      let name = self[index].name
      if name == .date || name == .age || Self.names(newFields, name) { return nil }
    }
    var updated = self
    for (offset, line) in newFields.enumerated() {
      let known = self[end + offset]
      guard known.name.rawName == line.name.rawName else { return nil }
      if known.hasSameValue(as: line) { continue }
      // `HTTPFields` would ignore an assignment of an equal string with different bytes.
      guard known != line else { return nil }
      updated[end + offset] = line
    }
    return updated
  }

  private static func names(_ fields: [HTTPField], _ name: HTTPField.Name) -> Bool { fields.contains { $0.name == name } }

  /// Removes the fields, given in lower case, that a response must be stored without.
  mutating func leaveOut(_ names: [String]) {
    guard !names.isEmpty else { return }
    let names = Set(names)
    removeAll { names.contains($0.name.canonicalName) }
  }

  /// Returns whether `more` fields can be added, because `HTTPFields` traps at 65,535 fields.
  func hasCapacity(for more: Int) -> Bool { count + more < Int(UInt16.max) }

  /// The fields that caches depend on.
  static let decisive: Set<String> = [
    "age", "cache-control", "content-range", "date", "etag", "expires", "last-modified", "vary",
  ]

  /// Returns whether a field belongs to the stored bytes regardless of later metadata: their coding, range, length and label (RFC
  /// 9111 §3.2). The `Content-Digest` of a response without content is that of empty content (RFC 9530 §2).
  static func isTiedToBytes(_ name: String) -> Bool {
    switch name.utf8.count {
    case 4: name == "etag"
    case 13: name == "content-range"
    case 14: name == "content-length" || name == "content-digest"
    case 16: name == "content-encoding"
    default: false
    }
  }

  /// Returns whether a field describes or labels the representation (RFC 9110 §8).
  static func describesBytes(_ name: String) -> Bool {
    switch name.utf8.count {
    case 6: name == "digest"
    case 11: name == "content-md5" || name == "repr-digest"
    case 12: name == "content-type"
    case 16: name == "content-language" || isTiedToBytes(name)
    default: isTiedToBytes(name)
    }
  }
}
