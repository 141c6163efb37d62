import CacheCore
import ETagValidation
import HTTPTypes
import Testing

/// Validators of both modes may decide about the entries of one store.
@Suite("Responses that another validator has stored")
struct OtherValidatorTests {
  /// Returns a cache of the given mode with a response that a private cache has stored.
  private func cache(
    _ lines: [String], to request: HTTPRequest = .page(), mode: CacheMode = .shared, ignoresCookies: Bool = false
  )
    -> CacheFixture
  {
    var cache = CacheFixture()
    let secret = DigestSecret(high: 1, low: 2)
    cache.validator = ETagValidator(defaultLifetime: .seconds(60), digestSecret: secret)
    let head = HTTPResponse(status: .ok, headerFields: HTTPFields(lines: lines))
    _ = cache.load(request) { _ in .success(head) }
    cache.validator = ETagValidator(
      mode: mode, defaultLifetime: .seconds(60), ignoresCookies: ignoresCookies, digestSecret: secret)
    return cache
  }

  static let privateLines = [
    ["Cache-Control: private"], ["Cache-Control: max-age=60, Private"], ["CDN-Cache-Control: private, max-age=60"],
    ["Set-Cookie: a=b"], ["Cache-Control: no-cache", "Set-Cookie: a=b"],
    ["Cache-Control: max-age=60, private=\"X-User\"", "X-User: a"],
  ]

  @Test("a shared cache does not use a response that it would not have stored", arguments: privateLines, LoadPolicy.allForTests)
  func refused(_ lines: [String], _ policy: LoadPolicy) {
    var cache = cache(lines + ["ETag: \"1\""])
    #expect(cache.entries.count == 1)

    let outcome = cache.load(.page(), policy) { _ in .failure(CacheError(.offline, reason: "no network")) }

    #expect(outcome.source != .cache && outcome.source != .standIn)
    #expect(cache.sent.dropFirst().allSatisfy { $0.headerFields[.ifNoneMatch] == nil })
    #expect(cache.validator.selected(by: .page(), from: cache.stored) == nil)
  }

  @Test("a shared cache reads its own targets, whatever the length of their names", arguments: ["CDN-Policy", "Edge-Policies"])
  func target(_ name: String) throws {
    let target = try #require(HTTPField.Name(name))
    var cache = cache(["\(name): private", "Cache-Control: max-age=60"])
    #expect(cache.load { _ in .success(.ok()) }.source == .cache)
    cache.validator = ETagValidator(mode: .shared, targets: [target])
    #expect(cache.load { _ in .success(.ok()) }.source != .cache)
  }

  @Test("a private cache uses them", arguments: privateLines)
  func inPrivateCache(_ lines: [String]) {
    var cache = cache(lines, mode: .private)
    #expect(cache.load(.page(), .cacheFirst) { _ in .success(.ok()) }.source == .cache)
  }

  @Test(
    "a shared cache uses a response that it would have stored",
    arguments: [
      ["Cache-Control: max-age=60"], ["Cache-Control: public", "Set-Cookie: a=b"],
      ["Cache-Control: max-age=60", "Set-Cookie: a=b"],
      ["Cache-Control: max-age=60, private=\"X-User\""], ["Cache-Control: private", "CDN-Cache-Control: max-age=60"],
      ["Cache-Control: max-age=60, x-privately=1"],
    ])
  func accepted(_ lines: [String]) {
    var cache = cache(lines)
    #expect(cache.load { _ in .success(.ok()) }.source == .cache)
  }

  @Test("a shared cache that ignores cookies uses a response with a cookie")
  func ignoredCookies() {
    var cache = cache(["Set-Cookie: a=b"], ignoresCookies: true)
    #expect(cache.load { _ in .success(.ok()) }.source == .cache)
  }

  @Test("the response to a shared cache replaces the refused one of the same variant")
  func replaced() {
    var cache = cache(["Cache-Control: private, max-age=60"])
    let revision = cache.entries.first?.metadata.revision

    _ = cache.load { _ in .success(.ok("Cache-Control: max-age=60")) }

    #expect(cache.entries.count == 1 && cache.entries.first?.metadata.revision != revision)
  }
}

extension LoadPolicy {
  static let allForTests: [LoadPolicy] = [
    .standard, .cacheFirst, .cacheOnly, .staleWhileRevalidate, .revalidate(), .memoryElseReload,
  ]
}
