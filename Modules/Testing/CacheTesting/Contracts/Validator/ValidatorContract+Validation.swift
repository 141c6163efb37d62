internal import CacheCore
internal import HTTPTypes

// RFC 9111 §4.3 and §4.4: validation and invalidation.
extension ValidatorContract {
  // §4.3.1
  static let revalidating: [Case] = [
    row(
      "9111 §4.3.1", .must, "a validation has the stored tag in If-None-Match",
      stored([.cacheControl: "max-age=5", .eTag: a]), get(10, .forwarded, sent: [.ifNoneMatch: a, .ifModifiedSince: nil])),
    row(
      "9111 §4.3.1", .must, "a weak tag is sent unchanged",
      stored([.cacheControl: "max-age=5", .eTag: weak]), get(10, .forwarded, sent: [.ifNoneMatch: weak])),
    row(
      "9111 §4.3.1", .should, "a validation has the stored Last-Modified in If-Modified-Since",
      stored([.cacheControl: "max-age=5", .lastModified: date(-9)]),
      get(10, .forwarded, sent: [.ifModifiedSince: date(-9), .ifNoneMatch: nil])),
    row(
      "9111 §4.3.1", .should, "a validation has both validators",
      stored([.cacheControl: "max-age=5", .eTag: a, .lastModified: date(-9)]),
      get(10, .forwarded, sent: [.ifNoneMatch: a, .ifModifiedSince: date(-9)])),
    row(
      "9110 §13.1", .must, "without a validator, the request has no condition",
      stored([.cacheControl: "max-age=5", .date: date(0)]), get(10, .forwarded, sent: [.ifNoneMatch: nil, .ifModifiedSince: nil])
    ),
    row(
      "9111 §4.3.1", .may, "a request that matches no variant has the tags of all variants",
      stored([.cacheControl: "max-age=60", .vary: "Accept-Language", .eTag: a], to: [.acceptLanguage: "de"]),
      get(
        1, with: [.acceptLanguage: "en"], origin: ok([.cacheControl: "max-age=60", .vary: "Accept-Language", .eTag: b]), .stored),
      get(2, with: [.acceptLanguage: "it"], .forwarded, sent: [.ifNoneMatch: "\"b\", \"a\""])),
    row(
      "9111 §5.2", .must, "the directives of a request are forwarded",
      stored([.cacheControl: "max-age=5", .eTag: a]),
      get(10, with: [.cacheControl: "max-age=3, x=1"], .forwarded, sent: [.cacheControl: "max-age=3, x=1"])),
  ]

  private static let fresh: HTTPFields = [.cacheControl: "max-age=60", .eTag: a, .lastModified: date(-9), .contentLength: "100"]

