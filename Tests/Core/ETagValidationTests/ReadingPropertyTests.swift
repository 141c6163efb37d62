import CacheCore
import ETagValidation
import HTTPTypes
import Testing

/// Compares the readers, which work on bytes in one pass, with plain ones on generated fields.
@Suite("Readers compared with plain ones")
struct ReadingPropertyTests {
  @Test("Cache-Control is read as a plain parser reads it", arguments: 0..<8)
  func directives(seed: UInt64) {
    var generator = SeededGenerator(seed)
    let pieces = [
      "max-age", "S-MaxAge", "stale-while-revalidate", "stale-if-error", "max-stale", "min-fresh", "no-cache", "No-Store",
      "private", "public", "immutable", "no-transform", "only-if-cached", "must-revalidate", "proxy-revalidate",
      "must-understand",
      "other", "=", "=", "=", "=60", "=0", "=-1", "=99999999999", "=\"60\"", "=\"6\\0\"", "=\"", "\"", "\\", ",", ",", ",", ", ",
      " ", "\t",
      "Set-Cookie", "vary", "x-a", "é", "=\"x-a, Set-Cookie\"", "=\"ETag\"", "1",
    ]
    var known = Set<CacheControl>()
    for _ in 0..<4_000 {
      let count = Int.random(in: 0...9, using: &generator)
      let line = (0..<count).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
      let read = CacheControl(line)
      #expect(read == PlainDirectives.read(line), "\(line)")
      known.insert(read)
    }
    // The lines differ in their meaning.
    #expect(known.count > 50)
  }

  @Test("the freshness of a response depends on the values of its fields and not on their positions", arguments: 0..<8)
  func freshness(seed: UInt64) {
    var generator = SeededGenerator(seed)
    let now = CacheFixture.start
    let values: [(name: String, values: [String])] = [
      ("Date", [date(-9), date(-3), date(2), "x"]), ("Age", ["7", "20", "x", ", 5"]),
      ("Expires", [date(30), date(60), "0", "Thu, 01 Jan 2026 00:01:00 UTC"]),
      ("Cache-Control", ["max-age=40", "s-maxage=50", "no-cache", "public", "must-revalidate", "stale-while-revalidate=5"]),
      ("CDN-Cache-Control", ["max-age=70", "max-age=80", "x="]), ("Last-Modified", [date(-1_000), date(-500)]),
      ("Data", ["1"]), ("Ages", ["1"]), ("Cache-Controls", ["no-cache"]), ("Expired", ["0"]), ("X-Date", [date(-90)]),
    ]
    var known = Set<Freshness>()
    for _ in 0..<1_000 {
      let lines = (0..<Int.random(in: 0...9, using: &generator)).compactMap { _ -> String? in
        guard let field = values.randomElement(using: &generator) else { return nil }
        let name = Bool.random(using: &generator) ? field.name : field.name.uppercased()
        return "\(name): \(field.values.randomElement(using: &generator) ?? "")"
      }
      for mode in CacheMode.allCases {
        let response = HTTPResponse(status: .ok, headerFields: HTTPFields(lines: lines))
        let read = ETagValidator(mode: mode, digestSecret: DigestSecret(high: 1, low: 2)).freshness(
          of: response, requestTime: now - .seconds(1), responseTime: now)
        #expect(read == plainFreshness(of: response.headerFields, mode, now), "\(mode) \(lines)")
        known.insert(read)
      }
    }
    #expect(known.count > 50)
  }

