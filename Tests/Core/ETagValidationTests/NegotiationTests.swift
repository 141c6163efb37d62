import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("Content negotiation by the cache")
struct NegotiationTests {
  enum Setting: CaseIterable { case none, languages, images }

  private func validator(_ setting: Setting, mode: CacheMode = .private) -> ETagValidator {
    ETagValidator(
      mode: mode, negotiatesLanguages: setting == .languages, negotiatesImages: setting == .images,
      digestSecret: DigestSecret(high: 1, low: 2))
  }

  private func cache(_ setting: Setting, mode: CacheMode = .private) -> CacheFixture {
    var cache = CacheFixture()
    cache.validator = validator(setting, mode: mode)
    return cache
  }

  /// Returns whether a response that was stored for one value serves a request with another one, with a setting and without it.
  private func uses(
    _ name: String, _ first: String?, _ second: String?, _ lines: String..., by setting: Setting
  ) -> [Bool] {
    [setting, .none].map { setting in
      var cache = cache(setting)
      func request(_ value: String?) -> HTTPRequest { value.map { .page(.get, "\(name): \($0)") } ?? .page() }
      var response = HTTPResponse.ok("Cache-Control: max-age=60", "Vary: \(name)")
      response.headerFields.append(contentsOf: HTTPFields(lines: lines))
      _ = cache.load(request(first)) { _ in .success(response) }
      #expect(cache.entries.count == 1)
      return cache.load(request(second)) { _ in .success(.ok()) }.source == .cache
    }
  }

  @Test(
    "with languages, a response is used if the request weighs its language most, or lists equal languages in another order",
    arguments: [
      // stored for, Content-Language, request, used
      ("en, de", "de", "fr;q=0.5, de;q=1.0", true), ("en, de", "DE", "de", true), ("en", "de-AT", "de-at, de;q=0.9", true),
      (nil, "de", "de, *;q=0.1", true), ("en, de", nil, "de, en", true), ("en;q=0.5, de", nil, "de, en;q=0.5", true),
      ("en, de, it;q=0.3", nil, "de, it;q=0.30, en", true),
      // Another language, or a choice of the origin.
      ("en", "en", "de", false), ("de", "de", "de, en", false), ("de", "de", "en, de;q=0.9", false),
      ("de", "de", "de-AT", false), ("de-AT", "de-AT", "de", false), ("en", "de", "*", false), ("en", "*", "*", false),
      ("en", "de", "de;q=0", false), ("en", "de", nil, false), ("en", "de, en", "de", false), ("en", nil, "de", false),
      ("en, de", nil, "de, en;q=0.9", false), ("en, de", nil, "de, en, en", false), ("en", "", "", false),
    ] as [(String?, String?, String?, Bool)])
  func languages(stored: String?, language: String?, request: String?, isUsed: Bool) {
    let line = language.map { "Content-Language: \($0)" } ?? "X-None: 1"
    let isSame = request == "de, en;q=0.5"  // the normal form of "en;q=0.5, de"
    #expect(uses("Accept-Language", stored, request, line, by: .languages) == [isUsed, isSame])
    #expect(uses("Accept-Language", stored, request, line, by: .images)[0] == isSame)
  }

  @Test(
    "with images, Accept is compared by the formats that not every client decodes",
    arguments: [
      // stored for, Content-Type, request, used
      ("image/avif,image/webp,image/apng,*/*;q=0.8", "image/avif", "image/webp, image/avif, image/png, image/*;q=0.8", true),
      ("image/png,*/*", "image/jpeg", "*/*", true), ("*/*", "image/png", "image/*, */*;q=0.5", true),
      ("image/webp, */*", "Image/WebP; x=1", "IMAGE/webp", true),
      // Other formats, weights or types, or one that the request does not accept.
      ("image/avif, */*", "image/avif", "*/*", false), ("*/*", "image/png", "image/webp, */*", false),
      ("image/webp, */*", "image/webp", "image/webp;q=0.5, */*", false), ("*/*", "image/png", "text/html, */*", false),
      ("image/webp, */*", "image/png", "image/webp", false), ("*/*", "image/png", "*/*;q=0, image/gif", false),
      ("*/*", "image/png", "image/png;q=0, */*", false), ("image/*", "text/html", "*/*", false), ("*/*", nil, "image/*", false),
      (nil, "image/png", "*/*", false), ("*/*", "image/png", nil, false), ("*/*", "image/png", "", false),
    ] as [(String?, String?, String?, Bool)])
  func images(stored: String?, type: String?, request: String?, isUsed: Bool) {
    let line = type.map { "Content-Type: \($0)" } ?? "X-None: 1"
    #expect(uses("Accept", stored, request, line, by: .images) == [isUsed, false])
    #expect(uses("Accept", stored, request, line, by: .languages)[0] == false)
  }