  // §4.3.2, RFC 9110 §13
  static let conditions: [Case] = [
    row(
      "9111 §4.3.2", .should, "If-None-Match with the stored tag gets a 304",
      stored(fresh), get(1, with: [.ifNoneMatch: a], .used, status: 304, content: StoredReply.Content.none)),
    row(
      "9111 §4.3.2", .should, "If-None-Match with another tag gets the response",
      stored(fresh), get(1, with: [.ifNoneMatch: b], .used, status: 200, content: .whole)),
    row(
      "9110 §13.1.2", .must, "If-None-Match is a list",
      stored(fresh), get(1, with: [.ifNoneMatch: "\"b\" , ,\"a\""], .used, status: 304)),
    row(
      "9110 §13.1.2", .must, "a comma in a tag does not end it",
      stored([.cacheControl: "max-age=60", .eTag: "\"a,b\""]), get(1, with: [.ifNoneMatch: "\"c\", \"a,b\""], .used, status: 304),
      get(1, with: [.ifNoneMatch: a], .used, status: 200)),
    row(
      "9110 §13.1.2", .must, "* in If-None-Match matches every response",
      stored(fresh), get(1, with: [.ifNoneMatch: "*"], .used, status: 304)),
    row(
      "9110 §13.1.2", .must, "If-None-Match is compared weakly",
      stored(fresh), get(1, with: [.ifNoneMatch: weak], .used, status: 304)),
    row(
      "9110 §13.1.3", .must, "If-Modified-Since is ignored if there is an If-None-Match",
      stored(fresh), get(1, with: [.ifNoneMatch: b, .ifModifiedSince: date(0)], .used, status: 200)),
    row(
      "9111 §4.3.2", .should, "If-Modified-Since of the stored Last-Modified, or later, gets a 304",
      stored(fresh), get(1, with: [.ifModifiedSince: date(-9)], .used, status: 304),
      get(1, with: [.ifModifiedSince: date(-1)], .used, status: 304)),
    row(
      "9111 §4.3.2", .should, "If-Modified-Since before the stored Last-Modified gets the response",
      stored(fresh), get(1, with: [.ifModifiedSince: date(-10)], .used, status: 200)),
    row(
      "9111 §4.3.2", .should, "without Last-Modified, If-Modified-Since is compared with Date",
      stored([.cacheControl: "max-age=60", .date: date(-9)]), get(1, with: [.ifModifiedSince: date(-9)], .used, status: 304),
      get(1, with: [.ifModifiedSince: date(-10)], .used, status: 200)),
    row(
      "9111 §4.3.2", .should, "without Last-Modified and Date, If-Modified-Since is compared with the time of arrival",
      stored([.cacheControl: "max-age=60"]), get(1, with: [.ifModifiedSince: date(0)], .used, status: 304),
      get(1, with: [.ifModifiedSince: date(-1)], .used, status: 200)),
    row(
      "9110 §13.1.3", .must, "an invalid If-Modified-Since is ignored",
      stored(fresh), get(1, with: [.ifModifiedSince: "yesterday"], .used, status: 200)),
    row(
      "9110 §13.1.3", .must, "an If-Modified-Since with two values is ignored",
      stored(fresh), get(1, with: [.ifModifiedSince: date(-1), .ifModifiedSince: date(0)], .used, status: 200)),
    row(
      "9110 §13.2.1", .must, "a condition is ignored if the response is an error",
      get(0, origin: status(404, [.cacheControl: "max-age=60", .eTag: a]), .stored),
      get(1, with: [.ifNoneMatch: a], .used, status: 404)),
    row(
      "9111 §4.3.2", .must, "If-Match is left to the origin",
      stored(fresh), get(1, with: [.ifMatch: a], origin: status(412), .passed, sent: [.ifMatch: a], status: 412)),
    row(
      "9111 §4.3.2", .must, "If-Unmodified-Since is left to the origin",
      stored(fresh), get(1, with: [.ifUnmodifiedSince: date(-9)], origin: status(412), .passed, status: 412)),
    row(
      "9111 §4.3.2", .must, "a condition without a stored response is left to the origin",
      get(0, with: [.ifNoneMatch: "*"], origin: ok([.eTag: a]), .forwarded, sent: [.ifNoneMatch: "*"], status: 200)),
    row(
      "9111 §4.3.2", .may, "a validation has the client's tags and the stored one",
      stored([.cacheControl: "max-age=5", .eTag: a]),
      get(10, with: [.ifNoneMatch: b], .forwarded, sent: [.ifNoneMatch: "\"b\", \"a\""])),
    row(
      "9111 §4.3.2", .must, "a 304 for a stored tag that the client does not have becomes a 200",
      stored([.cacheControl: "max-age=5", .eTag: a, .contentType: "text/plain"]),
      get(
        10, with: [.ifNoneMatch: b], origin: status(304, [.eTag: a]), .validated, status: 200,
        reply: [.eTag: a, .contentType: "text/plain"], content: .whole)),
    row(
      "9111 §4.3.2", .must, "a 304 for a tag of the client only is returned, and the stored response stays stale",
      stored([.cacheControl: "max-age=5", .eTag: a]),
      get(
        10, with: [.ifNoneMatch: b], origin: status(304, [.eTag: b, .cacheControl: "max-age=60"]), .passed, status: 304),
      get(20, .forwarded)),
    row(
      "9111 §4.3.2", .must, "the tag of a part is not added to the client's tags",
      part("0-9", tag: a), get(1, with: [.ifNoneMatch: b], .forwarded, sent: [.ifNoneMatch: b])),
    row(
      "9110 §15.4.5", .must, "a 304 has the fields that the 200 would have for caches",
      stored([
        .cacheControl: "max-age=60", .eTag: a, .date: date(0), .expires: date(60), .vary: "Accept",
        .contentLocation: "/page.html",
      ]),
      get(
        1, with: [.ifNoneMatch: a], .used, status: 304,
        reply: [
          .cacheControl: "max-age=60", .eTag: a, .date: date(0), .expires: date(60), .vary: "Accept",
          .contentLocation: "/page.html",
        ])),
    row(
      "9110 §15.4.5", .should, "a 304 with a tag has no other metadata of the representation",
      stored([
        .cacheControl: "max-age=60", .eTag: a, .lastModified: date(-9), .contentType: "text/plain", .contentLength: "100",
        .contentEncoding: "gzip", .contentLanguage: "de",
      ]),
      get(
        1, with: [.ifNoneMatch: a], .used, status: 304,
        reply: [.lastModified: nil, .contentType: nil, .contentLength: nil, .contentEncoding: nil, .contentLanguage: nil])),
  ]

