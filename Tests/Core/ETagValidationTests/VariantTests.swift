import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("Variants of a resource")
struct VariantTests {
  private let validator = ETagValidator(digestSecret: DigestSecret(high: 1, low: 2))

  @Test(
    "a stored response is used for requests with equivalent selecting fields",
    arguments: [
      ("Accept", ["Accept: a,b"], ["Accept: a , b"], true), ("Accept", ["Accept: a", "Accept: b"], ["Accept: a, ,b"], true),
      ("Accept", ["Accept: a"], ["Accept: b"], false), ("Accept", ["Accept: a,b"], ["Accept: b,a"], true),
      ("Accept", [], [], true),
      ("Accept", [], ["Accept: a"], false), ("Accept", ["Accept: a"], [], false), ("Accept", ["Accept:"], [], false),
      ("ACCEPT , ,x-b", ["Accept: a", "X-B: 1"], ["accept: a", "x-b: 1"], true),
      ("Accept, X-B", ["Accept: a", "X-B: 1"], ["Accept: a", "X-B: 2"], false), ("Accept", ["X-B: 1"], ["X-B: 2"], true),
      ("Accept-Language", ["Accept-Language: en;q=0.5, de"], ["Accept-Language: DE , en ; Q=0.5"], true),
      ("Accept-Language", ["Accept-Language: en, de"], ["Accept-Language: de, en"], false),
      ("Accept-Encoding", ["Accept-Encoding: gzip, br;q=0.5, zstd"], ["Accept-Encoding: zstd,gzip , br;q=0.5"], true),
      ("Accept-Encoding", ["Accept-Encoding: gzip, br;q=0.5"], ["Accept-Encoding: gzip;q=0.5, br"], false),
      ("Accept", ["Accept: text/html, image/png"], ["Accept: image/png", "Accept: text/html"], true),
      ("X-L", ["X-L: a, b"], ["X-L: b, a"], false),
      ("Accept-Language", ["Accept-Language: en;q=0.5, de"], ["Accept-Language: en;q=0.6, de"], false),
      ("Accept-Encoding", ["Accept-Encoding: GZIP;q=0, br"], ["Accept-Encoding: br,gzip;q=0"], true),
      ("Accept-Encoding", ["Accept-Encoding: a;q=0.0011, b"], ["Accept-Encoding: b, a;q=0.0011"], true),
      ("Accept-Encoding", ["Accept-Encoding: gzip;q=1.0, br;q=0.50"], ["Accept-Encoding: br;q=0.5,gzip"], true),
      ("Accept-Encoding", ["Accept-Encoding: br;Q=0.000, gzip"], ["Accept-Encoding: gzip, br;q=0"], true),
      ("Accept-Encoding", ["Accept-Encoding: gzip;q=1.5"], ["Accept-Encoding: gzip"], false),
      ("Accept-Language", ["Accept-Language: de;q=0.05"], ["Accept-Language: de;q=0.5"], false),
      ("Accept", ["Accept: a/b;x=1;q=1"], ["Accept: a/b;x=1"], true),
      ("Accept", ["Accept: a/b;q=1;x=1"], ["Accept: a/b;x=1"], false),
      ("Accept", ["Accept: a/b;q=0.5;q=1"], ["Accept: a/b;q=0.5"], false),
      ("Accept", ["Accept: Text/HTML;a=B"], ["Accept: text/html; a=B"], true),
      ("Accept", ["Accept: text/html;a=B"], ["Accept: text/html;a=b"], false),
      ("Accept", ["Accept: ;q=1, a"], ["Accept: a"], true), ("Accept", ["Accept: \"b, a"], ["Accept: a, \"b"], false),
      ("X-L", ["X-L: \"a ,b", "X-L: c\""], ["X-L: \"a, b, c\""], false),
      ("Accept", ["Accept: a;b=\"X\" , c"], ["Accept: a;b=\"x\" , c"], false), ("X-L", ["X-L: A"], ["X-L: a"], false),
      ("X-Q", ["X-Q: \"a,b\""], ["X-Q: \"a, b\""], false), ("User-Agent", ["User-Agent: a,b"], ["User-Agent: a, b"], false),
      ("Cookie", ["Cookie: a=1"], ["Cookie: a=1"], true), ("Cookie", ["Cookie: a=1"], ["Cookie: a=2"], false),
      ("Accept", ["Authorization: x"], ["Authorization: x"], true), ("Accept", ["Authorization: x"], ["Authorization: y"], false),
      ("Accept", ["Authorization: x"], [], false), ("Accept", [], ["Authorization: x"], false),
      ("Authorization", ["Authorization: x"], ["Authorization: x"], true), ("Authorization", [], ["Authorization: x"], false),
      ("*", [], [], false), ("Accept, *", [], [], false), ("not a name", [], [], false), ("", [], ["Accept: a"], true),
    ] as [(String, [String], [String], Bool)])
  func matching(vary: String, first: [String], second: [String], isUsed: Bool) {
    var (a, b) = (HTTPRequest.page(), HTTPRequest.page())
    a.headerFields = HTTPFields(lines: first)
    b.headerFields = HTTPFields(lines: second)
    let response = HTTPResponse.ok("Cache-Control: max-age=60", "Vary: \(vary)")
    #expect(cacheUse(of: response, a, again: b) == (isUsed ? .fullyCached : .notCached))
  }

