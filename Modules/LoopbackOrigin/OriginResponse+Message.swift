#if Origin
internal import CacheCore
internal import HTTPTypes
internal import NIOCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension OriginResponse {
  /// The response to a request: the status, the fields without framing, and the content.
  struct Response {
    var status: HTTPResponse.Status
    var fields: HTTPFields
    var content: ByteBuffer
  }

  /// Returns the response to a request. It checks the credential, the conditions and the range, in this order.
  func response(to request: ReceivedRequest, date: Date) -> Response {
    if let credential, !credential.accepts(request.fields[.authorization]) {
      return Self.refusal(of: credential, date: date)
    }
    var response = Response(status: status, fields: allFields(date: date), content: content)
    guard status == .ok, request.method == .get || request.method == .head else { return response }
    if honorsConditions, isUnchanged(for: request.fields) {
      response.status = .notModified
      response.content = ByteBuffer()
      response.fields = HTTPFields(response.fields.filter { !Self.describesContent($0.name) })
    } else if acceptsRanges, request.method == .get, let range = request.fields[.range], rangeApplies(to: request.fields) {
      select(range, in: &response)
    }
    return response
  }

  private static func refusal(of credential: OriginCredential, date: Date) -> Response {
    let text = OriginResponse(
      text: "credential required\n", status: .unauthorized, fields: [.wwwAuthenticate: credential.challenge])
    return Response(status: text.status, fields: text.allFields(date: date), content: text.content)
  }

  /// Returns the origin's fields that the test has not set, then the test's.
  private func allFields(date: Date) -> HTTPFields {
    let own: [(HTTPField.Name, String?)] = [
      (.date, HTTPDate(date).description), (.contentType, contentType), (.eTag, etag?.description),
      (.lastModified, modification), (.acceptRanges, acceptsRanges ? "bytes" : nil),
    ]
    var all = HTTPFields()
    for case (let name, let value?) in own where !fields.contains(name) { all[name] = value }
    all.append(contentsOf: fields)
    return all
  }

  /// Returns whether a field describes content. A 304 omits such fields and repeats all others of the 200 (RFC 9110 §15.4.5).
  private static func describesContent(_ name: HTTPField.Name) -> Bool {
    name.canonicalName.hasPrefix("content-") && name != .contentLocation || name == .transferEncoding
  }

  private var modification: String? { fields[.lastModified] ?? lastModified.map { HTTPDate($0).description } }

  // MARK: Conditions

  /// Evaluates the conditions. `If-Modified-Since` is used only without `If-None-Match` (RFC 9110 §13.2.2).
  private func isUnchanged(for request: HTTPFields) -> Bool {
    if let condition = request[.ifNoneMatch] {
      if condition.trimmed == "*" { return true }
      guard let current = currentETag else { return false }
      return OriginETag.list(condition).contains { $0.weaklyMatches(current) }
    }
    guard let condition = request[.ifModifiedSince], let current = modification
    else { return false }
    let now = SystemClock().now
    guard let since = HTTPDate(condition, receivedAt: now), let changed = HTTPDate(current, receivedAt: now) else {
      return condition == current
    }
    return changed <= since
  }

  /// The current tag. A tag in the test's fields replaces `etag`, as in the response.
  private var currentETag: OriginETag? { fields[.eTag].map { OriginETag.list($0).first } ?? etag }

  // MARK: Ranges

  /// Returns whether `If-Range` matches, by strong comparison or by the exact date (RFC 9110 §13.1.5).
  private func rangeApplies(to request: HTTPFields) -> Bool {
    guard let condition = request[.ifRange] else { return true }
    if let tag = OriginETag.list(condition).first { return currentETag.map(tag.stronglyMatches) ?? false }
    return condition == modification
  }

  private func select(_ range: String, in response: inout Response) {
    let length = response.content.readableBytes
    switch ByteRange.parse(range, length: length) {
    case .ignored: return
    case .unsatisfiable:
      response.status = .rangeNotSatisfiable
      response.content = ByteBuffer()
      response.fields[.contentRange] = "bytes */\(length)"
    case .bytes(let bytes):
      response.status = .partialContent
      let start = response.content.readerIndex + bytes.lowerBound
      response.content = response.content.getSlice(at: start, length: bytes.count) ?? ByteBuffer()
      response.fields[.contentRange] = "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(length)"
    }
  }
}

extension String {
  /// The string without leading and trailing spaces and tabs.
  var trimmed: Substring {
    let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
    var rest = drop(while: isBlank)
    while let last = rest.last, isBlank(last) { rest.removeLast() }
    return rest
  }
}
#endif