  // §4.3.3, §4.3.4
  static let confirmations: [Case] = [
    row(
      "9111 §4.3.3", .must, "a 304 lets the stored response be used",
      stored([.cacheControl: "max-age=5", .eTag: a, .contentType: "text/plain"]),
      get(
        10, origin: status(304, [.eTag: a]), .validated, status: 200, reply: [.contentType: "text/plain"], content: .whole)),
    row(
      "9111 §4.3.3", .must, "a full response is used in place of the stored one",
      stored([.cacheControl: "max-age=5", .eTag: a]),
      get(10, origin: ok([.cacheControl: "max-age=60", .eTag: b]), .stored, reply: [.eTag: b]), get(20, .used, reply: [.eTag: b])),
    row(
      "9111 §4.3.3", .may, "an error of the origin is returned, and the stored response remains",
      stored([.cacheControl: "max-age=5", .eTag: a]), get(10, origin: status(500), .passed, status: 500),
      get(20, .forwarded, sent: [.ifNoneMatch: a])),
    row(
      "9111 §4.3.4", .must, "a 304 with another strong tag updates no stored response",
      stored([.cacheControl: "max-age=5", .eTag: a]),
      get(10, origin: status(304, [.eTag: b, .cacheControl: "max-age=60"]), .forwarded), get(20, .forwarded)),
    row(
      "9111 §4.3.4", .must, "a 304 with a strong tag updates no stored response with a weak one",
      stored([.cacheControl: "max-age=5", .eTag: weak]),
      get(10, origin: status(304, [.eTag: a, .cacheControl: "max-age=60"]), .forwarded), get(20, .forwarded)),
    row(
      "9111 §4.3.4", .must, "a 304 with a weak tag updates the stored response with that tag",
      stored([.cacheControl: "max-age=5", .eTag: weak]),
      get(10, origin: status(304, [.eTag: weak, .cacheControl: "max-age=60"]), .validated), get(60, .used)),
    row(
      "9111 §4.3.4", .must, "a 304 with another Last-Modified updates no stored response",
      stored([.cacheControl: "max-age=5", .lastModified: date(-9)]),
      get(10, origin: status(304, [.lastModified: date(-8), .cacheControl: "max-age=60"]), .forwarded), get(20, .forwarded)),
    row(
      "9111 §4.3.4", .may, "a 304 without a validator confirms the only response that was validated",
      stored([.cacheControl: "max-age=5", .eTag: a]), get(10, origin: status(304, [.cacheControl: "max-age=60"]), .validated),
      get(60, .used)),
    row(
      "9111 §4.3.4", .may, "a 304 names the variant that is used",
      stored([.cacheControl: "max-age=60", .vary: "Accept-Language", .eTag: a], to: [.acceptLanguage: "de"]),
      get(
        1, with: [.acceptLanguage: "en"], origin: ok([.cacheControl: "max-age=60", .vary: "Accept-Language", .eTag: b]), .stored),
      get(2, with: [.acceptLanguage: "it"], origin: status(304, [.eTag: a]), .validated, reply: [.eTag: a])),
    row(
      "9111 §4.3.4", .must, "a 304 that names one variant does not update another one",
      stored([.cacheControl: "max-age=5", .vary: "Accept-Language", .eTag: a], to: [.acceptLanguage: "de"]),
      get(
        1, with: [.acceptLanguage: "en"], origin: ok([.cacheControl: "max-age=5", .vary: "Accept-Language", .eTag: b]), .stored),
      get(10, with: [.acceptLanguage: "it"], origin: status(304, [.eTag: a, .cacheControl: "max-age=60"]), .forwarded),
      get(20, with: [.acceptLanguage: "en"], .forwarded)),
    row(
      "9111 §4.3.4", .must, "a 304 to a request without a condition confirms nothing",
      stored([.cacheControl: "max-age=5"]), get(10, origin: status(304, [.cacheControl: "max-age=60"]), .forwarded),
      get(20, .forwarded)),
  ]

