import CacheCore
import ETagValidation
import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// libFuzzer's entry point. `Scripts/fuzz` builds it with the modules' sources; no target of the package contains it.

/// Fuzzes header fields. From 128 on, the first byte selects the parser of one kind of values: see `checkValue`. A smaller one
/// selects mode and policy of several exchanges. The rest are then lines, and an empty line ends a header section. Requests and
/// responses alternate.
///
/// For any input, nothing must trap, and decisions must match the stored metadata.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHeaders(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let bytes = UnsafeBufferPointer(start: start, count: count)
  guard let choice = bytes.first else { return 0 }
  guard choice < 128 else {
    checkValue(choice, Array(bytes.dropFirst()))
    return 0
  }
  var cache = FuzzedCache(choice)
  let fields = sections(bytes.dropFirst())
  for pair in stride(from: 0, to: min(fields.count - 1, 8), by: 2) { cache.exchange(fields[pair], fields[pair + 1]) }
  return 0
}

/// Returns the header sections of lines. An empty line ends a section.
func sections(_ bytes: some Collection<UInt8>) -> [HTTPFields] {
  var fields: [HTTPFields] = [HTTPFields()]
  for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
    if line.isEmpty {
      fields.append(HTTPFields())
    } else if let field = field(line), fields[fields.count - 1].count < 64 {
      fields[fields.count - 1].append(field)
    }
  }
  return fields
}

/// The field names, selected by the first letter of a line.
private let names: [HTTPField.Name] =
  [
    .cacheControl, .expires, .date, .age, .vary, .eTag, .lastModified, .connection, .location, .contentLocation, .authorization,
    .accept, .ifNoneMatch, .ifModifiedSince, .ifRange, .range, .contentRange, .contentLength, .ifMatch, .cookie, .setCookie,
    .contentType, .acceptLanguage, .acceptEncoding, .contentLanguage, .retryAfter,
  ] + ETagValidator.defaultTargets + ["Pragma", "Cache-Tag", "Surrogate-Key"].compactMap { HTTPField.Name($0) }

private func field(_ line: some Collection<UInt8>) -> HTTPField? {
  guard let letter = line.first, letter >= UInt8(ascii: "A") else { return nil }
  return HTTPField(name: names[Int(letter - UInt8(ascii: "A")) % names.count], lenientValue: Array(line.dropFirst()))
}

/// The stored metadata and the current time.
private struct FuzzedCache {
  private let validator: ETagValidator
  private let policy: LoadPolicy
  private let statuses: [Int]
  private var stored: [StoredMetadata] = []
  private var now = Timestamp(seconds: 1_767_225_600)
  private var round: UInt64 = 0

  init(_ choice: UInt8) {
    let policies: [LoadPolicy] = [.standard, .revalidate(), .staleWhileRevalidate, .cacheFirst]
    validator = ETagValidator(
      mode: choice & 1 == 0 ? .private : .shared, variantLimit: 4, parts: .completed, negotiatesLanguages: true,
      negotiatesImages: true, digestSecret: DigestSecret(high: 1, low: 2))
    policy = policies[Int(choice >> 1) % policies.count]
    statuses = choice & 64 == 0 ? [200, 206, 304, 503] : [200, 200, 304, 404]
  }

  mutating func exchange(_ requestFields: HTTPFields, _ responseFields: HTTPFields) {
    let status = statuses[Int(round) % statuses.count]
    round += 1
    now = now + .seconds(7)
    for method in [HTTPRequest.Method.get, .head, .post] {
      let request = HTTPRequest(
        method: method, scheme: "https", authority: "example.com", path: "/a", headerFields: requestFields)
      let head = HTTPResponse(status: .init(code: status), headerFields: responseFields)
      switch validator.plan(request, policy: policy, stored: stored, now: now) {
      case .use(let index, _): check(request, stored[index])
      case .fetch(let sent, let fallback, _): judge(head, to: request, sent: sent, fallback)
      case .combine(let combination): check(request, combination)
      case .respond: break
      }
    }
    let status304 = CacheStatus(String(describing: responseFields), forwarded: .stale, status: 304)
    precondition(
      status304.description.utf8.allSatisfy { (0x20...0x7E).contains($0) } && CacheTags(responseFields).names.count >= 0)
    precondition((responseFields.contentType == nil) == !responseFields.contains(.contentType))
    if let location = responseFields.first(.location)?.withUnsafeBytesOfValue({ Array($0) }), let url = URL(encoding: location) {
      precondition(URL(encoding: url.absoluteString)?.absoluteString == url.absoluteString)
    }
  }

  private mutating func judge(_ head: HTTPResponse, to request: HTTPRequest, sent: HTTPRequest, _ fallback: Int?) {
    let verdict = validator.judge(
      .success(head), to: request, sent: sent, fallback: fallback, stored: stored, requestTime: now, now: now,
      revision: Revision(high: 0, low: round))
    switch verdict {
    case .update(let index, let metadata, let changes):
      precondition(metadata.revision == stored[index].revision)
      stored[index] = metadata
      check(request, metadata)
      apply(changes)
    case .store(_, let metadata, let changes): store(metadata, changes)
    case .pass(let changes, _): apply(changes)
    case .refetch(let plain): precondition(plain.headerFields[.range] == request.headerFields[.range])
    case .serveStale(let index): check(request, stored[index])
    }
  }

  private func check(_ request: HTTPRequest, _ combination: PartCombination) {
    let length = combination.whole.bodyLength ?? 0
    precondition(!combination.wanted.isEmpty && (0...length).contains(combination.wanted.upperBound))
    precondition(combination.whole.response.status.code == 200 && combination.request.headerFields[.ifRange] != nil)
    for part in combination.parts {
      precondition(!part.bytes.isEmpty && part.bytes.upperBound <= length && stored[part.index].response.status.code == 206)
    }
    check(request, combination.whole)
  }

  private mutating func store(_ metadata: StoredMetadata, _ changes: StoreChanges) {
    apply(changes)
    var metadata = metadata
    metadata.bodyLength = metadata.bodyLength ?? 10
    precondition(StoredMetadata(decoding: metadata.encoded()) != nil)
    stored.append(metadata)
    precondition(stored.count <= 4)
  }

  private mutating func apply(_ changes: StoreChanges) {
    for (index, metadata) in changes.updates { stored[index] = metadata }
    for index in Set(changes.drops).sorted(by: >) { stored.remove(at: index) }
    if !changes.invalidations.isEmpty { stored = [] }
  }

  private func check(_ request: HTTPRequest, _ metadata: StoredMetadata) {
    let reply = validator.reply(to: request, from: metadata, now: now)
    if case .range(let bytes) = reply.content {
      precondition(bytes.lowerBound >= 0 && bytes.upperBound <= metadata.bodyLength ?? 0 && reply.head.status.code == 206)
    }
  }
}
