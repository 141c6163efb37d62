internal import CacheCore
internal import HTTPTypes

// RFC 9111 §4 to §4.2: the use of stored responses.
extension ValidatorContract {
  private static let minute: HTTPFields = [.cacheControl: "max-age=60"]

  static let reuse: [Case] = [
    row(
      "9111 §4", .must, "a request for another resource is forwarded",
      stored(minute), get(1, path: "/other", .forwarded), get(1, path: "/page?", .forwarded)),
    row(
      "9111 §4", .must, "a stored response to GET serves no unsafe method",
      stored([.cacheControl: "max-age=60, public"]), send(.post, 1, origin: status(500), .forwarded),
      send(.put, 1, origin: status(500), .forwarded), send(.delete, 1, origin: status(500), .forwarded),
      send(.patch, 1, origin: status(500), .forwarded)),
    row(
      "9110 §9.3.2", .may, "a stored response to GET serves HEAD, without its bytes",
      stored([.cacheControl: "max-age=60", .contentLength: "100"]),
      send(.head, 1, .used, status: 200, reply: [.contentLength: "100"], content: StoredReply.Content.none)),
    row(
      "9111 §4", .must, "a reply without validation has an Age field",
      stored(minute), get(30, .used, reply: [.age: "30"], content: .whole)),
    row(
      "9111 §4", .must, "the Age field of the stored response is replaced",
      stored([.cacheControl: "max-age=60", .age: "10"]), get(30, .used, reply: [.age: "40"])),
    row(
      "9111 §4", .must, "of several suitable responses, the one with the latest Date is used",
      stored([.cacheControl: "max-age=60", .vary: "Accept", .date: date(0), .eTag: a], to: [.accept: "text/html"]),
      get(
        1, with: [.accept: "image/png"],
        origin: ok([.cacheControl: "max-age=60", .vary: "Accept-Language", .date: date(-9), .eTag: b]), .stored),
      get(2, with: [.accept: "text/html"], .used, reply: [.eTag: a])),
    row(
      "9111 §4", .must, "a response with no-cache is used only after validation",
      stored([.cacheControl: "max-age=60, no-cache", .eTag: a]), get(0, .forwarded),
      get(1, origin: status(304, [.eTag: a]), .validated)),
  ]