  // §3.2, §4.3.5
  static let updates: [Case] = [
    row(
      "9111 §3.2", .must, "a 304 replaces all stored values of its fields, and adds new fields",
      stored([.cacheControl: "max-age=5", .eTag: a, custom: "1", custom: "2", .contentType: "text/html"]),
      get(
        10, origin: status(304, [.eTag: a, custom: "3", .server: "b", .contentType: "text/plain"]), .validated,
        reply: [custom: "3", .server: "b", .contentType: "text/plain"])),
    row(
      "9111 §3.2", .must, "a 304 leaves other stored fields unchanged",
      stored([.cacheControl: "max-age=5", .eTag: a, custom: "1"]),
      get(10, origin: status(304, [.eTag: a]), .validated, reply: [custom: "1"])),
    row(
      "9111 §3.2", .must, "a 304 does not change Content-Length",
      stored([.cacheControl: "max-age=5", .eTag: a, .contentLength: "100"]),
      get(10, origin: status(304, [.eTag: a, .contentLength: "0"]), .validated, reply: [.contentLength: "100"])),
    row(
      "9111 §3.2", .may, "a 304 does not change Content-Encoding, which describes the stored bytes",
      stored([.cacheControl: "max-age=5", .eTag: a, .contentEncoding: "gzip"]),
      get(10, origin: status(304, [.eTag: a, .contentEncoding: "br"]), .validated, reply: [.contentEncoding: "gzip"])),
    row(
      "9111 §3.2", .must, "a 304 adds none of the fields that are excepted from storage",
      stored([.cacheControl: "max-age=5", .eTag: a]),
      get(
        10,
        origin: status(
          304, [.eTag: a, .connection: "x-custom", custom: "1", .proxyAuthenticate: "Basic", .cacheControl: "max-age=60"]),
        .validated),
      get(11, .used, reply: [custom: nil, .connection: nil, .proxyAuthenticate: nil])),
    row(
      "9111 §4.3.4", .must, "the lifetime and the age after a 304 are those of the 304",
      stored([.cacheControl: "max-age=5", .eTag: a, .age: "4", .date: date(-4)]),
      get(10, origin: status(304, [.eTag: a, .cacheControl: "max-age=60", .age: "7", .date: date(3)]), .validated),
      get(20, .used, reply: [.age: "17"]), get(63, .forwarded)),
    row(
      "9111 §4.3.4", .must, "after a 304 without Expires, the old Expires applies",
      stored([.expires: date(5), .date: date(0), .eTag: a]),
      get(10, origin: status(304, [.eTag: a, .date: date(10)]), .validated),
      get(11, .forwarded)),
    row(
      "9111 §4.3.5", .should, "a 200 to HEAD with the stored validator updates the stored response",
      stored([.cacheControl: "max-age=5", .eTag: a, .contentLength: "100", custom: "1"]),
      send(
        .head, 10, with: [.cacheControl: "no-cache"],
        origin: ok([.cacheControl: "max-age=60", .eTag: a, .contentLength: "100", custom: "2"]), .forwarded),
      get(20, .used, reply: [custom: "2"], content: .whole)),
    row(
      "9111 §4.3.5", .should, "a 200 to HEAD with another tag makes the stored response stale",
      stored([.cacheControl: "max-age=60", .eTag: a, .contentLength: "100"]),
      send(.head, 1, with: [.cacheControl: "no-cache"], origin: ok([.cacheControl: "max-age=60", .eTag: b]), .forwarded),
      get(2, .forwarded)),
    row(
      "9111 §4.3.5", .should, "a 200 to HEAD with another Last-Modified makes the stored response stale",
      stored([.cacheControl: "max-age=60", .lastModified: date(-9)]),
      send(
        .head, 1, with: [.cacheControl: "no-cache"], origin: ok([.cacheControl: "max-age=60", .lastModified: date(-8)]),
        .forwarded),
      get(2, .forwarded)),
    row(
      "9111 §4.3.5", .should, "a 200 to HEAD with another Content-Length makes the stored response stale",
      stored([.cacheControl: "max-age=60", .contentLength: "100"]),
      send(
        .head, 1, with: [.cacheControl: "no-cache"], origin: ok([.cacheControl: "max-age=60", .contentLength: "99"]), .forwarded),
      get(2, .forwarded)),
  ]