  /// Looks up each field by its name, as RFC 9111 §4.2 names them.
  private func plainFreshness(of fields: HTTPFields, _ mode: CacheMode, _ now: Timestamp) -> Freshness {
    func lines(_ name: String) -> [String] { fields.filter { $0.name.canonicalName == name }.map(\.value) }
    let targeted = mode == .shared ? lines("cdn-cache-control") : []
    let isTargeted = !targeted.isEmpty && !targeted.contains("x=")
    // In a structured dictionary, the last value of a key applies.
    let directives = isTargeted ? CacheControl(targeted.last ?? "") : CacheControl(lines("cache-control").joined(separator: ","))
    let date = lines("date").compactMap { HTTPDate($0, receivedAt: now)?.timestamp }.min() ?? now
    let stated = lines("age").first.flatMap { Int64($0.filter { $0 != "," && $0 != " " }) } ?? 0
    let age = max(now - date, .seconds(stated + 1))
    var lifetime = (mode == .shared ? directives.sharedMaxAge : nil) ?? directives.maxAge
    if lifetime == nil, !isTargeted {
      // An invalid time, such as one of another zone than GMT, has already passed.
      let ends = lines("expires").map { $0.hasSuffix("GMT") ? HTTPDate($0, receivedAt: now)?.timestamp : nil }
      lifetime = ends.map { $0 ?? .distantPast }.min().map { max(.zero, $0 - date) }
    }
    if lifetime == nil, mode == .shared, Set(lines("last-modified")).count == 1, let line = lines("last-modified").first,
      let modified = HTTPDate(line, receivedAt: now)?.timestamp
    {
      lifetime = .seconds((date - modified).components.seconds / 10)
    }
    let freshUntil = now - age + (lifetime ?? .zero)
    let isStrict = directives.noCache || directives.mustRevalidate || (mode == .shared && directives.sharedMaxAge != nil)
    return Freshness(
      generatedAt: now - age, freshUntil: freshUntil, requiresRevalidation: directives.noCache,
      staleWhileRevalidateUntil: isStrict ? nil : directives.staleWhileRevalidate.map { freshUntil + $0 },
      staleIfErrorUntil: isStrict ? nil : .distantFuture)
  }

  @Test("a date in the usual layout is read as the general parser reads it", arguments: 0..<8)
  func dates(seed: UInt64) {
    var generator = SeededGenerator(seed)
    var valid = 0
    for round in 0..<4_000 {
      let seconds = Int64.random(in: -9_000_000_000..<9_000_000_000, using: &generator)
      let time = Timestamp(seconds: seconds)
      var text = HTTPDate(time).description
      #expect(HTTPDate(text, receivedAt: time)?.timestamp == time)
      if round > 1_000 {
        var bytes = Array(text.utf8)
        let position = bytes.indices.randomElement(using: &generator) ?? 0
        bytes[position] = Array(" 0123456789:,GMTadeJFnu\u{7F}".utf8).randomElement(using: &generator) ?? 0
        text = String(decoding: bytes, as: UTF8.self)
      }
      // Only the general parser accepts capital letters.
      let read = HTTPDate(text, receivedAt: time)
      #expect(read == HTTPDate(text.uppercased(), receivedAt: time), "\(text)")
      if read != nil { valid += 1 }
    }
    #expect(valid > 1_200 && valid < 4_000)
  }

  @Test("a stored response lacks the fields of the connection, and has all others in order", arguments: 0..<8)
  func connectionFields(seed: UInt64) {
    var generator = SeededGenerator(seed)
    let names = [
      "Keep-Alive", "TE", "Trailer", "Upgrade", "Transfer-Encoding", "Proxy-Connection", "X-One", "X-Two", "ETag", "Age",
      "Vary-X",
      "Content-Type", "X-Three", "Set-Cookie", "Secret",
    ]
    let dropped = [
      "keep-alive", "te", "trailer", "upgrade", "transfer-encoding", "proxy-connection", "connection", "x-one", "x-two", "secret",
    ]
    for _ in 0..<300 {
      let count = Int.random(in: 0...30, using: &generator)
      var lines = (0..<count).map { "\(names.randomElement(using: &generator) ?? ""): \($0)" }
      lines.insert("Connection: X-One, eTag , close, x-two", at: .random(in: 0...lines.count, using: &generator))
      lines.append("Cache-Control: max-age=60, no-cache=\"Secret, X-None\"")
      let response = HTTPResponse(status: .ok, headerFields: HTTPFields(lines: lines))
      var cache = CacheFixture()
      _ = cache.load { _ in .success(response) }
      let left = response.headerFields.filter { !dropped.contains($0.name.canonicalName) } as [HTTPField]
      #expect(cache.stored.first.map { Array($0.response.headerFields) } == left)
    }
  }
}

/// A parser of `Cache-Control` that follows the rules of ``CacheControl`` with strings and arrays.
private enum PlainDirectives {
  static func read(_ line: String) -> CacheControl {
    var stated = CacheControl()
    for member in members(Array(line.utf8)) { apply(member, &stated) }
    return stated
  }

