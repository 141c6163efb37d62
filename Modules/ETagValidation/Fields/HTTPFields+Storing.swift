internal import HTTPTypes

extension HTTPFields {
  /// Returns the fields without those that are about one connection (RFC 9111 §3.1, RFC 9110 §7.6.1).
  ///
  /// The fields that `Connection` names are removed too, except those that caches decide by. A sender must not name such fields,
  /// and obeying it would hide a `no-cache`.
  func withoutHopByHop() -> HTTPFields {
    let named = namedByConnection()
    var left = self
    left.removeAll { Self.isHopByHop($0.name.canonicalName) || named.contains($0.name) }
    return left
  }

  /// The fields of this message that `Connection` names and that may be removed.
  private func namedByConnection() -> [HTTPField.Name] {
    guard contains(.connection) else { return [] }
    var names: [HTTPField.Name] = []
    for line in self[fields: .connection] {
      // By far the most frequent value. Its field is removed for its name.
      if line.value == "keep-alive" { continue }
      for member in FieldList(line.value) {
        guard let name = HTTPField.Name(String(Substring(member))), !Self.decisive.contains(name.canonicalName), contains(name)
        else { continue }
        names.append(name)
      }
    }
    return names
  }

  /// These fields as a 304 (`self` is the stored answer's) updates them (RFC 9111 §3.2): what the 304 states replaces all values
  /// of that name.
  ///
  /// Kept are the fields without which the stored bytes would be others, and `ETag`, which labels them: no more may be left out
  /// (§3.2). `Date` and `Age` tell how old one message is: those of the earlier message never outlive it.
  func updated(by notModified: HTTPFields) -> HTTPFields {
    let news = notModified.withoutHopByHop().filter { !Self.isTiedToBytes($0.name.canonicalName) } as [HTTPField]
    if let updated = updated(atEndBy: news) { return updated }
    var merged = HTTPFields()
    merged.reserveCapacity(count + news.count)
    for field in self where field.name != .date && field.name != .age && !Self.names(news, field.name) {
      merged.append(field)
    }
    merged.append(contentsOf: news)
    return merged
  }

  /// The same, where an earlier 304 has put the same fields to the end already: what says the same stays where it is, and as a
  /// rule that is all but the date. Nil: they are not there.
  private func updated(atEndBy news: [HTTPField]) -> HTTPFields? {
    let end = count - news.count
    guard end >= 0 else { return nil }
    for index in 0..<end {
      let name = self[index].name
      if name == .date || name == .age || Self.names(news, name) { return nil }
    }
    var updated = self
    for (offset, line) in news.enumerated() {
      let known = self[end + offset]
      guard known.name.rawName == line.name.rawName else { return nil }
      if known.hasSameValue(as: line) { continue }
      // The same text in other bytes would not be put in its place.
      guard known != line else { return nil }
      updated[end + offset] = line
    }
    return updated
  }

  private static func names(_ fields: [HTTPField], _ name: HTTPField.Name) -> Bool { fields.contains { $0.name == name } }

  /// Takes out fields that an answer is to be stored without, given in lower case.
  mutating func leaveOut(_ names: [String]) {
    guard !names.isEmpty else { return }
    let names = Set(names)
    removeAll { names.contains($0.name.canonicalName) }
  }

  /// Whether as many more fit in: a collection of 65,535 fields traps.
  func hasRoom(for more: Int) -> Bool { count + more < Int(UInt16.max) }

  /// Told apart by length first: every field of every answer is looked up here.
  private static func isHopByHop(_ name: String) -> Bool {
    switch name.utf8.count {
    case 2: name == "te"
    case 7: name == "trailer" || name == "upgrade"
    case 10: name == "connection" || name == "keep-alive"
    case 16: name == "proxy-connection"
    case 17: name == "transfer-encoding"
    case 18: name == "proxy-authenticate"
    case 19: name == "proxy-authorization"
    case 25: name == "proxy-authentication-info"
    default: false
    }
  }

  /// The fields that caches decide by.
  static let decisive: Set<String> = [
    "age", "cache-control", "content-range", "date", "etag", "expires", "last-modified", "vary",
  ]

  /// Whether a field belongs to the stored bytes, however the origin describes them later: how they are coded, which part they
  /// are, how many, and their label (RFC 9111 §3.2). `Content-Digest` of an answer without content is that of nothing (RFC 9530
  /// §2).
  static func isTiedToBytes(_ name: String) -> Bool {
    switch name.utf8.count {
    case 4: name == "etag"
    case 13: name == "content-range"
    case 14: name == "content-length" || name == "content-digest"
    case 16: name == "content-encoding"
    default: false
    }
  }

  /// Whether a field describes the representation (RFC 9110 §8), or, as `ETag` does, labels it.
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
