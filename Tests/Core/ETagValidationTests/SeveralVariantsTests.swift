import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("Revalidation of several variants")
struct SeveralVariantsTests {
  private func cache(_ languages: [String] = ["de", "en"], _ lines: String...) -> CacheFixture {
    var cache = CacheFixture()
    for language in languages {
      _ = cache.load(.page(.get, "Accept-Language: \(language)")) { _ in
        .success(
          HTTPResponse(
            status: .ok, headerFields: HTTPFields(lines: ["Vary: Accept-Language", "ETag: \"\(language)\""] + lines)))
      }
      cache.advance(1)
    }
    cache.sent = []
    return cache
  }

  @Test("the tag of the selected variant comes first, followed by the others, latest first")
  func tags() {
    var cache = cache(["de", "en", "fr"])
    _ = cache.load(.page(.get, "Accept-Language: en")) { _ in .success(.head(503)) }
    #expect(cache.sent[0].headerFields[.ifNoneMatch] == "\"en\", \"fr\", \"de\"")
    _ = cache.load(.page(.get, "Accept-Language: it")) { _ in .success(.head(503)) }
    #expect(cache.sent[1].headerFields[.ifNoneMatch] == "\"fr\", \"en\", \"de\"")
    #expect(cache.sent[1].headerFields[.ifModifiedSince] == nil)
  }

  @Test("a 304 updates and uses the variant that it names, even if the request selected none")
  func named() {
    var cache = cache()
    let before = cache.stored
    let outcome = cache.load(.page(.get, "Accept-Language: it")) { _ in
      .success(.head(304, "ETag: \"de\"", "Cache-Control: max-age=60", "Vary: Accept-Language"))
    }
    #expect(outcome.source == .revalidated)
    #expect(outcome.revision == before[0].revision)
    #expect(cache.stored[1] == before[1])
    // The German page still belongs to requests for German, and is fresh for them.
    #expect(cache.load(.page(.get, "Accept-Language: de")) { _ in .success(.head(500)) }.revision == before[0].revision)
    #expect(cache.load(.page(.get, "Accept-Language: en")) { _ in .success(.ok()) }.source == .network)
  }

  @Test("a date does not confirm another variant, because variants may share a modification date")
  func sameDate() {
    var cache = cache(["de"], "Last-Modified: \(date(-9))")
    let before = cache.stored
    let outcome = cache.load(.page(.get, "Accept-Language: it", "If-Modified-Since: \(date(-9))")) { _ in
      .success(.head(304, "Cache-Control: max-age=60"))
    }
    #expect(outcome.source == .network)
    #expect(cache.stored == before)
  }

  @Test("the variant that a 304 names is also stored under the new request's fields and serves the next one")
  func filed() {
    var cache = cache()
    let (german, before) = (cache.stored[0], cache.stored[1])
    let italian = HTTPRequest.page(.get, "Accept-Language: it")
    let confirms: CacheFixture.Origin = { _ in .success(.head(304, "ETag: \"de\"", "Cache-Control: max-age=60")) }
    _ = cache.load(italian, from: confirms)
    #expect(cache.entries.map(\.variant) == ["accept-language=de", "accept-language=en", "accept-language=it"])
    let next = cache.load(italian) { _ in .success(.head(500)) }
    #expect(next.source == .cache && next.revision != german.revision)
    #expect(next.response?.headerFields[.eTag] == "\"de\"")
    // Neither of the original variants has changed.
    #expect(cache.stored[1] == before && cache.stored[0].request == german.request && cache.stored[0].revision == german.revision)
    // A 304 for the new variant confirms the copy and makes no second one.
    cache.advance(100)
    _ = cache.load(italian, from: confirms)
    #expect(cache.entries.count == 3)
  }

  @Test(
    "no copy is stored if storing is forbidden, if no request would match it, or if another would be removed",
    arguments: ["Cache-Control: no-store", "Vary: *", "limit", "HEAD"])
  func notFiled(_ reason: String) {
    var cache = cache(["de", "en"])
    if reason == "limit" { cache.validator = ETagValidator(variantLimit: 2, digestSecret: DigestSecret(high: 1, low: 2)) }
    let line = reason.contains(":") ? reason : "X-Nothing: 1"
    _ = cache.load(.page(reason == "HEAD" ? .head : .get, "Accept-Language: it")) { _ in
      .success(.head(304, "ETag: \"de\"", line))
    }
    #expect(cache.entries.count == 2)
  }

  @Test(
    "a weak tag revalidates only its own variant, because nginx gives plain and compressed bytes the same one",
    arguments: ["W/\"x\"", "\"x\""])
  func weak(_ named: String) {
    // Given a compressed response with a weak tag
    var cache = CacheFixture()
    _ = cache.load(.page(.get, "Accept-Encoding: gzip")) { _ in
      .success(.ok("Vary: Accept-Encoding", "ETag: W/\"x\"", "Content-Encoding: gzip"))
    }

    // When a client that does not accept compression sends a request that the origin would confirm
    let outcome = cache.load(.page(.get, "Accept-Encoding: identity")) { head in
      .success(
        head.headerFields.contains(.ifNoneMatch) ? .head(304, "ETag: \(named)") : .ok("Vary: Accept-Encoding", "X-Plain: 1"))
    }

    // Then the plain response is loaded
    #expect(outcome.source == .network)
    #expect(outcome.response?.headerFields[text: "X-Plain"] == "1")
    #expect(cache.sent.last?.headerFields[.ifNoneMatch] == nil)
  }

