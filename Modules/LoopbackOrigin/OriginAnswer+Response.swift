#if Origin
  internal import HTTPTypes
  internal import NIOCore

  #if canImport(FoundationEssentials)
    internal import FoundationEssentials
  #else
    internal import Foundation
  #endif

  extension OriginAnswer {
    /// What a request gets: status and fields without framing, and the bytes.
    struct Response {
      var status: HTTPResponse.Status
      var fields: HTTPFields
      var content: ByteBuffer
    }

    /// Looks at credential, conditions and range, in this order.
    func response(to request: ReceivedRequest, date: Date) -> Response {
      if let credential, !credential.accepts(request.fields[.authorization]) {
        return Self.refusal(of: credential, date: date)
      }
      var response = Response(status: status, fields: allFields(date: date), content: content)
      guard status == .ok, request.method == .get || request.method == .head else { return response }
      if honoursConditions, isUnchanged(for: request.fields) {
        response.status = .notModified
        response.content = ByteBuffer()
        response.fields = HTTPFields(response.fields.filter { !Self.describesContent($0.name) })
      } else if acceptsRanges, request.method == .get, let range = request.fields[.range], rangeApplies(to: request.fields) {
        select(range, in: &response)
      }
      return response
    }

    private static func refusal(of credential: OriginCredential, date: Date) -> Response {
      let text = OriginAnswer(
        text: "credential required\n", status: .unauthorized, fields: [.wwwAuthenticate: credential.challenge])
      return Response(status: text.status, fields: text.allFields(date: date), content: text.content)
    }

    /// The origin's own fields, where the test has not set them, then the test's.
    private func allFields(date: Date) -> HTTPFields {
      let own: [(HTTPField.Name, String?)] = [
        (.date, HTTPDate.string(date)), (.contentType, contentType), (.eTag, etag?.description),
        (.lastModified, lastModified.map(HTTPDate.string)), (.acceptRanges, acceptsRanges ? "bytes" : nil),
      ]
      var all = HTTPFields()
      for case (let name, let value?) in own where !fields.contains(name) { all[name] = value }
      all.append(contentsOf: fields)
      return all
    }

    /// A 304 repeats what a 200 would have said, but for what describes a body (RFC 9110 §15.4.5).
    private static func describesContent(_ name: HTTPField.Name) -> Bool {
      name.canonicalName.hasPrefix("content-") && name != .contentLocation || name == .transferEncoding
    }

    // MARK: Conditions

    /// RFC 9110 §13.2.2: `If-Modified-Since` counts only where there is no `If-None-Match`.
    private func isUnchanged(for request: HTTPFields) -> Bool {
      if let condition = request[.ifNoneMatch] {
        if condition.trimmed == "*" { return true }
        guard let current = currentETag else { return false }
        return OriginETag.list(condition).contains { $0.weaklyMatches(current) }
      }
      guard let condition = request[.ifModifiedSince], let current = fields[.lastModified] ?? lastModified.map(HTTPDate.string)
      else { return false }
      guard let since = HTTPDate.date(condition), let changed = HTTPDate.date(current) else { return condition == current }
      return changed <= since
    }

    /// A tag among the test's own fields goes before `etag`, as it does on the wire.
    private var currentETag: OriginETag? { fields[.eTag].map { OriginETag.list($0).first } ?? etag }

    // MARK: Ranges

    /// RFC 9110 §13.1.5: by strong comparison, or by the exact date.
    private func rangeApplies(to request: HTTPFields) -> Bool {
      guard let condition = request[.ifRange] else { return true }
      if let tag = OriginETag.list(condition).first { return currentETag.map(tag.stronglyMatches) ?? false }
      return condition == fields[.lastModified] ?? lastModified.map(HTTPDate.string)
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
    /// Without the spaces and tabs around a field value.
    var trimmed: Substring {
      let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
      var rest = drop(while: isBlank)
      while let last = rest.last, isBlank(last) { rest.removeLast() }
      return rest
    }
  }
#endif
