internal import CacheCore
internal import HTTPTypes

// RFC 9111 §5.2 and §5.4, RFC 5861, RFC 8246 and RFC 9213: directives.
extension ValidatorContract {
  private static let minute: HTTPFields = [.cacheControl: "max-age=60", .eTag: a]

  // §5.2.1, §5.4
  static let requestDirectives: [Case] = [
    row(
      "9111 §5.2.1.1", .may, "max-age limits the age of the response",
      stored(minute), get(10, with: [.cacheControl: "max-age=10"], .used),
      get(11, with: [.cacheControl: "max-age=10"], .forwarded)
    ),
    row(
      "9111 §5.2.1.1", .may, "max-age=0 requires validation",
      stored(minute), get(1, with: [.cacheControl: "max-age=0"], .forwarded, sent: [.ifNoneMatch: a])),
    row(
      "9111 §5.2.1.1", .must, "max-age does not extend the lifetime",
      stored(minute), get(60, with: [.cacheControl: "max-age=100"], .forwarded)),
    row(
      "9111 §5.2.1.2", .may, "max-stale permits a stale response up to its limit",
      stored(minute), get(70, with: [.cacheControl: "max-stale=10"], .used),
      get(71, with: [.cacheControl: "max-stale=10"], .forwarded)),
    row(
      "9111 §5.2.1.2", .may, "max-stale without a value permits a stale response of any age",
      stored(minute), get(6_000, with: [.cacheControl: "max-stale"], .used)),
    row(
      "9111 §5.2.1.2", .may, "max-age also limits a stale response",
      stored(minute), get(65, with: [.cacheControl: "max-age=65, max-stale=20"], .used),
      get(66, with: [.cacheControl: "max-age=65, max-stale=20"], .forwarded)),
    row(
      "9111 §5.2.1.3", .may, "min-fresh requires a remaining lifetime",
      stored(minute), get(40, with: [.cacheControl: "min-fresh=20"], .used),
      get(41, with: [.cacheControl: "min-fresh=20"], .forwarded)),
    row(
      "9111 §5.2.1.4", .may, "no-cache requires validation",
      stored(minute), get(1, with: [.cacheControl: "no-cache"], .forwarded, sent: [.ifNoneMatch: a])),
    row(
      "9111 §5.2.1.5", .may, "no-store permits the use of a stored response",
      stored(minute), get(1, with: [.cacheControl: "no-store"], .used)),
    row(
      "9111 §5.2.1.7", .should, "only-if-cached gets a stored response",
      stored(minute), get(1, with: [.cacheControl: "only-if-cached"], .used)),
    row(
      "9111 §5.2.1.7", .should, "only-if-cached gets a 504 if no response is stored",
      get(0, with: [.cacheControl: "only-if-cached"], .gatewayTimeout, status: 504)),
    row(
      "9111 §5.2.1.7", .should, "only-if-cached gets a 504 if the stored response is stale",
      stored(minute), get(60, with: [.cacheControl: "only-if-cached"], .gatewayTimeout, status: 504)),
    row(
      "9111 §5.4", .may, "Pragma: no-cache requires validation",
      stored(minute), get(1, with: [name("Pragma"): "no-cache"], .forwarded)),
    row(
      "9111 §5.4", .may, "Pragma is ignored if there is a Cache-Control",
      stored(minute), get(1, with: [name("Pragma"): "no-cache", .cacheControl: "max-age=10"], .used)),
  ]

  // §5.2.2, §5.4
  static let responseDirectives: [Case] = [
    row(
      "9111 §5.2", .should, "a number in quotes is read",
      stored([.cacheControl: "max-age=\"60\""]), get(59, .used), get(60, .forwarded)),
    row(
      "9111 §5.2", .must, "a comma in quotes does not separate directives",
      stored([.cacheControl: "x=\"a, no-store, b\", max-age=60"]), get(59, .used)),
    row(
      "9111 §5.2", .must, "all lines of Cache-Control apply",
      stored([.cacheControl: "max-age=60", .cacheControl: "no-cache", .eTag: a]), get(1, .forwarded)),
    row(
      "9111 §5.2.2", .must, "blanks and empty members between directives are accepted",
      stored([.cacheControl: " , max-age=60 ,, must-revalidate"]), get(59, .used), get(60, .passed)),
    row(
      "9111 §5.2.2.1", .must, "max-age is a whole directive, not a part of another name",
      stored([.cacheControl: "x-max-age=60, max-age-x=60", .eTag: a]), get(1, .forwarded)),
    row(
      "9111 §5.2.2.4", .must, "no-cache overrides max-stale of the request",
      stored([.cacheControl: "max-age=60, no-cache", .eTag: a]), get(1, with: [.cacheControl: "max-stale"], .passed)),
    row(
      "9111 §5.2.2.9", .may, "public permits storing any status with a lifetime",
      get(0, origin: status(302, [.cacheControl: "public, max-age=60", .location: "/other"]), .stored), get(1, .used, status: 302)
    ),
    row(
      "9111 §5.2.2.10", .must, "s-maxage overrides max-age in a shared cache", in: [.shared],
      stored([.cacheControl: "max-age=60, s-maxage=10"]), get(9, .used), get(10, .forwarded)),
    row(
      "9111 §5.2.2.10", .must, "s-maxage overrides Expires in a shared cache", in: [.shared],
      stored([.cacheControl: "s-maxage=60", .expires: date(-9)]), get(59, .used), get(60, .forwarded)),
    row(
      "9111 §5.2.2.10", .must, "s-maxage does not apply to a private cache", in: [.private],
      stored([.cacheControl: "max-age=10, s-maxage=60"]), get(9, .used), get(10, .forwarded)),
    row(
      "9111 §5.2.3", .must, "unknown directives are ignored",
      stored([.cacheControl: "community=\"UCI\", max-age=60, x"]), get(59, .used), get(60, .forwarded)),
    row(
      "9111 §5.4", .may, "Pragma has no meaning in a response",
      stored([.cacheControl: "max-age=60", name("Pragma"): "no-cache"]), get(59, .used)),
  ]

