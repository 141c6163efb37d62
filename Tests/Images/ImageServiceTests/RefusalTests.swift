#if Service
import CacheTesting
import Foundation
import HTTPTypes
import ImageService
import Testing

@Suite("Requests and sources that are refused")
struct RefusalTests {
  @Test(
    "a source that is not allowed gets 403, and nothing is loaded",
    arguments: [
      "https://evil.example/cat.png", "http://photos.example.com/cat.png", "https://photos.example.com:444/cat.png",
      "https://photos.example.com.evil.example/cat.png", "https://evil.example/photos.example.com/cat.png",
      "https://169.254.169.254/latest/meta-data", "https://[::1]/cat.png", "site/cat.png",
      "http://site.folder.example/cat.png",
    ])
  func notAllowed(_ source: String) async throws {
    let fixture = try ServiceFixture()
    let served = try await fixture.get("width=4", of: source)
    #expect(served.status == 403)
    #expect(served.problem == "sourceRefused")
  }

  @Test(
    "a source that is neither a URL nor a file gets 400",
    arguments: [
      "", "cat.png", "/etc/passwd", "ftp://photos.example.com/cat.png", "file:///etc/passwd", "site/../cat.png",
      "site/.git/config",
      "https://", "http://site.folder.invalid/cat.png", "https://photos.example.com/a#b", "javascript:alert(1)", "data:,x",
      "https://photos.example.com@evil.example/cat.png", "https://x:y@photos.example.com/cat.png",
    ])
  func noURL(_ source: String) async throws {
    let fixture = try ServiceFixture()
    let served = try await fixture.get("width=4", of: source)
    #expect(served.status == 400)
    #expect(served.problem == "invalidSource")
  }

  @Test("a part of an origin's path does not allow its other paths")
  func path() async throws {
    let fixture = try ServiceFixture { $0.sources = [try .origin("https://photos.example.com/public")] }
    for path in ["/public/a.png", "/public"] {
      try fixture.serve(try DrawnImage.png(4, 4), at: "https://photos.example.com\(path)")
      #expect(try await fixture.get("width=2", of: "https://photos.example.com\(path)").status == 200)
    }
    for path in ["/private/a.png", "/publicity/a.png", "/public/../private/a.png", "/public/%2e%2e/private/a.png", "/"] {
      #expect(try await fixture.get("width=2", of: "https://photos.example.com\(path)").status == 403, "\(path)")
    }
  }

  @Test("a wildcard allows the hosts below a domain, and not the domain")
  func wildcard() async throws {
    let fixture = try ServiceFixture { $0.sources = [try .origin("https://*.example.com")] }
    for host in ["a.example.com", "a.b.example.com"] {
      try fixture.serve(try DrawnImage.png(4, 4), at: "https://\(host)/x.png")
      #expect(try await fixture.get("width=2", of: "https://\(host)/x.png").status == 200)
    }
    for host in ["example.com", "badexample.com", "a.example.com.evil.example"] {
      #expect(try await fixture.get("width=2", of: "https://\(host)/x.png").status == 403)
    }
  }

  @Test("a redirect to a source that is not allowed gets 403")
  func redirect() async throws {
    let fixture = try ServiceFixture()
    let url = try #require(URL(string: ServiceFixture.image))
    fixture.network.serve(url) { _ in .redirect(to: "https://evil.example/cat.png") }
    let served = try await fixture.get("width=4")
    #expect(served.status == 403)
    #expect(served.problem == "sourceRefused")
  }

