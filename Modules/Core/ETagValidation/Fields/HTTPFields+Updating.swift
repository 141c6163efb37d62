internal import CacheCore
internal import HTTPTypes

extension HTTPFields {
  /// Returns the fields without those that concern a single connection (RFC 9111 §3.1, RFC 9110 §7.6.1).
  ///
  /// It also removes the fields that `Connection` lists, except those that caches depend on. A sender must not list those, and
  /// removing them would hide a `no-cache`.
  func withoutHopByHop() -> HTTPFields { endToEnd(keeping: Self.isDecisive) }

  /// Returns the fields except those with the given names in lower case.
  func without(_ names: Set<String>) -> HTTPFields { names.isEmpty ? self : removing(names.contains) }

  /// Returns these stored fields as a 304 updates them (RFC 9111 §3.2). A field of the 304 replaces all stored values of that
  /// name.
  ///
  /// Fields that describe the stored bytes remain, as does `ETag`, which labels them; no others may be excluded (§3.2). `Date`
  /// and `Age` state the age of one message, so the earlier values are always removed.
  func updated(by notModified: HTTPFields) -> HTTPFields {
    let newFields = notModified.withoutHopByHop().removing(Self.isTiedToBytes)
    if let updated = updated(atEndBy: newFields) { return updated }
    var merged = removing { $0 == "date" || $0 == "age" || newFields.names($0) }
    merged.append(contentsOf: newFields)
    return merged
  }

  /// Returns the updated fields if an earlier 304 has already moved the same fields to the end, or `nil` otherwise. Equal values
  /// stay in place, usually all except the date.
  private func updated(atEndBy newFields: HTTPFields) -> HTTPFields? {
    let end = count - newFields.count
    guard end >= 0 else { return nil }
    for offset in 0..<newFields.count where self[end + offset].name.rawName != newFields[offset].name.rawName { return nil }
    for position in 0..<end {
      let name = self[position].name.canonicalName
      if name == "date" || name == "age" || newFields.names(name) { return nil }
    }
    var updated = self
    for offset in 0..<newFields.count {
      let (known, line) = (self[end + offset], newFields[offset])
      if known.hasSameValue(as: line) { continue }
      // `HTTPFields` would ignore an assignment of an equal string with different bytes.
      guard known != line else { return nil }
      updated[end + offset] = line
    }
    return updated
  }

  /// Returns whether there is a field with a name in lower case.
  private func names(_ name: String) -> Bool { (0..<count).contains { self[$0].name.canonicalName == name } }

  /// Returns whether `more` fields can be added, because `HTTPFields` traps at 65,535 fields.
  func hasCapacity(for more: Int) -> Bool { count + more < Int(UInt16.max) }

  /// Returns whether caches depend on a field, given its name in lower case.
  static func isDecisive(_ name: String) -> Bool {
    switch name.utf8.count {
    case 3: name == "age"
    case 4: name == "date" || name == "etag" || name == "vary"
    case 7: name == "expires"
    case 13: name == "cache-control" || name == "content-range" || name == "last-modified"
    default: false
    }
  }

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
