import HTTPTypes

@testable import CacheCore
@testable import ETagValidation

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

private let now = Timestamp(seconds: 1_767_225_600)

/// Checks the parsers of one kind of values: what they return must be within its limits, and its text must have the same meaning.
func checkValue(_ choice: UInt8, _ bytes: [UInt8]) {
  let text = String(decoding: bytes, as: UTF8.self)
  switch choice % 6 {
  case 0: checkDate(text)
  case 1: checkRanges(text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init))
  case 2: checkVary(sections(bytes), mode: choice & 8 == 0 ? .private : .shared)
  case 3: checkURL(bytes)
  case 4: checkFields(sections(bytes))
  default: checkHost(text)
  }
}

// MARK: Dates

private func checkDate(_ text: String) {
  for now in [Timestamp.distantPast, Timestamp(seconds: 0), now, .distantFuture] {
    let date = HTTPDate(text, receivedAt: now)
    if let strict = HTTPDate(expiration: text, receivedAt: now) { precondition(strict == date) }
    guard let date else { continue }
    // A date beyond the last point in time is that point, which is not a whole second.
    let written = HTTPDate(date.timestamp)
    precondition(HTTPDate(written.description, receivedAt: now) == written)
    precondition(HTTPDate(" \(text)\t", receivedAt: now) == date)
  }
  let fields: HTTPFields = [.retryAfter: text, .age: text, .date: text]
  precondition(fields.retryAfter(receivedAt: now) ?? .zero >= .zero)
  precondition((.zero ... .seconds(DeltaSeconds.limit)).contains(fields.statedAge ?? .zero))
}

// MARK: Ranges

private func checkRanges(_ lines: [String]) {
  let lengths: [Int64] = [0, 1, 2, 10, 1_000_000, .max]
  for range in ByteRange.ranges(lines[0]) ?? [] {
    for length in lengths {
      guard let bytes = range.resolved(in: length) else { continue }
      precondition(!bytes.isEmpty && bytes.lowerBound >= 0 && bytes.upperBound <= length)
    }
  }
  for line in lines {
    guard let content = ContentRange(line) else { continue }
    precondition(!content.bytes.isEmpty && content.bytes.lowerBound >= 0 && content.length > 0)
    precondition(content.bytes.upperBound <= content.completeLength ?? .max)
    precondition(ContentRange(content.fieldValue) == content)
    checkPart(content, ByteRange.ranges(lines[0]) ?? [], ifRange: lines.last ?? "")
  }
}

/// Checks the uses of a partial response: a range inside it, and the rest of a body that broke off.
private func checkPart(_ content: ContentRange, _ ranges: [ByteRange], ifRange: String) {
  var head = HTTPResponse(status: .partialContent, headerFields: [.contentRange: content.fieldValue, .eTag: ifRange])
  head.headerFields[.date] = HTTPDate(now).description
  let request = HTTPRequest(
    method: .get, scheme: "https", authority: "example.com", path: "/", headerFields: [.ifRange: ifRange, .range: "bytes=0-"])
  let metadata = StoredMetadata(
    request: request, response: head, requestTime: now, responseTime: now, bodyLength: content.length,
    revision: Revision(high: 1, low: 2), freshness: Freshness(generatedAt: now, freshUntil: now))
  if let part = StoredPart(metadata) {
    precondition(part.bytes == content.bytes && part.completeLength == content.completeLength)
    for range in ranges {
      guard let covered = part.covered(range) else { continue }
      precondition(!covered.isEmpty && covered.lowerBound >= 0 && covered.upperBound <= content.length)
    }
  }
  // Only a strong validator allows a range and the combination of two transfers.
  let allowed = Preconditions(request: request).allowsRange(metadata)
  guard let validator = RangeValidator(head.headerFields, now: now) else { return }
  precondition(allowed && validator.fieldValue.hasPrefix("\"") && validator.isConfirmed(by: head.headerFields))
  let plan = ResumptionPlan(validator: validator, length: content.bytes.upperBound, contentEncoding: nil)
  for position in [0, content.bytes.lowerBound, content.bytes.upperBound - 1] {
    guard plan.judge(head, bodyLength: content.length, at: position) == .append else { continue }
    precondition(position == content.bytes.lowerBound && content.completeLength == content.bytes.upperBound)
  }
}

// MARK: Vary

