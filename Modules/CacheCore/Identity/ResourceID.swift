public import HTTPTypes

/// How the text of ``CacheKey/resource`` is made.
///
/// The effective URI (RFC 9110 §7.1) without fragment and user information, its scheme and host in lower case and a default port left out
/// (RFC 3986 §6.2.2, §6.2.3), or the caller's own key (presigned URLs); in front of it the partition (tenant), where there is one. The three kinds
/// can't be mistaken for each other, whatever a caller puts in: a control character, which no URI contains, tells them apart, and the partition carries its length.
public enum ResourceID {
  private static let mark = "\u{1F}"

  /// The resource that a request names.
  public static func make(uri: String, key: String? = nil, partition: String? = nil) -> String {
    let name = key.map { "\(mark)k\($0)" } ?? uri
    guard let partition, !partition.isEmpty else { return name }
    return "\(mark)p\(partition.utf8.count):\(partition)\(name)"
  }

  /// The resource as a person would write it: `partition/…` in front where there is one, no control characters.
  public static func readable(_ resource: String) -> String {
    var rest = Substring(resource)
    var text = ""
    if rest.hasPrefix("\(mark)p"), let colon = rest.firstIndex(of: ":"),
      let count = Int(rest[rest.index(rest.startIndex, offsetBy: 2)..<colon])
    {
      let start = rest.index(after: colon)
      if let end = rest.utf8.index(start, offsetBy: count, limitedBy: rest.endIndex) {
        text = "\(rest[start..<end]) / "
        rest = rest[end...]
      }
    }
    if rest.hasPrefix("\(mark)k") { rest = rest.dropFirst(2) }
    return text + rest
  }

  /// The effective URI of a request in normal form, or nil when the request names no absolute resource.
  public static func uri(of request: HTTPRequest) -> String? {
    guard let scheme = request.scheme?.lowercased() else { return nil }
    guard var authority = request.authority?.lowercased(), !authority.isEmpty else {
      // `file:///a` and `data:…` have no authority.
      return request.path.map { scheme == "data" ? "data:\($0)" : "\(scheme)://\($0)" }
    }
    if let at = authority.lastIndex(of: "@") { authority.removeSubrange(...at) }
    for (known, port) in [("http", ":80"), ("https", ":443")] where scheme == known && authority.hasSuffix(port) {
      authority.removeLast(port.count)
    }
    if authority.hasSuffix(":") { authority.removeLast() }
    let path = request.path.flatMap { $0.isEmpty ? nil : $0 } ?? "/"
    return "\(scheme)://\(authority)\(path)"
  }
}
