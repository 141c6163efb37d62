internal import CacheCore
internal import HTTPTypes

// RFC 9110 §14 and RFC 9111 §3.3, §3.4: ranges and partial responses.
extension ValidatorContract {
  private static let fresh: HTTPFields = [
    .cacheControl: "max-age=60", .eTag: a, .date: date(0), .lastModified: date(-9), .contentLength: "100",
  ]

  static let ranges: [Case] = [
    row(
      "9110 §15.3.7.1", .may, "a range of a stored response gets a 206 with its Content-Range",
      stored(fresh),
      get(
        1, with: [.range: "bytes=0-9"], .used, status: 206, reply: [.contentRange: "bytes 0-9/100", .contentLength: "10"],
        content: .range(0..<10))),
    row(
      "9110 §14.1.2", .may, "a range without an end reaches the last byte",
      stored(fresh),
      get(
        1, with: [.range: "bytes=90-"], .used, status: 206, reply: [.contentRange: "bytes 90-99/100"], content: .range(90..<100))
    ),
    row(
      "9110 §14.1.2", .may, "a suffix is the last bytes",
      stored(fresh),
      get(1, with: [.range: "bytes=-5"], .used, status: 206, reply: [.contentRange: "bytes 95-99/100"], content: .range(95..<100))
    ),
    row(
      "9110 §14.1.2", .may, "a range that ends after the last byte ends with it",
      stored(fresh),
      get(
        1, with: [.range: "bytes=90-999999999999999999999"], .used, status: 206, reply: [.contentRange: "bytes 90-99/100"],
        content: .range(90..<100))),
    row(
      "9110 §14.1.2", .may, "a suffix that is longer than the response is the whole response",
      stored(fresh),
      get(1, with: [.range: "bytes=-500"], .used, status: 206, reply: [.contentRange: "bytes 0-99/100"], content: .range(0..<100))
    ),
    row(
      "9110 §15.5.17", .should, "a range after the last byte gets a 416 with the length",
      stored(fresh),
      get(
        1, with: [.range: "bytes=100-"], .used, status: 416, reply: [.contentRange: "bytes */100"],
        content: StoredReply.Content.none)),
    row(
      "9110 §14.2", .must, "a range in another unit is ignored",
      stored(fresh), get(1, with: [.range: "lines=0-9"], .used, status: 200, content: .whole)),
    row(
      "9110 §14.2", .may, "an invalid range is ignored",
      stored(fresh), get(1, with: [.range: "bytes=9-0"], .used, status: 200, content: .whole)),
    row(
      "9110 §14.2", .must, "a range of a HEAD is ignored",
      stored(fresh), send(.head, 1, with: [.range: "bytes=0-9"], .used, status: 200, content: StoredReply.Content.none)),
    row(
      "9110 §15.3.7", .must, "a 206 has the fields that the 200 would have for caches",
      stored([
        .cacheControl: "max-age=60", .eTag: a, .date: date(0), .expires: date(60), .vary: "Accept",
        .contentLocation: "/page.html",
      ]),
      get(
        1, with: [.range: "bytes=0-9"], .used, status: 206,
        reply: [
          .cacheControl: "max-age=60", .eTag: a, .date: date(0), .expires: date(60), .vary: "Accept",
          .contentLocation: "/page.html",
        ])),
    row(
      "9110 §13.2.2", .must, "If-None-Match is evaluated before the range",
      stored(fresh), get(1, with: [.ifNoneMatch: a, .range: "bytes=0-9"], .used, status: 304)),
    row(
      "9110 §13.1.5", .must, "If-Range with the strong tag gets the range",
      stored(fresh), get(1, with: [.range: "bytes=0-9", .ifRange: a], .used, status: 206)),
    row(
      "9110 §13.1.5", .must, "If-Range with another tag gets the whole response",
      stored(fresh), get(1, with: [.range: "bytes=0-9", .ifRange: b], .used, status: 200, content: .whole)),
    row(
      "9110 §13.1.5", .must, "If-Range is compared strongly",
      stored([.cacheControl: "max-age=60", .eTag: weak]),
      get(1, with: [.range: "bytes=0-9", .ifRange: weak], .used, status: 200, content: .whole),
      get(1, with: [.range: "bytes=0-9", .ifRange: a], .used, status: 200, content: .whole)),
    row(
      "9110 §13.1.5", .must, "If-Range with exactly the stored Last-Modified gets the range",
      stored(fresh), get(1, with: [.range: "bytes=0-9", .ifRange: date(-9)], .used, status: 206),
      get(1, with: [.range: "bytes=0-9", .ifRange: date(-8)], .used, status: 200, content: .whole)),
    row(
      "9110 §13.1.5", .must, "If-Range with a Last-Modified that is not strong gets the whole response",
      stored([.cacheControl: "max-age=60", .date: date(0), .lastModified: date(0)]),
      get(1, with: [.range: "bytes=0-9", .ifRange: date(0)], .used, status: 200, content: .whole)),
    row(
      "9110 §13.1.5", .must, "If-Range is not compared with Date",
      stored([.cacheControl: "max-age=60", .date: date(0)]),
      get(1, with: [.range: "bytes=0-9", .ifRange: date(0)], .used, status: 200, content: .whole)),
    row(
      "9110 §13.1.5", .must, "If-Range without Range is ignored",
      stored(fresh), get(1, with: [.ifRange: a], .used, status: 200, content: .whole)),
  ]

