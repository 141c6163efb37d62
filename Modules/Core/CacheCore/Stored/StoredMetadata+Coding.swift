internal import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The stable binary form of metadata, which every durable store of this package writes: a version byte, followed by tagged
/// parts.
///
/// An earlier version skips the parts that a later one adds. [DiskFormat](doc:/DiskStore/DiskFormat) lists the tags.
extension StoredMetadata {
  private enum Tag {
    static let request: UInt8 = 1
    static let response: UInt8 = 2
    static let trailers: UInt8 = 3
    static let times: UInt8 = 4
    static let bodyLength: UInt8 = 5
    static let revision: UInt8 = 6
    static let freshness: UInt8 = 7
    static let expiration: UInt8 = 8
  }

  private static let codingVersion: UInt8 = 1
  /// The maximum number of fields in a stored header. ``HTTPFields`` traps at 65,535, and a served response gets further fields.
  fileprivate static let fieldLimit = 16_384

  /// Returns the encoded metadata.
  public func encoded() -> Data {
    var writer = ByteWriter()
    encode(into: &writer)
    return Data(writer.bytes)
  }

  /// The usual number of encoded bytes.
  package var likelyEncodedCount: Int {
    var count = 256
    for fields in [request.headerFields, response.headerFields, trailers ?? [:]] {
      for field in fields { count += 8 + field.name.rawName.utf8.count + field.value.utf8.count }
    }
    return count
  }

  /// Appends the encoded metadata.
  package func encode(into writer: inout ByteWriter) {
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
    // The last part is one that every encoding has, so that a truncated encoding is never accepted.
    writer.part(Tag.freshness) { part in
      part.integer(freshness.generatedAt.nanoseconds)
      part.integer(freshness.freshUntil.nanoseconds)
      part.integer(UInt8(freshness.requiresRevalidation ? 1 : 0))
      part.optional(freshness.staleWhileRevalidateUntil)
      part.optional(freshness.staleIfErrorUntil)
    }
  }

  /// Creates metadata from its encoded bytes. Returns `nil` if they are incomplete, have an unknown version or contain an invalid
  /// value, such as a negative length.
  public init?(decoding data: some Sequence<UInt8>) {
    let metadata =
      data.withContiguousStorageIfAvailable { StoredMetadata(decoding: UnsafeRawBufferPointer($0)) }
      ?? Array(data).withUnsafeBytes { StoredMetadata(decoding: $0) }
    guard let metadata else { return nil }
    self = metadata
  }

  /// Creates metadata from bytes in memory, which it copies. All bytes are checked now, but the heads are decoded at their first
  /// use.
  package init?(decoding bytes: UnsafeRawBufferPointer) {
    var reader = RawByteReader(bytes)
    guard reader.integer(UInt8.self) == Self.codingVersion else { return nil }
    var request: Range<Int>?
    var response: Range<Int>?
    var trailers: Range<Int>?
    var times: (Timestamp, Timestamp)?
    var bodyLength: Int64?
    var revision: Revision?
    var freshness: Freshness?
    var expiration: Expiration?
    while !reader.isAtEnd {
      guard let tag = reader.integer(UInt8.self), let content = reader.counted() else { return nil }
      let place = bytes.count - reader.count - content.count..<bytes.count - reader.count
      var part = RawByteReader(content)
      switch tag {
      case Tag.request:
        guard part.checkRequest() else { return nil }
        request = place
      case Tag.response:
        guard part.checkResponse() else { return nil }
        response = place
      case Tag.trailers:
        guard part.checkFields() else { return nil }
        trailers = place
      case Tag.times:
        guard let sent = part.timestamp(), let received = part.timestamp() else { return nil }
        times = (sent, received)
      case Tag.bodyLength:
        guard let length = part.integer(Int64.self), length >= 0 else { return nil }
        bodyLength = length
      case Tag.revision:
        guard let high = part.integer(UInt64.self), let low = part.integer(UInt64.self) else { return nil }
        revision = Revision(high: high, low: low)
      case Tag.freshness:
        guard let known = part.freshness() else { return nil }
        freshness = known
      case Tag.expiration:
        guard let end = part.expiration() else { return nil }
        expiration = end
      default: continue
      }
    }
    guard let request, let response, let times, let revision, let freshness else { return nil }
    let heads = EncodedHeads(bytes, .init(request: request, response: response, trailers: trailers))
    self.init(
      heads: heads, requestTime: times.0, responseTime: times.1, bodyLength: bodyLength, revision: revision, freshness: freshness,
      expiration: expiration)
  }
}