  @Test("all other selecting fields and the credentials must match", arguments: CacheMode.allCases)
  func others(mode: CacheMode) {
    var cache = cache(.languages, mode: mode)
    _ = cache.load(.page(.get, "Accept-Language: en, de", "Accept: a/b")) { _ in
      .success(.ok("Cache-Control: max-age=60", "Vary: Accept-Language, Accept", "Content-Language: de"))
    }
    #expect(cache.load(.page(.get, "Accept-Language: de", "Accept: c/d")) { _ in .success(.head(503)) }.source == .network)
    let isUsed = cache.load(.page(.get, "Accept-Language: de", "Accept: a/b", "Authorization: a")) { _ in .success(.head(503)) }
    #expect(isUsed.source == (mode == .shared ? .cache : .network))
    #expect(cache.load(.page(.get, "Accept-Language: de", "Accept: a/b")) { _ in .success(.head(503)) }.source == .cache)
  }

  @Test("a stored response that matches the request is used before one that negotiation selects")
  func exact() {
    var cache = cache(.languages)
    for (list, language) in [("de", "x-own"), ("en, de", "de")] {
      _ = cache.load(.page(.get, "Accept-Language: \(list)")) { _ in
        .success(.ok("Cache-Control: max-age=60", "Vary: Accept-Language", "Content-Language: \(language)"))
      }
      cache.advance(1)
    }
    let outcome = cache.load(.page(.get, "Accept-Language: de")) { _ in .success(.ok()) }
    #expect(outcome.response?.headerFields[.contentLanguage] == "x-own")
    #expect(
      cache.load(.page(.get, "Accept-Language: de, en;q=0.5")) { _ in .success(.ok()) }
        .response?.headerFields[.contentLanguage] == "de")
  }

  /// Returns a cache with a stale German response for `en, de`.
  private func stale(_ tag: String, _ directives: String = "max-age=5") -> CacheFixture {
    var cache = cache(.languages)
    _ = cache.load(.page(.get, "Accept-Language: en, de")) { _ in
      .success(.ok("Cache-Control: \(directives)", "Vary: Accept-Language", "Content-Language: de", "ETag: \(tag)"))
    }
    cache.advance(10)
    cache.sent = []
    return cache
  }

  @Test("a stale response is confirmed by its strong tag, and then stored for both requests")
  func confirmed() {
    var cache = stale("\"a\"")
    let german = HTTPRequest.page(.get, "Accept-Language: de")
    let outcome = cache.load(german) { _ in .success(.head(304, "ETag: \"a\"", "Cache-Control: max-age=60")) }
    #expect(outcome.source == .revalidated)
    #expect(cache.sent.map { $0.headerFields[.ifNoneMatch] } == ["\"a\""])
    #expect(cache.entries.map(\.variant) == ["accept-language=en, de", "accept-language=de"])
    #expect(cache.load(german) { _ in .success(.head(500)) }.source == .cache)
  }

  @Test("a stale response with a weak tag or a date is not confirmed, because variants may share them")
  func unconfirmed() {
    var cache = stale("W/\"a\"")
    let outcome = cache.load(.page(.get, "Accept-Language: de")) { _ in .success(.ok("Vary: Accept-Language")) }
    #expect(outcome.source == .network)
    #expect(cache.sent == [.page(.get, "Accept-Language: de")])
    #expect(cache.entries.count == 2)
  }

  @Test("a stale response is used as far as a response that matches would be")
  func staleUse() {
    let german = HTTPRequest.page(.get, "Accept-Language: de")
    let unreachable: CacheFixture.Origin = { _ in .failure(CacheError(.offline, reason: "no network")) }
    var cache = stale("\"a\"")
    #expect(cache.load(german, from: unreachable).source == .standIn)
    #expect(cache.load(german, .cacheOnly, from: unreachable).source == .cache)
    cache = stale("\"a\"", "max-age=5, must-revalidate")
    #expect(cache.load(german, from: unreachable).source == .failure)
    cache = stale("\"a\"", "max-age=5, stale-while-revalidate=60")
    let outcome = cache.load(german) { head in
      .success(head.headerFields[.ifNoneMatch] == "\"a\"" ? .head(304, "ETag: \"a\"") : .head(500))
    }
    #expect(outcome.source == .cache && outcome.background == .revalidated)
  }

  @Test("what is stored does not depend on the setting, so it can be changed for a store")
  func changed() {
    for settings in [[Setting.languages, .none], [.none, .languages]] {
      var cache = cache(settings[0])
      for list in ["en, de", "fr"] {
        _ = cache.load(.page(.get, "Accept-Language: \(list)")) { _ in
          .success(.ok("Cache-Control: max-age=60", "Vary: Accept-Language", "Content-Language: de"))
        }
      }
      #expect(cache.entries.map(\.variant) == ["accept-language=en, de", "accept-language=fr"])
      cache.validator = validator(settings[1])
      #expect(cache.load(.page(.get, "Accept-Language: en, de")) { _ in .success(.ok()) }.source == .cache)
      let source = cache.load(.page(.get, "Accept-Language: de, en")) { _ in .success(.head(503)) }.source
      #expect(source == (settings[1] == .none ? .network : .cache))
    }
  }

  @Test("validators with different settings have different identities")
  func identity() {
    let validators = Setting.allCases.map { validator($0) }
    #expect(Set(validators.map(\.id)).count == 3)
    #expect(validators.map(\.negotiatesLanguages) == [false, true, false])
    #expect(validators.map(\.negotiatesImages) == [false, false, true])
  }
}