  // RFC 9111 §3.3, §3.4
  static let partialContent: [Case] = [
    row(
      "9111 §3.3", .must, "a part is not used for the whole response",
      part("0-9", tag: a), get(1, .forwarded), send(.head, 1, .forwarded)),
    row(
      "9111 §3.3", .must, "a part is not used for a range that it does not contain",
      part("10-19", tag: a), get(1, with: [.range: "bytes=0-14"], .forwarded), get(1, with: [.range: "bytes=15-20"], .forwarded),
      get(1, with: [.range: "bytes=15-"], .forwarded), get(1, with: [.range: "bytes=-5"], .forwarded)),
    row(
      "9111 §3.3", .must, "a 206 to a request without a range is not used",
      get(0, origin: partial("0-9", tag: a), .forwarded), get(1, .forwarded)),
    row(
      "9111 §3.3", .may, "a part is used for a range that it contains",
      part("10-19", tag: a, .stored),
      get(
        1, with: [.range: "bytes=12-14"], .used, status: 206, reply: [.contentRange: "bytes 12-14/100", .contentLength: "3"],
        content: .range(2..<5))),
    row(
      "9111 §3.3", .must, "a stale part is validated",
      part("10-19", tag: a, .stored),
      get(
        90, with: [.range: "bytes=12-14"], origin: status(304, [.eTag: a]), .validated, sent: [.ifNoneMatch: a], status: 206,
        content: .range(2..<5))),
    row(
      "9111 §3.4", .may, "stored parts are combined with the missing bytes, which are requested with If-Range",
      part("0-39", tag: a, .stored),
      get(
        1, origin: partial("40-99", tag: a), .completed, sent: [.range: "bytes=40-99", .ifRange: a], status: 200,
        reply: [.contentLength: "100", .contentRange: nil], content: .whole),
      get(2, .used, status: 200)),
    row(
      "9111 §3.4", .may, "a range is combined from a stored part and the missing bytes",
      part("10-39", tag: a, .stored),
      get(
        1, with: [.range: "bytes=20-49"], origin: partial("40-49", tag: a), .completed,
        sent: [.range: "bytes=40-49", .ifRange: a], status: 206, reply: [.contentRange: "bytes 20-49/100"],
        content: .range(20..<50))),
    row(
      "9111 §3.4", .must, "combined parts have the fields of the latest one",
      part("0-39", tag: a, fields: [custom: "1"], .stored), part("40-99", at: 1, tag: a, fields: [custom: "2"], .stored),
      get(2, .used, status: 200, reply: [custom: "2", .contentLength: "100", .contentRange: nil], content: .whole)),
    row(
      "9111 §3.4", .may, "stale parts without a gap are confirmed by one byte, which is requested with If-Range",
      part("0-39", tag: a, .stored), part("40-99", at: 1, tag: a, .stored),
      get(
        90, origin: partial("0-0", tag: a), .completed, sent: [.range: "bytes=0-0", .ifRange: a], status: 200,
        reply: [.contentLength: "100", .contentRange: nil], content: .whole)),
    row(
      "9111 §4", .must, "stale parts without a gap are not used without the origin",
      part("0-39", tag: a), part("40-99", at: 1, tag: a), get(90, .forwarded)),
    row(
      "9111 §3.4", .must, "parts with different tags are not combined",
      part("0-39", tag: a), part("40-99", at: 1, tag: b), get(2, .forwarded)),
    row(
      "9111 §3.4", .must, "parts with weak tags are not combined",
      part("0-39", tag: weak), part("40-99", at: 1, tag: weak), get(2, .forwarded)),
    row(
      "9111 §3.4", .must, "parts of different lengths of the whole are not combined",
      part("0-39", tag: a), part("40-99", at: 1, of: 120, tag: a), get(2, .forwarded)),
    row(
      "9111 §3.4", .must, "parts with a gap are not used without the missing bytes",
      part("0-39", tag: a), part("41-99", at: 1, tag: a), get(2, .forwarded)),
    row(
      "9111 §4.3.5", .should, "a 200 to HEAD with another tag or length makes a stored part stale",
      part("10-19", tag: a), send(.head, 1, origin: ok([.cacheControl: "max-age=60", .eTag: b]), .forwarded),
      get(2, with: [.range: "bytes=12-14"], .forwarded), part("10-19", at: 3, tag: a),
      send(.head, 4, origin: ok([.cacheControl: "max-age=60", .eTag: a, .contentLength: "99"]), .forwarded),
      get(5, with: [.range: "bytes=12-14"], .forwarded)),
    row(
      "9111 §4.3.5", .may, "a 200 to HEAD with the tag and the length of a stored part leaves it fresh",
      part("10-19", tag: a, .stored),
      send(.head, 1, origin: ok([.cacheControl: "max-age=60", .eTag: a, .contentLength: "100"]), .forwarded),
      get(2, with: [.range: "bytes=12-14"], .used, status: 206, content: .range(2..<5))),
    row(
      "9110 §15.3.7.3", .must, "a whole response in place of the missing bytes replaces the parts",
      part("0-39", tag: a), get(1, origin: ok([.cacheControl: "max-age=60", .eTag: b]), .stored, reply: [.eTag: b]),
      get(2, .used, status: 200, reply: [.eTag: b]), get(2, with: [.range: "bytes=0-9"], .used, reply: [.eTag: b])),
  ]
}