extension ByteWriter {
  fileprivate mutating func part(_ tag: UInt8, _ write: (inout ByteWriter) -> Void) {
    integer(tag)
    let place = bytes.count
    integer(UInt32(0))
    write(&self)
    overwrite(UInt32(truncatingIfNeeded: bytes.count - place - 4), at: place)
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

extension RawByteReader {
  fileprivate mutating func timestamp() -> Timestamp? { integer(Int64.self).map(Timestamp.init(nanoseconds:)) }

  private typealias Bytes = UnsafeRawBufferPointer

  /// Calls `body` for each field. Returns `false` at the first invalid field, after the valid ones.
  private mutating func forEachField(_ body: (_ name: Bytes, _ value: Bytes) -> Void) -> Bool {
    guard let count = integer(UInt32.self), count <= StoredMetadata.fieldLimit else { return false }
    for _ in 0..<count {
      guard let name = token(), let value = counted() else { return false }
      body(name, value)
    }
    return true
  }

  fileprivate mutating func checkFields() -> Bool { forEachField { _, _ in } }

  /// Returns fields that have been checked.
  mutating func fields() -> HTTPFields {
    var fields = HTTPFields()
    _ = forEachField { name, value in
      guard let name = HTTPField.Name(name.utf8Text) else { return }
      fields.append(HTTPField(name: name, value: value))
    }
    return fields
  }

  private struct RequestLine { let method, scheme, authority, path: UnsafeRawBufferPointer }

  private mutating func requestLine() -> RequestLine? {
    guard let method = token(), let scheme = text(), let authority = text(), let path = text() else { return nil }
    return RequestLine(method: method, scheme: scheme, authority: authority, path: path)
  }

  fileprivate mutating func checkRequest() -> Bool { requestLine() != nil && checkFields() }

  /// Returns a request that has been checked.
  mutating func request() -> HTTPRequest {
    let line = requestLine()
    func text(_ bytes: UnsafeRawBufferPointer?) -> String? { bytes.flatMap { $0.isEmpty ? nil : $0.utf8Text } }
    return HTTPRequest(
      method: text(line?.method).flatMap { HTTPRequest.Method($0) } ?? .get, scheme: text(line?.scheme),
      authority: text(line?.authority), path: text(line?.path), headerFields: fields())
  }

  private mutating func statusLine() -> (code: Int, reason: UnsafeRawBufferPointer)? {
    // Only a final response is stored (RFC 9110 §15), and neither ``HTTPResponse`` nor an engine accepts every number.
    guard let code = integer(UInt16.self), (200...999).contains(code), let reason = text() else { return nil }
    return (Int(code), reason)
  }

  fileprivate mutating func checkResponse() -> Bool { statusLine() != nil && checkFields() }

  /// Returns a response that has been checked.
  mutating func response() -> HTTPResponse {
    let line = statusLine()
    let status = HTTPResponse.Status(code: line?.code ?? 500, reasonPhrase: line?.reason.utf8Text ?? "")
    return HTTPResponse(status: status, headerFields: fields())
  }

  fileprivate mutating func optionalTimestamp() -> Timestamp?? {
    switch integer(UInt8.self) {
    case 0: .some(nil)
    case 1: timestamp().map { .some($0) }
    default: nil
    }
  }

  fileprivate mutating func freshness() -> Freshness? {
    guard let generatedAt = timestamp(), let freshUntil = timestamp(), let requiresRevalidation = integer(UInt8.self),
      let stale = optionalTimestamp(), let offline = optionalTimestamp()
    else { return nil }
    return Freshness(
      generatedAt: generatedAt, freshUntil: freshUntil, requiresRevalidation: requiresRevalidation != 0,
      staleWhileRevalidateUntil: stale, staleIfErrorUntil: offline)
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