  // §4.4
  static let invalidation: [Case] =
    [HTTPRequest.Method.post, .put, .delete, .patch, unknownMethod].map { method in
      row(
        "9111 §4.4", .must, "a successful \(method.rawValue) invalidates its target",
        stored([.cacheControl: "max-age=60"]), send(method, 1, origin: status(204), .forwarded), get(2, .forwarded))
    } + otherInvalidation

  private static let otherInvalidation: [Case] = [
    row(
      "9111 §4.4", .must, "a redirect is a successful response",
      stored([.cacheControl: "max-age=60"]), send(.post, 1, origin: status(303, [.location: "/other"]), .forwarded),
      get(2, .forwarded)),
    row(
      "9111 §4.4", .may, "an unsuccessful unsafe request invalidates nothing",
      stored([.cacheControl: "max-age=60"]), send(.post, 1, origin: status(400), .forwarded),
      send(.put, 1, origin: status(503), .forwarded), get(2, .used)),
    row(
      "9111 §4.4", .may, "a safe request invalidates nothing",
      stored([.cacheControl: "max-age=60"]), send(.options, 1, origin: status(204), .forwarded),
      send(.trace, 1, origin: ok([:]), .forwarded), get(2, .used)),
    row(
      "9111 §4.4", .may, "the targets of Location and Content-Location are invalidated too",
      get(0, path: "/a", origin: ok([.cacheControl: "max-age=60"]), .stored),
      get(0, path: "/b", origin: ok([.cacheControl: "max-age=60"]), .stored),
      send(.post, 1, origin: status(201, [.location: "/a", .contentLocation: "https://example.com/b"]), .forwarded),
      get(2, path: "/a", .forwarded), get(2, path: "/b", .forwarded)),
    row(
      "9111 §4.4", .must, "the target of a Location of another origin is not invalidated",
      get(0, path: "/a", origin: ok([.cacheControl: "max-age=60"]), .stored),
      send(
        .post, 1, origin: status(201, [.location: "http://example.com/a", .contentLocation: "https://example.com:8443/a"]),
        .forwarded),
      get(2, path: "/a", .used)),
  ]
}
