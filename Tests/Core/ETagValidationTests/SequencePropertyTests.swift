import CacheCore
import ETagValidation
import HTTPTypes
import Testing

/// Invariants of any sequence of requests and responses, in both modes.
@Suite("Arbitrary requests and responses")
struct SequencePropertyTests {
  /// An origin with a body for each version and language, so that its state can be compared with what the cache serves.
  private struct Origin {
    var version = 1
    var language = "de"
    var lines: [String] = []

    var tag: String { "\"\(language)\(version)\"" }

    func respond(_ head: HTTPRequest) -> HTTPResponse {
      let asked = head.headerFields[.ifNoneMatch] ?? ""
      let isKnown = asked.split(separator: ",").contains { $0.trimmed == tag }
      var fields = HTTPFields(lines: lines)
      fields[.eTag] = tag
      fields[.vary] = "Accept-Language"
      return HTTPResponse(status: isKnown ? .notModified : .ok, headerFields: fields)
    }
  }

  private static func directives(_ generator: inout SeededGenerator) -> String {
    let all = [
      "max-age=0", "max-age=7", "max-age=30", "s-maxage=12", "no-cache", "must-revalidate", "proxy-revalidate", "private",
      "no-store",
      "stale-while-revalidate=9", "stale-if-error=9", "public", "x",
    ]
    return (0..<Int.random(in: 0...3, using: &generator)).compactMap { _ in all.randomElement(using: &generator) }
      .joined(separator: ", ")
  }

  @Test(
    "a request that is served from the cache gets the stored version of its language, no older than allowed",
    arguments: CacheMode.allCases, 0..<20)
  func sequences(mode: CacheMode, seed: UInt64) {
    var generator = SeededGenerator(seed)
    var cache = CacheFixture()
    cache.validator = ETagValidator(mode: mode, heuristics: nil, variantLimit: 4, digestSecret: DigestSecret(high: 1, low: 2))
    var origins = ["de", "en", "fr"].map { Origin(language: $0) }
    var hits = 0
    for _ in 0..<300 {
      cache.length = 10
      cache.advance(.random(in: 0...9, using: &generator))
      let pick = Int.random(in: 0..<3, using: &generator)
      if Int.random(in: 0...4, using: &generator) == 0 { origins[pick].version += 1 }
      origins[pick].lines = ["Cache-Control: \(Self.directives(&generator))", "Date: \((cache.now - CacheFixture.start).date)"]
      var request = HTTPRequest.page(.get, "Accept-Language: \(origins[pick].language)")
      switch Int.random(in: 0...5, using: &generator) {
      case 0: request.headerFields[.ifNoneMatch] = "\"de1\", \(origins[pick].tag)"
      case 1: request.headerFields[.range] = "bytes=2-5"
      case 2: request.method = .head
      default: break
      }
      let before = cache.entries
      let origin = origins[pick]
      let isBroken = Int.random(in: 0...9, using: &generator) == 0
      let outcome = cache.load(request) { .success(isBroken ? .head(503) : origin.respond($0)) }
      #expect(cache.entries.count <= 4)
      // A 304 changes no body.
      for entry in cache.entries {
        guard let old = before.first(where: { $0.metadata.revision == entry.metadata.revision }) else { continue }
        #expect(old.metadata.response.headerFields[.eTag] == entry.metadata.response.headerFields[.eTag])
      }
      guard let reply = outcome.reply, let used = outcome.response else { continue }
      hits += 1
      #expect(used.headerFields[.eTag]?.hasPrefix("\"\(origin.language)") == true)
      check(reply, request, used)
      guard outcome.source == .cache, outcome.background == nil else { continue }
      let stored = before.first { $0.metadata.revision == outcome.revision }
      let stated = CacheControl(stored?.metadata.response.headerFields ?? HTTPFields())
      let lifetime = (mode == .shared ? stated.sharedMaxAge : nil) ?? stated.maxAge ?? .zero
      #expect(!stated.noCache && !stated.noStore && !(mode == .shared && stated.isPrivate))
      #expect((stored?.metadata.freshness.age(at: cache.now) ?? .seconds(1_000)) < lifetime)
    }
    #expect(hits > 20)
  }

  /// Checks that the reply matches the request.
  private func check(_ reply: StoredReply, _ request: HTTPRequest, _ used: HTTPResponse) {
    #expect(reply.head.headerFields[values: .age].count == 1)
    switch reply.head.status.code {
    case 200: #expect(reply.content == (request.method == .head ? StoredReply.Content.none : .whole))
    case 206: #expect(reply.content == .range(2..<6) && request.headerFields[.range] != nil)
    case 304:
      #expect(reply.content == StoredReply.Content.none)
      #expect(request.headerFields[.ifNoneMatch]?.contains(used.headerFields[.eTag] ?? "-") == true)
    default: Issue.record("\(reply.head.status)")
    }
  }
}

extension Substring {
  fileprivate var trimmed: String { String(drop { $0 == " " }) }
}

extension Duration {
  fileprivate var date: String { ETagValidationTests.date(components.seconds) }
}
