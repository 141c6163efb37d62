internal import HTTPTypes

extension HTTPFields {
  /// Without the fields that are about one connection (RFC 9111 §3.1, RFC 9110 §7.6.1).
  ///
  /// What `Connection` names goes too, but not what caches decide by: a sender must not name such fields, and to obey it would hide a `no-cache`.
  func withoutHopByHop() -> HTTPFields {
    var named: [String] = []
    for line in self[values: .connection] {
      for name in FieldList(line) {
        let name = Substring(name).lowercased()
        if !Self.decisive.contains(name) { named.append(name) }
      }
    }
    return filter { field in
      let name = field.name.canonicalName
      return !Self.hopByHop.contains(name) && !named.contains(name)
    }
  }

  /// These fields as a 304 (`self` is the stored answer's) updates them (RFC 9111 §3.2): what the 304 states replaces all values of that name.
  ///
  /// Kept are the fields that describe the stored bytes, and `ETag`, which labels them. `Date` and `Age` tell how old one message is: those of the
  /// earlier message never outlive it.
  func updated(by notModified: HTTPFields) -> HTTPFields {
    let news = notModified.withoutHopByHop().filter { !Self.describesBytes.contains($0.name.canonicalName) }
    var replaced: Set<String> = ["date", "age"]
    for field in news { replaced.insert(field.name.canonicalName) }
    var merged = filter { !replaced.contains($0.name.canonicalName) }
    merged.append(contentsOf: news)
    return merged
  }

  /// Takes out fields that an answer is to be stored without, given in lower case.
  mutating func leaveOut(_ names: [String]) {
    guard !names.isEmpty else { return }
    let names = Set(names)
    removeAll { names.contains($0.name.canonicalName) }
  }

  /// Whether as many more fit in: a collection of 65,535 fields traps.
  func hasRoom(for more: Int) -> Bool { count + more < Int(UInt16.max) }

  private static let hopByHop: Set<String> = [
    "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization", "proxy-connection",
    "te",
    "trailer", "transfer-encoding", "upgrade",
  ]

  static let decisive: Set<String> = [
    "age", "cache-control", "content-range", "date", "etag", "expires", "last-modified", "vary",
  ]

  static let describesBytes: Set<String> = [
    "content-digest", "content-encoding", "content-language", "content-length", "content-md5", "content-range", "content-type",
    "digest", "etag", "repr-digest",
  ]
}
