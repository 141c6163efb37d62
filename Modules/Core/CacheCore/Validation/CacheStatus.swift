public import HTTPTypes

/// A description of how a cache handled a request, as a member of the `Cache-Status` field (RFC 9211).
///
/// ```swift
/// CacheStatus("Etagere", hitFor: .seconds(30)).description  // Etagere;hit;ttl=30
/// ```
public struct CacheStatus: Hashable, Sendable {
  /// The name of the cache, which identifies it in a chain of caches (§2).
  public var cache: String
  /// Whether the response came from the cache without a request to the origin (§2.1).
  public var isHit: Bool
  /// The reason why the request was forwarded, or `nil` if it was not (§2.2).
  public var forward: ForwardReason?
  /// The status of the response to the forwarded request, if the client receives another one. For example, a 304 that updated a
  /// stored response (§2.3).
  public var forwardStatus: Int?
  /// The remaining freshness lifetime, negative if the response is stale (§2.4). It is written in whole seconds.
  public var lifetimeLeft: Duration?
  /// Whether the response to the forwarded request was stored (§2.5).
  public var isStored = false
  /// Whether this request joined the forwarded request of another load (§2.6).
  public var isCollapsed = false
  /// The cache key of the response (§2.7).
  public var key: String?
  /// Additional information for people (§2.8).
  public var detail: String?

  /// Creates the status of a response from the cache.
  public init(_ cache: String, hitFor lifetimeLeft: Duration? = nil) {
    self.cache = cache
    self.lifetimeLeft = lifetimeLeft
    isHit = true
  }

  /// Creates the status of a response to a forwarded request.
  public init(_ cache: String, forwarded reason: ForwardReason, status: Int? = nil) {
    self.cache = cache
    forward = reason
    forwardStatus = status
    isHit = false
  }

  /// Creates the status of a response that the cache generated, such as a 504 if no request may be sent.
  public init(_ cache: String, generatedLocally detail: String) {
    self.cache = cache
    self.detail = detail
    isHit = false
  }

  package static let fieldName = HTTPField.Name("Cache-Status")

  /// Appends the member after those of caches that handled the response before (§2).
  public func append(to fields: inout HTTPFields) {
    // `HTTPFields` traps at 65,535 fields.
    guard fields.count + 1 < Int(UInt16.max), let name = Self.fieldName else { return }
    fields.append(HTTPField(name: name, value: description))
  }
}

extension CacheStatus: CustomStringConvertible {
  /// The member as it appears in the field (RFC 8941 §4.1).
  public var description: String {
    // Every response has one, and appending to a `String` is several times slower than appending bytes.
    var text: [UInt8] = []
    text.reserveCapacity(64)
    text += StructuredText.tokenOrString(cache).utf8
    if let forward {
      text += ";fwd=".utf8
      text += forward.rawValue.utf8
      if let forwardStatus {
        text += ";fwd-status=".utf8
        text += String(forwardStatus).utf8
      }
    } else if isHit {
      text += ";hit".utf8
    }
    if let lifetimeLeft {
      text += ";ttl=".utf8
      text += String(StructuredText.integer(lifetimeLeft.components.seconds)).utf8
    }
    if forward != nil, isStored { text += ";stored".utf8 }
    if forward != nil, isCollapsed { text += ";collapsed".utf8 }
    if let key { text += ";key=\(StructuredText.string(key))".utf8 }
    if let detail { text += ";detail=\(StructuredText.tokenOrString(detail))".utf8 }
    return String(decoding: text, as: UTF8.self)
  }
}

/// The reason why a cache forwarded a request (RFC 9211 §2.2).
public enum ForwardReason: String, Hashable, Sendable, CaseIterable {
  /// The cache was configured not to handle the request.
  case bypass
  /// The method does not allow a stored response.
  case method
  /// No response is stored for the resource.
  case uriMiss = "uri-miss"
  /// A response is stored, but only for other selecting fields (RFC 9111 §4.1).
  case varyMiss = "vary-miss"
  /// No usable response is stored, for a reason that no other case describes.
  case miss
  /// A fresh response is stored, but the request does not allow its use. Examples are a `Cache-Control` directive and a
  /// precondition that only the origin may evaluate.
  case request
  /// The stored response is stale, or must be revalidated before each use.
  case stale
  /// A partial response is stored, and the request needs more of it.
  case partial
}

/// A writer of the items of structured fields (RFC 8941 §4.1).
enum StructuredText {
  /// Returns the text as a token if it is one, or else as a string.
  static func tokenOrString(_ text: String) -> String { isToken(text) ? text : string(text) }

  /// Returns the text as a quoted string. Control characters and non-ASCII characters are percent-encoded by their bytes.
  static func string(_ text: String) -> String {
    var quoted = "\""
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): quoted += "\\\(Character(Unicode.Scalar(byte)))"
      case 0x20...0x7E: quoted.unicodeScalars.append(Unicode.Scalar(byte))
      default: quoted += String(decoding: byte.percentEncoded, as: UTF8.self)
      }
    }
    return quoted + "\""
  }

  /// Returns the number, clamped to the fifteen digits of a structured integer.
  static func integer(_ number: Int64) -> Int64 { min(max(number, -999_999_999_999_999), 999_999_999_999_999) }

  private static func isToken(_ text: String) -> Bool {
    guard let first = text.utf8.first, (0x61...0x7A).contains(first | 0x20) || first == UInt8(ascii: "*") else { return false }
    return text.utf8.allSatisfy { $0.isTokenByte || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") }
  }
}

/// The tags with which an origin groups responses for purging: `Cache-Tag`, a list separated by commas, and `Surrogate-Key`, one
/// separated by spaces.
///
/// No RFC defines these fields, but content delivery networks read them. Tags are compared byte by byte.
package struct CacheTags: Hashable, Sendable {
  /// The distinct tags.
  package let names: Set<String>

  /// Creates the set of tags in a response's fields. Empty members are ignored.
  package init(_ fields: HTTPFields) {
    var names: Set<String> = []
    for field in fields {
      let isList: Bool
      switch field.name.canonicalName {
      case "cache-tag": isList = true
      case "surrogate-key": isList = false
      default: continue
      }
      let separator: (UInt8) -> Bool = isList ? { $0 == 0x2C } : { $0 == 0x20 || $0 == 0x09 }
      for member in field.value.utf8.split(whereSeparator: separator) {
        let name = member.trimmingBlanks()
        if !name.isEmpty { names.insert(String(Substring(name))) }
      }
    }
    self.names = names
  }

  /// Returns whether the response has the tag.
  package func contains(_ name: String) -> Bool { names.contains(name) }
}