  // §4.1
  static let variants: [Case] = [
    row(
      "9111 §4.1", .must, "a response is not used if a field that its Vary names differs",
      stored([.cacheControl: "max-age=60", .vary: "Accept"], to: [.accept: "text/html"]),
      get(1, with: [.accept: "text/plain"], .forwarded)),
    row(
      "9111 §4.1", .must, "a response is not used if only its own request lacks a field that its Vary names",
      stored([.cacheControl: "max-age=60", .vary: "Accept"]), get(1, with: [.accept: "text/html"], .forwarded)),
    row(
      "9111 §4.1", .must, "a response is not used if only the new request lacks a field that its Vary names",
      stored([.cacheControl: "max-age=60", .vary: "Accept"], to: [.accept: "text/html"]), get(1, .forwarded)),
    row(
      "9111 §4.1", .must, "every name in Vary is compared, without case",
      stored([.cacheControl: "max-age=60", .vary: "accept, X-CUSTOM"], to: [.accept: "a/b", custom: "1"]),
      get(1, with: [.accept: "a/b", custom: "2"], .forwarded)),
    row(
      "9111 §4.1", .must, "all lines of Vary are compared",
      get(
        0, with: [.accept: "a/b", custom: "1"], origin: ok([.cacheControl: "max-age=60", .vary: "Accept", .vary: "X-Custom"]),
        .stored),
      get(1, with: [.accept: "a/b", custom: "2"], .forwarded)),
    row(
      "9111 §4.1", .must, "a response with * in its Vary is never used without validation",
      get(0, origin: ok([.cacheControl: "max-age=60", .vary: "Accept, *"]), .forwarded), get(1, .forwarded)),
    row(
      "9111 §4.1", .must, "a Vary field that a 304 adds selects from then on",
      stored([.cacheControl: "max-age=5", .eTag: a]),
      get(
        10, with: [.accept: "a/b"], origin: status(304, [.eTag: a, .cacheControl: "max-age=60", .vary: "Accept"]), .validated),
      get(20, with: [.accept: "a/b"], .used), get(20, with: [.accept: "c/d"], .forwarded)),
    row(
      "9111 §4.1", .may, "a response is used if the fields that its Vary names are equal, and others differ",
      stored([.cacheControl: "max-age=60", .vary: "Accept, X-Custom"], to: [.accept: "a/b", .acceptLanguage: "de"]),
      get(1, with: [.accept: "a/b", .acceptLanguage: "en"], .used)),
    row(
      "9111 §4.1", .may, "several variants are stored, and each serves its own requests",
      stored([.cacheControl: "max-age=60", .vary: "Accept", .eTag: a], to: [.accept: "a/b"]),
      get(1, with: [.accept: "c/d"], origin: ok([.cacheControl: "max-age=60", .vary: "Accept", .eTag: b]), .stored),
      get(2, with: [.accept: "a/b"], .used, reply: [.eTag: a]), get(2, with: [.accept: "c/d"], .used, reply: [.eTag: b])),
    row(
      "9111 §4.1", .should, "a matching response with Vary is used before a newer one without it",
      stored(
        [.cacheControl: "max-age=60", .vary: "Accept-Language", .date: date(0), .eTag: a], to: [.acceptLanguage: "de"]),
      get(1, with: [.acceptLanguage: "en"], origin: ok([.cacheControl: "max-age=60", .date: date(1), .eTag: b]), .stored),
      get(2, with: [.acceptLanguage: "de"], .used, reply: [.eTag: a]),
      get(2, with: [.acceptLanguage: "it"], .used, reply: [.eTag: b])),
    row(
      "9111 §4.1", .may, "blanks around the members of a list do not select",
      stored([.cacheControl: "max-age=60", .vary: "X-Custom"], to: [custom: "1,2"]), get(1, with: [custom: " 1 , 2 "], .used)),
    row(
      "9111 §4.1", .may, "several lines of a list are equal to one line",
      stored([.cacheControl: "max-age=60", .vary: "X-Custom"], to: [custom: "1, 2"]),
      get(1, with: [custom: "1", custom: "2"], .used)),
    row(
      "9111 §4.1", .must, "the order of an unknown list selects",
      stored([.cacheControl: "max-age=60", .vary: "X-Custom"], to: [custom: "1, 2"]), get(1, with: [custom: "2, 1"], .forwarded)),
    row(
      "9111 §4.1", .may, "the order and the case of codings do not select",
      stored([.cacheControl: "max-age=60", .vary: "Accept-Encoding"], to: [.acceptEncoding: "gzip, br"]),
      get(1, with: [.acceptEncoding: "BR,gzip"], .used)),
    row(
      "9111 §4.1", .may, "the order of media types of equal weight does not select",
      stored([.cacheControl: "max-age=60", .vary: "Accept"], to: [.accept: "image/webp, image/png, */*;q=0.8"]),
      get(1, with: [.accept: "image/png, image/webp, */*;q=0.8"], .used)),
    row(
      "9111 §4.1", .may, "the case of languages does not select",
      stored([.cacheControl: "max-age=60", .vary: "Accept-Language"], to: [.acceptLanguage: "de-AT, en;q=0.5"]),
      get(1, with: [.acceptLanguage: "DE-at,en; Q=0.5"], .used)),
    row(
      "9110 §12.5.4", .may, "the order of languages of equal weight does not select",
      stored([.cacheControl: "max-age=60", .vary: "Accept-Language"], to: [.acceptLanguage: "de, en, it;q=0.5"]),
      get(1, with: [.acceptLanguage: "en, de, it;q=0.5"], .used)),
    row(
      "9110 §12.4.2", .may, "the digits of a weight do not select",
      stored([.cacheControl: "max-age=60", .vary: "Accept-Encoding"], to: [.acceptEncoding: "gzip, br;q=0.5"]),
      get(1, with: [.acceptEncoding: "gzip;q=1.0, br;q=0.500"], .used)),
    row(
      "9111 §4.1", .must, "the weights of a list select",
      stored([.cacheControl: "max-age=60", .vary: "Accept-Encoding"], to: [.acceptEncoding: "gzip, br;q=0.5"]),
      get(1, with: [.acceptEncoding: "gzip;q=0.5, br"], .forwarded)),
  ]