  @Test(
    "a plain response is not revalidated for a request that accepts compression"
  )
  func coding() {
    // Given a plain response with the tag of the file
    var cache = CacheFixture()
    let vary = "Vary: Accept-Language, accept-encoding"
    _ = cache.load { _ in .success(.ok(vary, "ETag: \"x\"", "Cache-Control: max-age=60")) }

    // When other clients accept gzip, in different notations
    let responses = ["gzip, br", "br,gzip"].map { codings in
      cache.load(.page(.get, "Accept-Encoding: \(codings)")) { head in
        .success(
          head.headerFields.contains(.ifNoneMatch)
            ? .head(304, "ETag: \"x\"") : .ok(vary, "ETag: W/\"x\"", "Content-Encoding: gzip", "Cache-Control: max-age=60"))
      }
    }

    // Then they receive the compressed response, the second one from the cache. An origin that compresses dynamically would
    // otherwise confirm the plain one forever.
    #expect(responses.map { $0.response?.headerFields[.contentEncoding] } == ["gzip", "gzip"])
    #expect(responses.map(\.source) == [.network, .cache])
    #expect(cache.sent.allSatisfy { !$0.headerFields.contains(.ifNoneMatch) })
  }

  @Test("a weak tag does not confirm another variant with a strong tag")
  func weakConfirmation() {
    var cache = cache(["de"])
    let outcome = cache.load(.page(.get, "Accept-Language: it")) { head in
      .success(head.headerFields.contains(.ifNoneMatch) ? .head(304, "ETag: W/\"de\"") : .ok("X-New: 1", "Vary: Accept-Language"))
    }
    #expect(outcome.response?.headerFields[text: "X-New"] == "1")
    #expect(cache.sent.count == 2)
  }

  @Test("a 304 that names none of several variants leads to an unconditional request")
  func unnamed() {
    var cache = cache()
    let outcome = cache.load(.page(.get, "Accept-Language: de")) { head in
      .success(head.headerFields.contains(.ifNoneMatch) ? .head(304) : .ok("X-New: 1", "Vary: Accept-Language"))
    }
    #expect(outcome.response?.headerFields[text: "X-New"] == "1")
    #expect(cache.sent.count == 2)
  }

  @Test("a confirmed response is stored under the new request if the 304 changes Vary")
  func newVary() {
    var cache = cache(["de"])
    _ = cache.load(.page(.get, "Accept-Language: it", "Accept: x")) { _ in
      .success(.head(304, "ETag: \"de\"", "Cache-Control: max-age=60", "Vary: Accept-Language, Accept"))
    }
    #expect(cache.load(.page(.get, "Accept-Language: de")) { _ in .success(.ok("Vary: Accept-Language")) }.source == .network)
  }

  @Test("a request has at most sixteen tags and 4 KB of them")
  func limits() {
    var cache = cache((0..<30).map { "l\($0)" })
    _ = cache.load(.page(.get, "Accept-Language: x")) { _ in .success(.head(503)) }
    #expect(cache.sent[0].headerFields[.ifNoneMatch]?.split(separator: ",").count == 16)
    cache = self.cache((0..<9).map { "l\($0)" + String(repeating: "x", count: 900) })
    _ = cache.load(.page(.get, "Accept-Language: x")) { _ in .success(.head(503)) }
    #expect(cache.sent[0].headerFields[.ifNoneMatch]?.split(separator: ",").count == 4)
  }

  @Test("another user's response is not revalidated, and the caller's own condition is sent alone if no response matches")
  func notRevalidated() {
    var cache = CacheFixture()
    _ = cache.load(.page(.get, "Authorization: a")) { _ in .success(.ok("ETag: \"a\"")) }
    _ = cache.load(.page(.get, "Authorization: b")) { _ in .success(.ok("ETag: \"b\"")) }
    #expect(cache.sent[1] == .page(.get, "Authorization: b"))
    cache = self.cache()
    let request = HTTPRequest.page(.get, "Accept-Language: it", "If-None-Match: \"x\"")
    _ = cache.load(request) { _ in .success(.head(503)) }
    #expect(cache.sent == [request])
  }

  @Test("the oldest variants are removed above the limit")
  func variantLimit() {
    var cache = CacheFixture()
    cache.validator = ETagValidator(variantLimit: 3)
    for index in 0..<6 {
      _ = cache.load(.page(.get, "Accept: a\(index)")) { _ in .success(.ok("Vary: Accept")) }
      cache.advance(1)
    }
    #expect(cache.entries.map(\.variant) == ["accept=a3", "accept=a4", "accept=a5"])
    _ = cache.load(.page(.get, "Accept: a5")) { _ in .success(.ok("Vary: Accept")) }
    #expect(cache.entries.count == 3)
  }
}