  @Test("a list of preferences gives the same variant on one line and on several", arguments: 0..<10)
  func linesOfPreferences(seed: UInt64) throws {
    var generator = SeededGenerator(seed)
    let pool = ["gzip", "br", "*", "de", "en-us", "text/html", "a b", "", " ", "zz", "zzz", "BR", "gzip;q=0.5", "x; y"]
    for _ in 0..<20 {
      let members = (0..<Int.random(in: 1...5, using: &generator)).map { _ in
        let blanks = ["", " ", "\t", "  "]
        return (blanks.randomElement(using: &generator) ?? "") + (pool.randomElement(using: &generator) ?? "")
      }
      for name in ["Accept", "Accept-Encoding", "Accept-Language"] {
        func variant(_ lines: [String]) -> [String] {
          var (cache, request) = (CacheFixture(), HTTPRequest.page())
          request.headerFields = HTTPFields(lines: lines.map { "\(name): \($0)" })
          _ = cache.load(request) { _ in .success(.ok("Vary: \(name)")) }
          return cache.entries.map(\.variant)
        }
        // An additional empty line adds no member.
        let one = variant([members.joined(separator: ",")])
        #expect(variant([members.joined(separator: ","), ""]) == one)
        #expect(variant(members) == one)
        #expect(one.count == 1)
      }
    }
  }

  @Test("without Vary, a response to one user's credentials serves no other request, and a public response serves no user")
  func authorization() {
    let response = HTTPResponse.ok("Cache-Control: max-age=60")
    let (alice, bob) = (HTTPRequest.page(.get, "Authorization: alice"), HTTPRequest.page(.get, "Authorization: bob"))
    #expect(cacheUse(of: response, alice, again: alice) == .fullyCached)
    #expect(cacheUse(of: response, alice, again: bob) == .notCached)
    #expect(cacheUse(of: response, alice, again: .page()) == .notCached)
    #expect(cacheUse(of: response, .page(), again: bob) == .notCached)
    #expect(cacheUse(of: response, alice, again: bob, .cacheFirst) == .notCached)
  }

  @Test("a request with a stored digest as its credentials matches no response")
  func replayedDigest() throws {
    var cache = CacheFixture()
    _ = cache.load(.page(.get, "Authorization: alice")) { _ in .success(.ok("Cache-Control: max-age=60")) }
    let digest = try #require(cache.stored.first?.request.headerFields[.authorization])
    let outcome = cache.load(.page(.get, "Authorization: \(digest)")) { _ in .success(.ok()) }
    #expect(outcome.source == .network)
  }

  @Test("with another secret, responses to credentials no longer match, but all others do")
  func otherSecret() {
    var cache = CacheFixture()
    let (alice, plain) = (HTTPRequest.page(.get, "Authorization: alice"), HTTPRequest.page())
    for request in [alice, plain] { _ = cache.load(request) { _ in .success(.ok("Cache-Control: max-age=60")) } }
    #expect(cache.validator.selected(by: alice, from: cache.stored) == 0)
    let other = ETagValidator(digestSecret: DigestSecret(high: 1, low: 3))
    #expect(other.selected(by: alice, from: cache.stored) == nil)
    #expect(other.selected(by: plain, from: cache.stored) == 1)
  }

  @Test("the variant has one sorted line for each selecting field, and is empty without any")
  func variantText() {
    let request = HTTPRequest.page(.get, "Accept: a,b", "X-B: 1%\té")
    #expect(validator.variant(of: .ok(), to: request).isEmpty)
    #expect(validator.variant(of: .ok("Vary: X-B, Accept, X-C"), to: request) == "accept=a, b\nx-b=1%25%09%C3%A9\nx-c")
    let authorized = validator.variant(of: .ok("Vary: Accept"), to: .page(.get, "Authorization: x"))
    #expect(authorized.hasPrefix("accept\nauthorization=siphash128:"))
  }

