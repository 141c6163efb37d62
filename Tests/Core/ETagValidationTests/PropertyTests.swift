import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("Arbitrary responses of the origin")
struct PropertyTests {
  /// The properties of a response that the test knows independently of its fields.
  private struct Truth {
    var generatedAt: Int64
    var lifetime: Int64
    var staleWhileRevalidate: Int64
    var noCache: Bool
    var mustRevalidate: Bool
  }

  private func originResponse(at now: Int64, _ generator: inout SeededGenerator) -> (Truth, HTTPFields) {
    let skew = Int64.random(in: -20...5, using: &generator)
    let age = Int64.random(in: 0...15, using: &generator)
    let truth = Truth(
      generatedAt: now - max(max(0, -skew), age), lifetime: .random(in: 0...40, using: &generator),
      staleWhileRevalidate: .random(in: 0...20, using: &generator), noCache: .random(in: 0...5, using: &generator) == 0,
      mustRevalidate: .random(in: 0...3, using: &generator) == 0)
    var directives = "max-age=\(truth.lifetime), stale-while-revalidate=\(truth.staleWhileRevalidate)"
    if truth.noCache { directives += ", No-Cache" }
    if truth.mustRevalidate { directives += ",must-revalidate" }
    return (truth, HTTPFields(lines: ["Date: \(date(now + skew))", "Age: \(age)", "Cache-Control: \(directives)"]))
  }

  @Test("no response is served staler than its directives allow, for any sequence of responses", arguments: 0..<40)
  func neverStaler(seed: UInt64) {
    var generator = SeededGenerator(seed)
    var cache = CacheFixture()
    var truth: Truth?
    var version = 0
    var served = 0
    for _ in 0..<400 {
      cache.advance(.random(in: 0...25, using: &generator))
      let now = (cache.now - CacheFixture.start).components.seconds
      let (news, fields) = originResponse(at: now, &generator)
      let isChanged = Bool.random(using: &generator)
      var asked = false
      let known = truth
      let outcome = cache.load { head in
        asked = true
        let confirms = !isChanged && head.headerFields[.ifNoneMatch] == "\"\(version)\""
        if !confirms { version += 1 }
        truth = news
        return .success(
          HTTPResponse(
            status: confirms ? .notModified : .ok, headerFields: fields + [HTTPField(name: .eTag, value: "\"\(version)\"")]))
      }
      guard outcome.source == .cache, let known else { continue }
      served += 1
      let staleness = now - known.generatedAt - known.lifetime
      #expect(!known.noCache)
      if asked {
        #expect(staleness >= 0 && staleness < known.staleWhileRevalidate && !known.mustRevalidate)
      } else {
        #expect(staleness < 0)
      }
    }
    #expect(served > 20)
  }