  @Test("an origin cannot redirect to a file of a folder, hidden or not", arguments: ["cat.png", ".env", "%2eenv"])
  func redirectToFile(_ name: String) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "redirected-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    for file in ["cat.png", ".env"] { try DrawnImage.png(8, 8).write(to: folder.appending(path: file)) }
    let path = folder.path(percentEncoded: false)
    let fixture = try ServiceFixture { $0.sources += [try .folder(path, named: "site")] }
    #expect(try await fixture.get("original", of: "site/cat.png").status == 200)
    let url = try #require(URL(string: ServiceFixture.image))
    for scheme in ["http", "https"] {
      fixture.network.serve(url) { _ in .redirect(to: "\(scheme)://site.folder.invalid/\(name)") }
      #expect(try await fixture.get("original").status == 403)
    }
  }

  @Test("a step that makes an image beyond the limits gets 422, however small the source is")
  func enlarging() async throws {
    let fixture = try ServiceFixture { $0.limits.maximumSide = 500 }
    try fixture.serve(try DrawnImage.png(1, 5))
    for operations in ["gray,width=400:enlarge", "width=400:enlarge", "rotate=90,height=400:enlarge"] {
      #expect(try await fixture.get(operations).problem == "imageLimitExceeded", "\(operations)")
    }
    #expect(try await fixture.get("width=100:enlarge").status == 200)
  }

  private struct InvalidLimit: Sendable {
    let reason: String
    let change: @Sendable (inout ImageService.Configuration) -> Void

    init(_ reason: String, _ change: @escaping @Sendable (inout ImageService.Configuration) -> Void) {
      (self.reason, self.change) = (reason, change)
    }
  }

  private static let invalidLimits = [
    InvalidLimit("'maximumSide' must be from 1 to 65535, not 0") { $0.limits.maximumSide = 0 },
    InvalidLimit("'maximumSide' must be from 1 to 65535, not 65536") { $0.limits.maximumSide = 65_536 },
    InvalidLimit("'sourceBytes' must be at least 1, not 0") { $0.limits.sourceBytes = 0 },
    InvalidLimit("'sourcePixels' must be from 1 to 1000000000, not 0") { $0.limits.sourcePixels = 0 },
    InvalidLimit("'timeout' must be greater than zero, not -1.0 seconds") { $0.limits.timeout = .seconds(-1) },
    InvalidLimit("'resultsInProgress' must be at least 1, not 0") { $0.limits.resultsInProgress = 0 },
    InvalidLimit("'perSecond' must be from 0.001 to 1000000000.0, not 0.0") {
      $0.limits.clientRate = .init(perSecond: 0, burst: 1)
    },
    InvalidLimit("'burst' must be from 1 to 1000000000, not 0") { $0.limits.clientRate = .init(perSecond: 1, burst: 0) },
    InvalidLimit("'memoryBudget' must be at least 1, not -1") { $0.cache.memoryBudget = -1 },
  ]

  @Test("a limit out of range is refused, and the error names it with its value", arguments: invalidLimits.indices)
  func limitRanges(_ index: Int) {
    let limit = Self.invalidLimits[index]
    let error = #expect(throws: CacheError.self) { try ServiceFixture { limit.change(&$0) } }
    #expect(error?.code == .invalidConfiguration)
    #expect(error?.reason == "the setting \(limit.reason)")
  }

  @Test(
    "a source has its existing escapes, and its invalid bytes are encoded",
    arguments: ["/a%20b c.png?s=%2B[", "/é%20x.png", "/100%.png"])
  func encoding(_ path: String) async throws {
    let fixture = try ServiceFixture()
    let url = try ResourceRequest("https://photos.example.com\(path)").url
    #expect(!url.absoluteString.contains("%252"))
    try fixture.serve(try DrawnImage.png(8, 8), at: url.absoluteString)
    #expect(try await fixture.get("width=4", of: "https://photos.example.com\(path)").status == 200)
    #expect(try await fixture.get("width=4", of: "https://photos%2eexample.com\(path)").status == 200)
  }

  @Test(
    "a redirect with user information gets 403",
    arguments: ["https://ada:b@photos.example.com/moved.png", "//x@photos.example.com/moved.png"])
  func redirectWithUser(_ location: String) async throws {
    let fixture = try ServiceFixture()
    let url = try #require(URL(string: ServiceFixture.image))
    fixture.network.serve(url) { _ in .redirect(to: location) }
    try fixture.serve(try DrawnImage.png(8, 8), at: "https://photos.example.com/moved.png")
    let served = try await fixture.get("width=4")
    #expect(served.status == 403)
    #expect(served.problem == "sourceRefused")
  }

  @Test("a redirect within the allowed sources is followed")
  func allowedRedirect() async throws {
    let fixture = try ServiceFixture()
    let url = try #require(URL(string: ServiceFixture.image))
    fixture.network.serve(url) { _ in .redirect(to: "https://photos.example.com/moved.png") }
    try fixture.serve(try DrawnImage.png(8, 8), at: "https://photos.example.com/moved.png")
    #expect(try await fixture.get("width=4").status == 200)
  }

  @Test("an address that is not public gets 403, also by name")
  func addresses() async throws {
    let fixture = try ServiceFixture {
      $0.sources = [try .origin("http://127.0.0.1"), try .origin("http://localhost")]
      $0.addresses = .publicOnly
    }
    for host in ["127.0.0.1", "localhost"] {
      let served = try await fixture.get("width=4", of: "http://\(host)/cat.png")
      #expect(served.status == 403)
      #expect(served.problem == "sourceRefused")
    }
  }

  @Test(
    "an error of the origin is a named problem, and is not cached",
    arguments: [
      (404, 404, "sourceNotFound"), (410, 410, "sourceNotFound"), (403, 502, "sourceFailed"), (500, 502, "sourceFailed"),
    ])
  func originStatus(_ status: Int, _ expected: Int, _ code: String) async throws {
    let fixture = try ServiceFixture()
    let url = try #require(URL(string: ServiceFixture.image))
    fixture.network.serve(url) { _ in .response(.init(code: status), body: Data("secret details".utf8)) }
    for _ in 0..<2 {
      let served = try await fixture.get("width=4")
      #expect(served.status == expected)
      #expect(served.problem == code)
      #expect(served.fields[.cacheControl] == "no-store")
      let text = String(decoding: served.data, as: UTF8.self)
      #expect(!text.contains("secret") && !text.contains(#""title":"""#), "\(text)")
    }
    try fixture.serve(try DrawnImage.png(8, 8))
    #expect(try await fixture.get("width=4").status == 200)
  }

  @Test(
    "an origin that cannot be reached is a named problem",
    arguments: [
      (CacheError.Code.connectionRefused, 502, "sourceUnreachable"), (.timedOut, 504, "timedOut"),
      (.tlsFailure, 502, "sourceUnreachable"), (.truncatedBody, 502, "sourceUnreachable"),
    ])
  func unreachable(_ error: CacheError.Code, _ status: Int, _ code: String) async throws {
    let fixture = try ServiceFixture()
    fixture.network.serve(try #require(URL(string: ServiceFixture.image))) { _ in
      .failure(error, reason: "10.1.2.3 refused the connection")
    }
    let served = try await fixture.get("width=4")
    #expect(served.status == status)
    #expect(served.problem == code)
    #expect(!String(decoding: served.data, as: UTF8.self).contains("10.1.2.3"))
    #expect(served.response.error?.reason.contains("10.1.2.3") == true)
  }

  @Test("bytes that are no image, or only a part of one, get 422")
  func notAnImage() async throws {
    let fixture = try ServiceFixture()
    let whole = try DrawnImage.png(200, 200)
    for data in [Data("<html>".utf8), Data(), whole.prefix(whole.count / 2), Data(repeating: 0, count: 100)] {
      try fixture.serve(data, etag: "\"\(data.count)\"", cacheControl: "no-cache")
      let served = try await fixture.get("width=4")
      #expect(served.status == 422, "\(data.count)")
      #expect(served.problem == "notAnImage")
    }
  }

  @Test("a source beyond the limits gets 422")
  func limits() async throws {
    let fixture = try ServiceFixture {
      $0.limits.sourcePixels = 1_000
      $0.limits.sourceBytes = 100_000
    }
    try fixture.serve(try DrawnImage.png(100, 100))
    #expect(try await fixture.get("width=4").problem == "imageLimitExceeded")
    try fixture.serve(Data(repeating: 7, count: 200_000), at: "https://photos.example.com/large")
    let served = try await fixture.get("original", of: "https://photos.example.com/large")
    #expect(served.status == 422)
    #expect(served.problem == "sourceTooLarge")
  }

  @Test("a drawing gets 422, unless the configuration allows its format")
  func drawings() async throws {
    let drawing = Data(#"<svg xmlns="http://www.w3.org/2000/svg" width="8" height="4"/>"#.utf8)
    let fixture = try ServiceFixture()
    try fixture.serve(drawing)
    let served = try await fixture.get("width=4")
    #expect(served.status == 422 && served.problem == "unsupportedFormat")
    #expect(String(decoding: served.data, as: UTF8.self).contains("SVG"))
    // ImageIO does not draw SVG.
    #if !canImport(ImageIO)
    let open = try ServiceFixture { $0.limits.sourceFormats.insert(.svg) }
    try open.serve(drawing)
    let drawn = try await open.get("width=4")
    #expect(drawn.status == 200)
    #expect(try drawn.header.size == PixelSize(4, 2))
    #endif
  }

  @Test("a truncated source is drawn as far as possible if the configuration allows it")
  func partial() async throws {
    let whole = try DrawnImage.png(200, 200)
    let fixture = try ServiceFixture { $0.allowsPartial = true }
    try fixture.serve(whole.prefix(whole.count / 2))
    let served = try await fixture.get("width=100")
    #expect(served.status == 200)
    #expect(try served.header.size == PixelSize(100, 100))
  }

  @Test("beyond the number of results in progress, requests get 503 with Retry-After")
  func overload() async throws {
    let fixture = try ServiceFixture { $0.limits.resultsInProgress = 2 }
    let gate = Gate()
    let data = try DrawnImage.png(8, 8)
    for name in ["a", "b", "c"] {
      fixture.network.serve(try #require(URL(string: "https://photos.example.com/\(name)"))) { _ in .ok(data).held(by: gate) }
    }
    async let first = fixture.get("width=4", of: "https://photos.example.com/a")
    async let second = fixture.get("width=4", of: "https://photos.example.com/b")
    await gate.arrived(2)
    #expect(fixture.service.resultsInProgress == 2)
    let third = try await fixture.get("width=4", of: "https://photos.example.com/c")
    #expect(third.status == 503)
    #expect(third.problem == "overloaded")
    #expect(third.fields[.retryAfter] == "1")
    gate.open()
    #expect(try await first.status == 200)
    #expect(try await second.status == 200)
    #expect(try await fixture.get("width=4", of: "https://photos.example.com/c").status == 200)
    #expect(fixture.service.resultsInProgress == 0)
  }

  @Test("a client beyond its rate gets 429 with Retry-After, and others are served")
  func rate() async throws {
    let fixture = try ServiceFixture { $0.limits.clientRate = .init(perSecond: 0.5, burst: 2) }
    try fixture.serve(try DrawnImage.png(8, 8))
    let path = fixture.key.path(for: ServiceFixture.image, operations: "width=4")
    #expect(try await fixture.get(path: path, client: "a").status == 200)
    #expect(try await fixture.get(path: path, client: "a").status == 200)
    let refused = try await fixture.get(path: path, client: "a")
    #expect(refused.status == 429)
    #expect(refused.problem == "tooManyRequests")
    #expect(refused.fields[.retryAfter] == "3")
    #expect(try await fixture.get(path: path, client: "b").status == 200)
    #expect(try await fixture.get(path: path).status == 200)
    fixture.clock.advance(by: .seconds(3))
    #expect(try await fixture.get(path: path, client: "a").status == 200)
  }

  @Test("only GET and HEAD are allowed", arguments: [HTTPRequest.Method.post, .put, .delete, .options])
  func methods(_ method: HTTPRequest.Method) async throws {
    let fixture = try ServiceFixture()
    let served = try await fixture.get("width=4", method: method)
    #expect(served.status == 405)
    #expect(try served.fields[#require(HTTPField.Name("Allow"))] == "GET, HEAD")
  }

  @Test("a closed service responds with 503")
  func closed() async throws {
    let fixture = try ServiceFixture()
    await fixture.service.close(within: .seconds(1))
    let served = try await fixture.get("width=4")
    #expect(served.status == 503)
  }

  @Test("a configuration without keys or sources, or with an invalid path, is refused")
  func configurations() throws {
    #expect(throws: CacheError.self) { try ServiceFixture { $0.keys = [] } }
    #expect(throws: CacheError.self) { try ServiceFixture { $0.sources = [] } }
    for path in ["", "/", "img", "/img/"] {
      #expect(throws: CacheError.self) { try ServiceFixture { $0.pathPrefix = path } }
    }
    for origin in ["", "photos", "ftp://a", "https://", "https://a:b@c", "https://a/?q", "https://a.*", "file:///etc"] {
      #expect(throws: CacheError.self) { try ImageSource.origin(origin) }
    }
  }
}
#endif