  // §4.2, §4.2.1, §4.2.2
  static let lifetimes: [Case] = [
    row("9111 §4.2", .may, "a response is used while its age is below its lifetime", stored(minute), get(59, .used)),
    row("9111 §4.2", .must, "a response is stale when its age has reached its lifetime", stored(minute), get(60, .forwarded)),
    row(
      "9111 §4.2", .should, "a date with a zone other than GMT is invalid",
      stored([.expires: "Thu, 01 Jan 2026 00:01:00 CET"]), get(1, .forwarded)),
    row(
      "9111 §4.2", .should, "dates are read without case",
      stored([.expires: "THU, 01 jan 2026 00:01:00 gmt"]), get(59, .used), get(60, .forwarded)),
    row(
      "9111 §4.2.1", .must, "max-age overrides a later Expires",
      stored([.cacheControl: "max-age=10", .expires: date(60)]), get(10, .forwarded)),
    row(
      "9111 §4.2.1", .must, "max-age overrides an earlier Expires",
      stored([.cacheControl: "max-age=60", .expires: date(10)]), get(59, .used)),
    row(
      "9111 §4.2.1", .must, "the lifetime by Expires starts at Date",
      stored([.expires: date(60), .date: date(-30)]), get(59, .used, reply: [.age: "89"]), get(60, .forwarded)),
    row(
      "9111 §4.2.1", .must, "the lifetime by Expires without Date starts at the arrival",
      stored([.expires: date(60)]), get(59, .used), get(60, .forwarded)),
    row(
      "9111 §4.2.1", .should, "of two values of max-age, the first applies, or the response is stale",
      stored([.cacheControl: "max-age=10, max-age=60"]), get(10, .forwarded)),
    row(
      "9111 §4.2.1", .should, "of two Expires fields, the first applies, or the response is stale",
      stored([.expires: date(10), .expires: date(60)]), get(10, .forwarded)),
    row(
      "9111 §4.2.1", .should, "the most restrictive of conflicting directives applies",
      get(0, origin: ok([.cacheControl: "public, no-store, max-age=60"]), .passed)),
    row(
      "9111 §4.2.1", .should, "an invalid max-age makes the response stale",
      stored([.cacheControl: "max-age=1m", .expires: date(60), .eTag: a]), get(1, .forwarded)),
    row(
      "9111 §4.2.1", .should, "a negative max-age makes the response stale",
      stored([.cacheControl: "max-age=-60", .eTag: a]), get(1, .forwarded)),
    row(
      "9111 §1.2.2", .must, "a number of seconds that is too large is read as 2^31 or more",
      stored([.cacheControl: "max-age=99999999999999999999"]), get(2_147_483_647, .used)),
    row(
      "9111 §4.2.2", .may, "a response without a lifetime is used for a fraction of the time since Last-Modified",
      stored([.lastModified: date(-86_400), .date: date(0)]), get(60, .used), get(86_400, .forwarded)),
    row(
      "9111 §4.2.2", .must, "a heuristic does not replace max-age",
      stored([.cacheControl: "max-age=10", .lastModified: date(-86_400)]), get(10, .forwarded)),
    row(
      "9111 §4.2.2", .must, "a heuristic does not replace an invalid Expires",
      stored([.expires: "0", .lastModified: date(-86_400)]), get(10, .forwarded)),
    row(
      "9111 §4.2.2", .must, "a temporary redirect has no heuristic lifetime",
      get(0, origin: status(302, [.lastModified: date(-86_400), .location: "/other"]), .forwarded), get(1, .forwarded)),
    row(
      "9111 §4.2.2", .may, "public permits a heuristic lifetime for every status",
      get(0, origin: status(403, [.cacheControl: "public", .lastModified: date(-86_400)]), .stored), get(60, .used)),
  ]