/// Checks that a stored response matches the request that selected it, whatever it varies by, and that the stored form of the
/// request selects the same variant.
private func checkVary(_ sections: [HTTPFields], mode: CacheMode) {
  // No server and no client lets a request through that has control characters.
  let sections = sections.map { fields in
    HTTPFields(fields.map { field in HTTPField(name: field.name, value: field.withUnsafeBytesOfValue { Array($0) }) })
  }
  let secret = DigestSecret(high: 1, low: 2)
  let request = HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/", headerFields: sections[0])
  let head = HTTPResponse(status: .ok, headerFields: sections.count > 1 ? sections[1] : HTTPFields())
  let vary = Vary(head.headerFields)
  let selecting = SelectingFields(of: request, vary: vary, secret: secret, mode: mode)
  var metadata = StoredMetadata(
    request: request, response: head, requestTime: now, responseTime: now, bodyLength: 1, revision: Revision(high: 1, low: 2),
    freshness: Freshness(generatedAt: now, freshUntil: now))
  metadata.request.headerFields = selecting.fields
  precondition(SelectingFields(of: metadata, vary: vary).variant == selecting.variant)
  precondition(selecting.variant.utf8.allSatisfy { (0x20...0x7E).contains($0) || $0 == 0x0A })
  precondition(SelectingFields.match(metadata, request, secret: secret, mode: mode) != vary.matchesNothing)
  // Digests of credentials are not credentials.
  var again = request
  again.headerFields = selecting.fields.filter { !["authorization", "cookie"].contains($0.name.canonicalName) }
  for name in [HTTPField.Name.authorization, .cookie] { again.headerFields[fields: name] = request.headerFields[fields: name] }
  precondition(SelectingFields(of: again, vary: vary, secret: secret, mode: mode).variant == selecting.variant)
  guard sections.count > 2 else { return }
  var other = request
  other.headerFields = sections[2]
  let isMatch = SelectingFields.match(metadata, other, secret: secret, mode: mode)
  let variant = SelectingFields(of: other, vary: vary, secret: secret, mode: mode).variant
  if !vary.matchesNothing { precondition(isMatch == (variant == selecting.variant)) }
  for negotiation: ContentNegotiation in [.languages, .images, [.languages, .images]] where isMatch {
    precondition(SelectingFields.match(metadata, other, secret: secret, mode: mode, negotiation))
  }
}

// MARK: URLs and hosts

/// Checks that a URL of any bytes is parsed as itself, and that its request leads to the same URL.
private func checkURL(_ bytes: [UInt8]) {
  guard let url = URL(encoding: bytes) else { return }
  precondition(URL(encoding: url.absoluteString)?.absoluteString == url.absoluteString)
  guard let request = try? HTTPRequest(resource: url), request.scheme != "data" else { return }
  precondition(request.path?.utf8.contains { $0 <= 0x20 || $0 == UInt8(ascii: "#") } != true)
  if let parsed = try? HTTPRequest(parsing: url) { precondition(parsed == request) }
  guard request.scheme == "http" || request.scheme == "https" else { return }
  guard let absolute = request.absoluteURL, var again = try? HTTPRequest(resource: absolute) else {
    preconditionFailure("the request has no URL")
  }
  again.headerFields = request.headerFields
  precondition(again == request)
}

private func checkHost(_ text: String) {
  let host = HostName.comparable(text)
  if let ascii = try? HostName.ascii(text), ascii.utf8.allSatisfy({ $0 < 0x80 && $0 != UInt8(ascii: "%") }) {
    precondition(HostName.comparable(ascii) == host)
  }
  let encoded = text.utf8.flatMap(\.percentEncoded)
  precondition(HostName.percentDecoded(String(decoding: encoded, as: UTF8.self)[...]) == text)
  if let (host, port) = HostPort.split(text) {
    precondition(text.contains(host) && (1...65_535).contains(port ?? 1))
  }
  guard let address = IPAddress(text) else { return }
  precondition(IPAddress(address.description) == address && (!address.isV6 || IPAddress("[\(address)]") == address))
  // An address that leads to a refused one is refused too.
  if let embedded = address.embedded, !AddressPolicy.publicOnly.allows(embedded) {
    precondition(!AddressPolicy.publicOnly.allows(address))
  }
}

// MARK: Lists and directives

private func checkFields(_ sections: [HTTPFields]) {
  let fields = sections[0]
  precondition(fields.contentLength ?? 0 >= 0)
  for field in fields {
    let bytes = field.withUnsafeBytesOfValue { Array($0) }
    bytes.withUnsafeBufferPointer { line in
      var count = 0
      for member in FieldList(line) {
        precondition(!member.isEmpty && member.trimmingBlanks().count == member.count)
        count += member.count
      }
      precondition(count <= line.count)
    }
    if let tag = EntityTag(field) {
      precondition(tag.weaklyMatches(tag) && tag.stronglyMatches(tag) != tag.isWeak)
      if EntityTag.isListed(field) {
        precondition(EntityTagList(.ifNoneMatch, of: HTTPFields([field.renamed(.ifNoneMatch)])).names(tag))
      }
    }
    precondition(StructuredDictionary(lines: [bytes])?.members.count ?? 0 <= 64)
  }
  let directives = CacheControl(fields)
  for duration in [
    directives.maxAge, directives.sharedMaxAge, directives.staleWhileRevalidate, directives.staleIfError, directives.minFresh,
  ] {
    precondition((.zero ... .seconds(DeltaSeconds.limit)).contains(duration ?? .zero))
  }
  checkConnection(fields)
}

/// Checks that no field is forwarded that `Connection` names (RFC 9110 §7.6.1), as a recipient reads it that knows only bytes.
private func checkConnection(_ fields: HTTPFields) {
  let kept = fields.endToEnd()
  precondition(kept.endToEnd() == kept)
  for line in fields[fields: .connection] {
    let bytes = line.withUnsafeBytesOfValue { Array($0) }
    for option in bytes.split(separator: UInt8(ascii: ",")) {
      let name = option.trimmingBlanks()
      guard name.allSatisfy(\.isTokenByte), let name = HTTPField.Name(String(decoding: name, as: UTF8.self)) else { continue }
      precondition(!kept.contains(name))
    }
  }
}