  private static let staleIfError = "max-age=5, stale-if-error=10"

  static let extensions: [Case] = [
    row(
      "5861 §3", .may, "a stale response is used within stale-while-revalidate, and validated",
      stored([.cacheControl: "max-age=5, stale-while-revalidate=10", .eTag: a]),
      get(4, .used), get(14, .usedWhileRevalidated, sent: [.ifNoneMatch: a], reply: [.age: "14"])),
    row(
      "5861 §3", .should, "a stale response is not used after stale-while-revalidate",
      stored([.cacheControl: "max-age=5, stale-while-revalidate=10", .eTag: a]), get(15, .forwarded)),
    row(
      "9111 §5.2.2.2", .must, "must-revalidate overrides stale-while-revalidate",
      stored([.cacheControl: "max-age=5, stale-while-revalidate=10, must-revalidate", .eTag: a]), get(6, .forwarded)),
    row(
      "9111 §5.2.2.8", .must, "proxy-revalidate overrides stale-while-revalidate in a shared cache", in: [.shared],
      stored([.cacheControl: "max-age=5, stale-while-revalidate=10, proxy-revalidate", .eTag: a]), get(6, .forwarded)),
    row(
      "9111 §5.2.2.4", .must, "no-cache overrides stale-while-revalidate",
      stored([.cacheControl: "max-age=5, stale-while-revalidate=10, no-cache", .eTag: a]), get(6, .forwarded)),
    row(
      "5861 §4", .may, "stale-if-error permits a stale response in place of a server error",
      stored([.cacheControl: staleIfError, .eTag: a]), get(14, origin: status(500), .servedStale, status: 200),
      get(14, origin: status(502), .servedStale), get(14, origin: status(503), .servedStale),
      get(14, origin: status(504), .servedStale)),
    row(
      "5861 §4", .may, "stale-if-error of the request has the same effect",
      stored([.cacheControl: "max-age=5", .eTag: a]),
      get(14, with: [.cacheControl: "stale-if-error=10"], origin: status(503), .servedStale)),
    row(
      "5861 §4", .should, "the error is returned after stale-if-error",
      stored([.cacheControl: staleIfError, .eTag: a]), get(15, origin: status(503), .passed, status: 503)),
    row(
      "9111 §4.2.4", .must, "stale-if-error permits no stale response in place of another status",
      stored([.cacheControl: staleIfError, .eTag: a]), get(6, origin: status(404), .passed, status: 404)),
    row(
      "9111 §5.2.2.2", .must, "must-revalidate overrides stale-if-error",
      stored([.cacheControl: "\(staleIfError), must-revalidate", .eTag: a]), get(6, origin: status(503), .passed, status: 503)),
    row(
      "8246 §2", .should, "a fresh and immutable response is not validated, even if the client revalidates",
      stored([.cacheControl: "max-age=60, immutable", .eTag: a]), get(59, policy: .revalidate(), .used)),
    row(
      "8246 §2", .must, "immutable does not extend the lifetime",
      stored([.cacheControl: "max-age=60, immutable", .eTag: a]), get(60, policy: .revalidate(), .forwarded), get(60, .forwarded)
    ),
    row(
      "9213 §2.2", .must, "a targeted field overrides Cache-Control and Expires in a shared cache", in: [.shared],
      stored([targeted: "max-age=10", .cacheControl: "max-age=60", .expires: date(60)]), get(9, .used), get(10, .forwarded)),
    row(
      "9213 §2.2", .must, "no directive of Cache-Control applies beside a targeted field", in: [.shared],
      stored([targeted: "max-age=60", .cacheControl: "no-store, private, must-revalidate", .eTag: a]), get(59, .used),
      get(60, .servedStale)),
    row(
      "9213 §2.2", .must, "no-store in a targeted field forbids storing", in: [.shared],
      get(0, origin: ok([targeted: "no-store", .cacheControl: "max-age=60"]), .passed)),
    row(
      "9213 §2.1", .must, "an invalid targeted field is ignored", in: [.shared],
      stored([targeted: "max-age=10, &", .cacheControl: "max-age=60"]), get(59, .used), get(60, .forwarded)),
    row(
      "9213 §2.2", .must, "an empty targeted field is ignored", in: [.shared],
      stored([targeted: "", .cacheControl: "max-age=60"]), get(59, .used), get(60, .forwarded)),
    row(
      "9213 §2.1", .must, "a targeted directive of the wrong type is ignored", in: [.shared],
      stored([targeted: "max-age=\"60\", x", .cacheControl: "max-age=60", .eTag: a]), get(1, .forwarded)),
    row(
      "9213 §3.1", .must, "a private cache ignores CDN-Cache-Control", in: [.private],
      stored([targeted: "max-age=60", .cacheControl: "max-age=10"]), get(9, .used), get(10, .forwarded)),
  ]

  private static let targeted = name("CDN-Cache-Control")
}