  @Test("different selecting fields never have the same variant, whatever their bytes")
  func variantsAreUnambiguous() {
    var generator = SeededGenerator(3)
    var seen: [String: [HTTPField]] = [:]
    let names = [HTTPField.Name.accept, .userAgent]
    let alphabet: [UInt8] = [0x20, 0x22, 0x25, 0x2C, 0x3D, 0x41, 0xC3, 0xA9, 0xFF]
    for _ in 0..<5_000 {
      var request = HTTPRequest.page()
      for name in names where Bool.random(using: &generator) {
        let bytes = (0..<Int.random(in: 0...3, using: &generator)).map { _ in
          alphabet.randomElement(using: &generator) ?? 0
        }
        request.headerFields.append(HTTPField(name: name, value: bytes))
      }
      var cache = CacheFixture()
      _ = cache.load(request) { _ in .success(.ok("Vary: Accept, User-Agent")) }
      let kept = Array(cache.stored[0].request.headerFields)
      let variant = cache.entries[0].variant
      #expect(variant.utf8.allSatisfy { (0x20...0x7E).contains($0) || $0 == 0x0A })
      #expect(seen.updateValue(kept, forKey: variant) ?? kept == kept)
    }
    #expect(seen.count > 50)
  }

  @Test("each variant is stored and confirmed with its own tag")
  func sideBySide() {
    var cache = CacheFixture()
    for language in ["de", "en"] {
      _ = cache.load(.page(.get, "Accept-Language: \(language)")) { _ in
        .success(.ok("Vary: Accept-Language", "ETag: \"\(language)\""))
      }
    }
    #expect(cache.entries.count == 2)
    for (language, revision) in [("de", 1), ("en", 2)] {
      let outcome = cache.load(.page(.get, "Accept-Language: \(language)")) { head in
        #expect(head.headerFields[.ifNoneMatch]?.hasPrefix("\"\(language)\", ") == true)
        return .success(.head(304, "ETag: \"\(language)\""))
      }
      #expect(outcome.revision == Revision(high: 0, low: UInt64(revision)))
    }
  }

  @Test("of several matching responses, the one with the latest Date is used, or else the last to arrive")
  func mostRecent() {
    func metadata(_ dateLine: String?, at seconds: Int64) -> StoredMetadata {
      var response = HTTPResponse.ok()
      response.headerFields[.date] = dateLine
      let time = CacheFixture.start + .seconds(seconds)
      return StoredMetadata(
        request: .page(), response: response, requestTime: time, responseTime: time, revision: Revision(high: 0, low: 0),
        freshness: validator.freshness(of: response, requestTime: time, responseTime: time))
    }
    let request = HTTPRequest.page()
    #expect(validator.selected(by: request, from: [metadata(date(9), at: 10), metadata(date(5), at: 20)]) == 0)
    #expect(validator.selected(by: request, from: [metadata(date(5), at: 10), metadata(date(5), at: 20)]) == 1)
    #expect(validator.selected(by: request, from: [metadata(nil, at: 10), metadata(date(5), at: 20)]) == 0)
    #expect(validator.selected(by: request, from: []) == nil)
  }

  @Test(
    "Vary lists the selecting fields, and a private cache adds Authorization",
    arguments: [
      ("", []), ("Accept, ,x-b", ["accept", "x-b"]), ("X-B;q=1, Accept", ["accept"]), ("*", []),
      ("authorization", ["authorization"]),
    ])
  func selectingFields(vary: String, names: [String]) {
    let response = HTTPResponse.ok("Vary: \(vary)")
    let metadata = StoredMetadata(
      request: .page(), response: response, requestTime: CacheFixture.start, responseTime: CacheFixture.start,
      revision: Revision(high: 0, low: 0),
      freshness: validator.freshness(of: response, requestTime: CacheFixture.start, responseTime: CacheFixture.start))
    let shared = ETagValidator(mode: .shared).selectingFields(of: metadata).map(\.canonicalName)
    let own = validator.selectingFields(of: metadata).map(\.canonicalName)
    #expect(Set(shared) == Set(names) && shared.count == names.count)
    #expect(Set(own) == Set(names + ["authorization"]) && own.count == Set(own).count)
  }

  @Test("a new response removes only the stored ones that it replaces")
  func dropping() {
    var cache = CacheFixture()
    let (german, english) = (HTTPRequest.page(.get, "Accept-Language: de"), HTTPRequest.page(.get, "Accept-Language: en"))
    _ = cache.load(german) { _ in .success(.ok("Vary: Accept-Language")) }
    _ = cache.load(english) { _ in .success(.ok("Vary: Accept-Language")) }
    _ = cache.load(english) { _ in .success(.ok("Vary: Accept-Language")) }
    #expect(cache.entries.map(\.variant) == ["accept-language=de", "accept-language=en"])
    _ = cache.load(german) { _ in .success(.ok("Vary: Accept")) }
    #expect(cache.entries.map(\.variant) == ["accept-language=en", "accept"])
    _ = cache.load(english) { _ in .success(.ok()) }
    #expect(cache.entries.map(\.variant) == [""])
  }
}