  // RFC 9110 §15.1
  static let heuristics: [Case] = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].map { code in
    row(
      "9110 §15.1", .may, "a \(code) has a heuristic lifetime",
      get(0, origin: status(code, [.lastModified: date(-86_400)]), .stored), get(60, .used, status: code))
  }

  // §4.2.3, §5.1
  static let ages: [Case] = [
    row(
      "9111 §4.2.3", .must, "the age includes the received Age",
      stored([.cacheControl: "max-age=60", .age: "50"]), get(9, .used, reply: [.age: "59"]), get(10, .forwarded)),
    row(
      "9111 §4.2.3", .must, "the received Age counts from the request, not from the response",
      get(0, delay: 20, origin: ok([.cacheControl: "max-age=60", .age: "30"]), .stored), get(29, .used, reply: [.age: "59"]),
      get(30, .forwarded)),
    row(
      "9111 §4.2.3", .may, "the age is at least the time since Date",
      stored([.cacheControl: "max-age=60", .date: date(-50)]), get(9, .used, reply: [.age: "59"]), get(10, .forwarded)),
    row(
      "9111 §4.2.3", .must, "a Date in the future does not make the response younger",
      stored([.cacheControl: "max-age=60", .date: date(100)]), get(59, .used, reply: [.age: "59"]), get(60, .forwarded)),
    row(
      "9110 §6.6.1", .must, "without Date, the response was made when it arrived",
      stored(minute), get(59, .used, reply: [.age: "59"])),
    row(
      "9111 §5.1", .should, "of several Age values, the first applies",
      stored([.cacheControl: "max-age=60", .age: "10, 50"]), get(49, .used), get(50, .forwarded)),
    row(
      "9111 §5.1", .should, "an invalid Age is ignored",
      stored([.cacheControl: "max-age=60", .age: "-50"]), get(59, .used, reply: [.age: "59"])),
    row(
      "9111 §1.2.2", .must, "an Age that is too large is not ignored",
      get(0, origin: ok([.cacheControl: "max-age=60", .age: "99999999999999999999", .eTag: a]), .forwarded), get(1, .forwarded)),
    row(
      "9111 §5.3", .must, "the value 0 of Expires means that the response has expired",
      stored([.expires: "0", .eTag: a]), get(0, .forwarded)),
    row(
      "9111 §5.3", .must, "an invalid date in Expires means that the response has expired",
      stored([.expires: "tomorrow", .eTag: a]), get(0, .forwarded)),
    row(
      "9110 §5.6.7", .must, "the obsolete forms of dates are read",
      stored([.expires: "Thursday, 01-Jan-26 00:01:00 GMT", .lastModified: "Wed Dec 31 00:00:00 2025"]), get(59, .used),
      get(59, with: [.ifModifiedSince: "Wed, 31 Dec 2025 00:00:00 GMT"], .used, status: 304)),
  ]

  // §4.2.4
  static let staleness: [Case] = [
    row(
      "9111 §4.2.4", .may, "a stale response is used if the origin cannot be reached",
      stored([.cacheControl: "max-age=5", .eTag: a]), get(10, .servedStale, reply: [.age: "10"])),
    row(
      "9111 §4.2.4", .must, "a stale response is not used while the origin can be reached",
      stored([.cacheControl: "max-age=5"]), get(10, origin: ok([.eTag: b]), .forwarded, reply: [.eTag: b])),
    row(
      "9111 §4.2.4", .must, "no-cache forbids a stale response, even without a connection",
      stored([.cacheControl: "max-age=5, no-cache", .eTag: a]), get(1, .passed), get(10, .passed)),
    row(
      "9111 §5.2.2.2", .must, "must-revalidate forbids a stale response, even without a connection",
      stored([.cacheControl: "max-age=5, must-revalidate", .eTag: a]), get(10, .passed)),
    row(
      "9111 §5.2.2.2", .must, "must-revalidate forbids a stale response that the client would accept",
      stored([.cacheControl: "max-age=5, must-revalidate", .eTag: a]), get(10, with: [.cacheControl: "max-stale"], .passed)),
    row(
      "9111 §5.2.2.2", .may, "must-revalidate permits the use of a fresh response",
      stored([.cacheControl: "max-age=5, must-revalidate"]), get(4, .used)),
    row(
      "9111 §5.2.2.8", .must, "proxy-revalidate forbids a stale response in a shared cache", in: [.shared],
      stored([.cacheControl: "max-age=5, proxy-revalidate", .eTag: a]), get(10, .passed),
      get(10, with: [.cacheControl: "max-stale"], .passed)),
    row(
      "9111 §5.2.2.8", .may, "proxy-revalidate does not apply to a private cache", in: [.private],
      stored([.cacheControl: "max-age=5, proxy-revalidate", .eTag: a]), get(10, .servedStale)),
    row(
      "9111 §5.2.2.10", .must, "s-maxage forbids a stale response in a shared cache", in: [.shared],
      stored([.cacheControl: "s-maxage=5", .eTag: a]), get(10, .passed), get(10, with: [.cacheControl: "max-stale"], .passed)),
  ]
}
