internal import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The stable binary form of metadata, which every durable store of this package writes: a version byte, then tagged parts.
///
/// A part that a later version adds is skipped by an earlier one; `Docs/DiskFormat.md` lists the tags.
extension StoredMetadata {
  private enum Tag {
    static let request: UInt8 = 1
    static let response: UInt8 = 2
    static let trailers: UInt8 = 3
    static let times: UInt8 = 4
    static let bodyLength: UInt8 = 5
    static let revision: UInt8 = 6
    static let facts: UInt8 = 7
    static let expiration: UInt8 = 8
  }

  private static let codingVersion: UInt8 = 1

  /// The metadata as bytes.
  public func encoded() -> Data {
    var writer = ByteWriter()
    writer.integer(Self.codingVersion)
    writer.part(Tag.request) { part in
      part.text(request.method.rawValue)
      part.text(request.scheme ?? "")
      part.text(request.authority ?? "")
      part.text(request.path ?? "")
      part.fields(request.headerFields)
    }
    writer.part(Tag.response) { part in
      part.integer(UInt16(response.status.code))
      part.text(response.status.reasonPhrase)
      part.fields(response.headerFields)
    }
    if let trailers { writer.part(Tag.trailers) { $0.fields(trailers) } }
    writer.part(Tag.times) { part in
      part.integer(requestTime.nanoseconds)
      part.integer(responseTime.nanoseconds)
    }
    if let bodyLength { writer.part(Tag.bodyLength) { $0.integer(bodyLength) } }
    writer.part(Tag.revision) { part in
      part.integer(revision.high)
      part.integer(revision.low)
    }
    if let expiration { writer.part(Tag.expiration) { $0.expiration(expiration) } }
    // A part that every encoding has comes last, so that none that was cut short can pass for a whole one.
    writer.part(Tag.facts) { part in
      part.integer(facts.bornAt.nanoseconds)
      part.integer(facts.freshUntil.nanoseconds)
      part.integer(UInt8(facts.alwaysAsk ? 1 : 0))
      part.optional(facts.servesStaleUntil)
      part.optional(facts.servesOfflineUntil)
    }
    return Data(writer.bytes)
  }

  /// Metadata of its bytes; nil when they are not whole, of a version that is not known, or state what can't be: a length below zero.
  public init?(decoding data: some Sequence<UInt8>) {
    var reader = ByteReader(data)
    guard reader.integer(UInt8.self) == Self.codingVersion else { return nil }
    var request: HTTPRequest?
    var response: HTTPResponse?
    var trailers: HTTPFields?
    var times: (Timestamp, Timestamp)?
    var bodyLength: Int64?
    var revision: Revision?
    var facts: CachingFacts?
    var expiration: Expiration?
    while !reader.isAtEnd {
      guard let tag = reader.integer(UInt8.self), let bytes = reader.counted() else { return nil }
      var part = ByteReader(bytes)
      switch tag {
      case Tag.request:
        guard let head = part.request() else { return nil }
        request = head
      case Tag.response:
        guard let head = part.response() else { return nil }
        response = head
      case Tag.trailers:
        guard let fields = part.fields() else { return nil }
        trailers = fields
      case Tag.times:
        guard let sent = part.timestamp(), let received = part.timestamp() else { return nil }
        times = (sent, received)
      case Tag.bodyLength:
        guard let length = part.integer(Int64.self), length >= 0 else { return nil }
        bodyLength = length
      case Tag.revision:
        guard let high = part.integer(UInt64.self), let low = part.integer(UInt64.self) else { return nil }
        revision = Revision(high: high, low: low)
      case Tag.facts:
        guard let known = part.facts() else { return nil }
        facts = known
      case Tag.expiration:
        guard let end = part.expiration() else { return nil }
        expiration = end
      default: continue
      }
    }
    guard let request, let response, let times, let revision, let facts else { return nil }
    self.init(
      request: request, response: response, trailers: trailers, requestTime: times.0, responseTime: times.1,
      bodyLength: bodyLength, revision: revision, facts: facts, expiration: expiration)
  }
}

extension ByteWriter {
  fileprivate mutating func part(_ tag: UInt8, _ write: (inout ByteWriter) -> Void) {
    var inner = ByteWriter()
    write(&inner)
    integer(tag)
    counted(inner.bytes)
  }

  fileprivate mutating func fields(_ fields: HTTPFields) {
    integer(UInt32(truncatingIfNeeded: fields.count))
    for field in fields {
      text(field.name.rawName)
      field.withUnsafeBytesOfValue { counted($0) }
    }
  }

  fileprivate mutating func optional(_ time: Timestamp?) {
    integer(UInt8(time == nil ? 0 : 1))
    if let time { integer(time.nanoseconds) }
  }

  fileprivate mutating func expiration(_ expiration: Expiration) {
    switch expiration {
    case .never: integer(UInt8(0))
    case .after(let duration):
      integer(UInt8(1))
      integer(duration.saturatedNanoseconds)
    case .at(let time):
      integer(UInt8(2))
      integer(time.nanoseconds)
    }
  }
}

extension ByteReader {
  fileprivate mutating func timestamp() -> Timestamp? { integer(Int64.self).map(Timestamp.init(nanoseconds:)) }

  fileprivate mutating func fields() -> HTTPFields? {
    guard let count = integer(UInt32.self) else { return nil }
    var fields = HTTPFields()
    for _ in 0..<count {
      guard let rawName = text(), let name = HTTPField.Name(rawName), let value = counted() else { return nil }
      fields.append(HTTPField(name: name, value: value))
    }
    return fields
  }

  fileprivate mutating func request() -> HTTPRequest? {
    guard let rawMethod = text(), let method = HTTPRequest.Method(rawMethod), let scheme = text(), let authority = text(),
      let path = text(), let fields = fields()
    else { return nil }
    return HTTPRequest(
      method: method, scheme: scheme.isEmpty ? nil : scheme, authority: authority.isEmpty ? nil : authority,
      path: path.isEmpty ? nil : path, headerFields: fields)
  }

  fileprivate mutating func response() -> HTTPResponse? {
    guard let code = integer(UInt16.self), (0...999).contains(code), let reason = text(), let fields = fields() else {
      return nil
    }
    return HTTPResponse(status: HTTPResponse.Status(code: Int(code), reasonPhrase: reason), headerFields: fields)
  }

  fileprivate mutating func optionalTimestamp() -> Timestamp?? {
    switch integer(UInt8.self) {
    case 0: .some(nil)
    case 1: timestamp().map { .some($0) }
    default: nil
    }
  }

  fileprivate mutating func facts() -> CachingFacts? {
    guard let bornAt = timestamp(), let freshUntil = timestamp(), let alwaysAsk = integer(UInt8.self),
      let stale = optionalTimestamp(), let offline = optionalTimestamp()
    else { return nil }
    return CachingFacts(
      bornAt: bornAt, freshUntil: freshUntil, alwaysAsk: alwaysAsk != 0, servesStaleUntil: stale, servesOfflineUntil: offline)
  }

  fileprivate mutating func expiration() -> Expiration? {
    switch integer(UInt8.self) {
    case 0: .never
    case 1: integer(Int64.self).map { .after(.nanoseconds($0)) }
    case 2: timestamp().map { .at($0) }
    default: nil
    }
  }
}