  @Test("a 304 never changes the length, coding, tag or revision of a stored response", arguments: 0..<20)
  func bodyIsUntouched(seed: UInt64) {
    var generator = SeededGenerator(seed)
    let names = [
      "Content-Length", "Content-Type", "Content-Encoding", "Content-Range", "ETag", "Connection", "Vary", "Date", "Age", "X-A",
      "Cache-Control",
    ]
    let kept = ["Content-Length", "Content-Encoding", "Content-Range"]
    for _ in 0..<100 {
      var cache = CacheFixture()
      var first = HTTPFields(
        lines: names.filter { _ in Bool.random(using: &generator) }.map { "\($0): \(Self.junk(&generator))" })
      first[.eTag] = "\"a\""
      first[.vary] = nil
      first[.cacheControl] = nil
      _ = cache.load { _ in .success(HTTPResponse(status: .ok, headerFields: first)) }
      guard let before = cache.stored.first else {
        Issue.record("not stored: \(first)")
        continue
      }
      var news = HTTPFields(
        lines: (0..<6).map { _ in "\(names.randomElement(using: &generator) ?? ""): \(Self.junk(&generator))" })
      if Bool.random(using: &generator) { news[.eTag] = "\"a\"" }
      let outcome = cache.load { head in
        .success(head.headerFields[.ifNoneMatch] == nil ? .head(500) : HTTPResponse(status: .notModified, headerFields: news))
      }
      let after = cache.stored[0]
      #expect(outcome.source == .revalidated || after == before)
      #expect(after.revision == before.revision)
      #expect(after.response.headerFields[.eTag] == "\"a\"")
      for name in kept { #expect(after.response.headerFields[text: name] == before.response.headerFields[text: name]) }
    }
  }

  private static func junk(_ generator: inout SeededGenerator) -> String {
    ["1", "text/x", "\"b\"", "W/\"a\"", "content-type", "x", "no-cache", "max-age=5", date(3)].randomElement(using: &generator)
      ?? ""
  }

  @Test("parsing arbitrary bytes never traps")
  func parsers() {
    var generator = SeededGenerator(11)
    let pieces: [[UInt8]] = [
      "max-age=", "no-store", "stale-while-revalidate=", "private=\"", "\"", "\\", ",", " ", "=", ";", "*", "W/", "/", "//", "..",
      "?", "#", ":",
      "bytes=", "bytes ", "0-9", "-5", "?1", "(", ")", "@", "%", "GMT", "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 ",
      "Nov", "99999999999999999999", "-1", "0", "\u{301}", "é",
    ].map { Array($0.utf8) }
    let names: [HTTPField.Name] =
      [
        .cacheControl, .expires, .date, .age, .vary, .eTag, .lastModified, .connection, .location, .authorization, .accept,
        .ifNoneMatch, .ifModifiedSince, .ifRange, .range, .contentRange, .contentLocation, .cookie, .setCookie, .contentType,
      ] + ETagValidator.defaultTargets
    // The fuzz target "headers" reads far more of them. A single thread cannot reveal a data race to the thread sanitizer.
    #if TSAN
    let rounds = 2_000
    #else
    let rounds = 20_000
    #endif
    var decided = 0
    for _ in 0..<rounds {
      var bytes: [UInt8] = []
      for _ in 0..<Int.random(in: 0...6, using: &generator) {
        if Bool.random(using: &generator) {
          bytes += pieces.randomElement(using: &generator) ?? []
        } else {
          bytes.append(.random(in: .min ... .max, using: &generator))
        }
      }
      let text = String(decoding: bytes, as: UTF8.self)
      let now = Timestamp(nanoseconds: .random(in: .min ... .max, using: &generator))
      let name = names.randomElement(using: &generator) ?? .age
      let field = HTTPField(name: name, lenientValue: bytes)
      _ = (CacheControl(text), HTTPDate(text, receivedAt: now), EntityTag(field))
      // Often the same field again, with another value.
      let again = HTTPField(name: Bool.random(using: &generator) ? name : .lastModified, lenientValue: bytes.reversed())
      let fields = HTTPFields([field, HTTPField(name: .lastModified, lenientValue: bytes), again])
      _ = (fields.contentType, fields.statedAge, fields.date(receivedAt: now))
      decided += Self.decide(fields, now)
    }
    #expect(decided == rounds)
  }

  /// Sends `fields` in a request and in responses. Returns 1 if every stage made a decision.
  private static func decide(_ fields: HTTPFields, _ now: Timestamp) -> Int {
    var cache = CacheFixture()
    cache.now = now
    cache.length = 10
    cache.validator = ETagValidator(
      mode: .shared, heuristics: Heuristics(), defaultLifetime: .seconds(Int64.max), parts: .completed,
      negotiatesLanguages: true, negotiatesImages: true, digestSecret: DigestSecret(high: 1, low: 2))
    var request = HTTPRequest.page()
    request.headerFields = fields
    _ = cache.load(request) { _ in .success(HTTPResponse(status: .ok, headerFields: fields)) }
    _ = cache.load(request) { _ in .success(HTTPResponse(status: .partialContent, headerFields: fields)) }
    _ = CacheTags(fields)
    let outcome = cache.load { head in
      .success(HTTPResponse(status: head.headerFields[.ifNoneMatch] == nil ? .ok : .notModified, headerFields: fields))
    }
    _ = cache.load(.page(.post)) { _ in .success(HTTPResponse(status: .created, headerFields: fields)) }
    return outcome.response == nil ? 0 : 1
  }

  @Test("a hostile line of a million bytes is parsed in linear time", arguments: ["\"\\", ",", "\"", "a=\"b\",", " ", "../"])
  func longLines(piece: String) {
    let line = String(repeating: piece, count: 1_000_000 / piece.utf8.count)
    #expect(CacheControl(line).maxAge == nil)
    #expect(HTTPDate(line, receivedAt: CacheFixture.start) == nil)
    var cache = CacheFixture()
    _ = cache.load(.page(.post)) { _ in .success(.head(201, "Location: \(line)")) }
    #expect(cache.invalidated.first == "https://example.com/page")
  }
}
