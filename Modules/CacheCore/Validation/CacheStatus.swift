public import HTTPTypes

/// How a cache handled a request: one member of the `Cache-Status` field (RFC 9211).
///
/// ```swift
/// CacheStatus("Etagere", hitFor: .seconds(30)).description  // Etagere;hit;ttl=30
/// ```
public struct CacheStatus: Hashable, Sendable {
  /// The cache's name, without which a chain of caches can't be told apart (§2).
  public var cache: String
  /// It was answered from what is stored (§2.1).
  public var isHit: Bool
  /// Why the request was forwarded; nil: it was not (§2.2).
  public var forward: ForwardReason?
  /// The status of the answer to the forwarded request, where it is not the one that is sent: the 304 that freshened a stored
  /// answer (§2.3).
  public var forwardStatus: Int?
  /// How long the answer stays fresh, negative when it is stale (§2.4); told in whole seconds.
  public var lifetimeLeft: Duration?
  /// The answer to the forwarded request was stored (§2.5).
  public var isStored = false
  /// The forwarded request was another one's, which this one joined (§2.6).
  public var isCollapsed = false
  /// What the answer is filed under (§2.7).
  public var key: String?
  /// Anything else, for people (§2.8).
  public var detail: String?

  /// An answer from what is stored.
  public init(_ cache: String, hitFor lifetimeLeft: Duration? = nil) {
    self.cache = cache
    self.lifetimeLeft = lifetimeLeft
    isHit = true
  }

  /// An answer to a forwarded request.
  public init(_ cache: String, forwarded reason: ForwardReason, status: Int? = nil) {
    self.cache = cache
    forward = reason
    forwardStatus = status
    isHit = false
  }

  /// An answer that the cache made itself, neither from what is stored nor by asking: a 504 where nobody may be asked.
  public init(_ cache: String, madeHere detail: String) {
    self.cache = cache
    self.detail = detail
    isHit = false
  }

  private static let fieldName = HTTPField.Name("Cache-Status")

  /// Appends the member behind those of the caches that the answer has passed already (§2).
  public func append(to fields: inout HTTPFields) {
    // A collection of 65,535 fields traps.
    guard fields.count + 1 < Int(UInt16.max), let name = Self.fieldName else { return }
    fields.append(HTTPField(name: name, value: description))
  }
}

extension CacheStatus: CustomStringConvertible {
  /// The member as the field has it (RFC 8941 §4.1).
  public var description: String {
    // Bytes: every answer has one, and a text that grows costs several times as much.
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
