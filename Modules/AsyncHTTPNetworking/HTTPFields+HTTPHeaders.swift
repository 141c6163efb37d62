#if AsyncHTTP
internal import CacheCore
internal import HTTPTypes
internal import NIOHTTP1

extension HTTPFields {
  /// Fields in the order in which they came, repeated ones too. Names that are no tokens can't be said in HTTP, so they are
  /// dropped.
  ///
  /// NIO reads a value as UTF-8: a byte that is none has become U+FFFD before it gets here.
  init(received headers: HTTPHeaders) {
    self.init()
    reserveCapacity(headers.count)
    for (rawName, value) in headers {
      guard let name = HTTPField.Name(rawName) else { continue }
      append(HTTPField(name: name, value: value))
    }
  }
}

extension HTTPHeaders {
  /// Fields that are about one connection, not about the message (RFC 9110 §7.6.1), or that frame the body: both are the client's
  /// own affair, and HTTP/2 forbids most of them (RFC 9113 §8.2.2).
  private static let ownAffairs: Set<HTTPField.Name> = Set(
    [
      "Connection", "Keep-Alive", "Proxy-Connection", "TE", "Upgrade", "Transfer-Encoding", "Content-Length", "Trailer",
      ExactTarget.fieldName,
    ]
    .compactMap { HTTPField.Name($0) })

  /// Everything that is about the message, as it stands.
  init(sending fields: HTTPFields) {
    var dropped = Self.ownAffairs
    if let named = fields[.connection] {
      dropped.formUnion(named.split(separator: ",").compactMap { HTTPField.Name(String(Substring($0.utf8.trimmingBlanks()))) })
    }
    self.init()
    reserveCapacity(fields.count + 2)
    for field in fields where !dropped.contains(field.name) { add(name: field.name.rawName, value: field.value) }
  }
}
#endif