  /// Splits at commas outside quoted strings. After a quote that is not closed, all quotes are ordinary characters.
  private static func members(_ bytes: [UInt8]) -> [String] {
    var members: [[UInt8]] = [[]]
    var (index, honorsQuotes) = (0, true)
    while index < bytes.count {
      var end = index + 1
      if bytes[index] == UInt8(ascii: "\""), honorsQuotes {
        if let close = close(bytes, after: index) { end = close + 1 } else { honorsQuotes = false }
      }
      if bytes[index] == UInt8(ascii: ",") { members.append([]) } else { members[members.count - 1] += bytes[index..<end] }
      index = end
    }
    return members.map { trimmed(String(decoding: $0, as: UTF8.self)) }.filter { !$0.isEmpty }
  }

  private static func close(_ bytes: [UInt8], after start: Int) -> Int? {
    var index = start + 1
    while index < bytes.count, bytes[index] != UInt8(ascii: "\"") { index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1 }
    return index < bytes.count ? index : nil
  }

  private static func trimmed(_ text: String) -> String {
    let isBlank = { (character: Unicode.Scalar) in character == " " || character == "\t" }
    let start = text.unicodeScalars.drop(while: isBlank)
    return String(String.UnicodeScalarView(start.reversed().drop(while: isBlank).reversed()))
  }

  private static func apply(_ member: String, _ stated: inout CacheControl) {
    let parts = member.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    let name = trimmed(parts[0]).lowercased()
    let isQuoted = parts.count == 2 && parts[1].first == "\"" && trimmed(parts[0]) == parts[0]
    let text = parts.count == 2 && trimmed(parts[0]) == parts[0] ? argument(parts[1]) : nil
    let isNumber = text.map { !$0.isEmpty && $0.utf8.allSatisfy { (48...57).contains($0) } } ?? false
    let seconds = isNumber ? text.map { Duration.seconds(min(Int64($0) ?? .max, 2_147_483_648)) } : nil
    func least(_ known: Duration?) -> Duration { min(known ?? .seconds(Int64.max), seconds ?? .zero) }
    let names = isQuoted ? text.map { members(Array($0.utf8)).map { $0.lowercased() } } : nil
    let decisive = ["age", "cache-control", "content-range", "date", "etag", "expires", "last-modified", "vary"]
    let isWhole = names.map { $0.isEmpty || $0.contains(where: decisive.contains) } ?? true
    switch name {
    case "max-age": stated.maxAge = least(stated.maxAge)
    case "s-maxage": stated.sharedMaxAge = least(stated.sharedMaxAge)
    case "stale-while-revalidate": stated.staleWhileRevalidate = least(stated.staleWhileRevalidate)
    case "stale-if-error": stated.staleIfError = least(stated.staleIfError)
    case "max-stale": stated.maxStale = parts.count == 1 ? stated.maxStale ?? CacheControl.anyAge : least(stated.maxStale)
    case "min-fresh": stated.minFresh = max(stated.minFresh ?? .zero, seconds ?? .seconds(2_147_483_648))
    case "no-cache": (stated.noCache, stated.noCacheFields) = (stated.noCache || isWhole, stated.noCacheFields + (names ?? []))
    case "private": (stated.isPrivate, stated.privateFields) = (stated.isPrivate || isWhole, stated.privateFields + (names ?? []))
    case "no-store": stated.noStore = true
    case "public": stated.isPublic = true
    case "immutable": stated.immutable = true
    case "no-transform": stated.noTransform = true
    case "only-if-cached": stated.onlyIfCached = true
    case "must-revalidate": stated.mustRevalidate = true
    case "proxy-revalidate": stated.proxyRevalidate = true
    case "must-understand": stated.mustUnderstand = true
    default: break
    }
  }

  /// Returns a token, or the unescaped text of a quoted string, or `nil` for anything else.
  private static func argument(_ text: String) -> String? {
    let bytes = Array(text.utf8)
    guard bytes.first == UInt8(ascii: "\"") else {
      return !text.isEmpty && HTTPField.Name(text) != nil ? text : nil
    }
    guard close(bytes, after: 0) == bytes.count - 1 else { return nil }
    var (plain, index) = ([UInt8](), 1)
    while index < bytes.count - 1 {
      if bytes[index] == UInt8(ascii: "\\") { index += 1 }
      plain.append(bytes[index])
      index += 1
    }
    return String(decoding: plain, as: UTF8.self)
  }
}
