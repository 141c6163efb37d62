import CacheCore
import HTTPTypes
import Testing

@Suite("Errors")
struct CacheErrorTests {
  @Test(
    "an error prints as one line with the resource and the reason",
    arguments: [
      (CacheError(.other, reason: "why"), "why"),
      (CacheError(.other, reason: "the host 'a\u{1B}]0;b\u{7}\0\u{9B}'"), "the host 'a\u{FFFD}]0;b\u{FFFD}\u{FFFD}\u{FFFD}'"),
      (CacheError(.other, reason: "why", url: "https://a/b"), "https://a/b: why"),
      (CacheError(.fileSystem, reason: "denied", path: "/tmp/x"), "/tmp/x: denied"),
      (CacheError(.fileSystem, reason: "denied", url: "https://a/b", path: "/tmp/x"), "https://a/b: /tmp/x: denied"),
      (CacheError(.other, reason: "why", url: "", path: ""), "why"),
      (
        CacheError(.other, reason: "why", url: "https://a/", redirectTargets: ["https://b/", "https://c/?d#e", "https://f/#g"]),
        "https://a/: redirected to https://b/: redirected to https://c/?…: redirected to https://f/: why"
      ),
      (CacheError(.fileSystem, reason: "denied", url: "file:///tmp/a%20b", path: "/tmp/a b"), "file:///tmp/a%20b: denied"),
      (CacheError(.fileSystem, reason: "denied", url: "file:///tmp/a", path: "/tmp/b"), "file:///tmp/a: /tmp/b: denied"),
      (
        CacheError(.other, reason: "one\ntwo\r\nthree\n\n\u{2028}four\n", url: "https://a/\nb"),
        "https://a/ b: one two three four"
      ),
    ])
  func descriptions(_ error: CacheError, _ line: String) {
    #expect(error.description == line)
    #expect("\(error)" == line)
    #expect(error.description.split(whereSeparator: \.isNewline).count <= 1)
  }

  @Test("an error keeps all its values")
  func parts() {
    struct Cause: Error {}
    let error = CacheError(
      .diskFull, reason: "no space", url: "u", response: HTTPResponse(status: .init(code: 507)), path: "/p", errno: 28,
      underlying: Cause())
    #expect(error.code == .diskFull)
    #expect(error.status == 507)
    #expect(error.errno == 28)
    #expect(error.underlying is Cause)
    #expect(error.retryAfter == nil)
    #expect(CacheError.Code(rawValue: "diskFull") == .diskFull)
  }

  @Test("an error has the fields of its response, without its cookies, and its description has none of them")
  func response() {
    var fields: HTTPFields = [.wwwAuthenticate: "Basic realm=\"a\"", .retryAfter: "120"]
    fields[values: .setCookie] = ["session=secret", "theme=dark"]
    let response = HTTPResponse(status: .unauthorized, headerFields: fields)
    var error = CacheError(.unacceptableStatus, reason: "why", url: "https://a/", response: response)
    for _ in 1...2 {
      #expect(error.status == 401 && error.response?.headerFields[.wwwAuthenticate] == "Basic realm=\"a\"")
      #expect(error.response?.headerFields[.setCookie] == nil)
      #expect(error.description == "https://a/: why" && !String(reflecting: error).contains("secret"))
      error.response = nil
      #expect(error.status == nil)
      error.response = response
    }
    #expect(error.retryAfter == .seconds(120))
  }

  @Test(
    "the delay of Retry-After is a number or a date, and never negative",
    arguments: [
      ("120", nil, .seconds(120)), ("0", nil, .zero), (" 7 ", nil, .seconds(7)),
      ("Thu, 01 Jan 2026 00:00:30 GMT", nil, .seconds(30)), ("Wed, 31 Dec 2025 23:59:00 GMT", nil, .zero),
      ("Thu, 01 Jan 2026 01:00:10 GMT", "Thu, 01 Jan 2026 01:00:00 GMT", .seconds(10)),
      ("99999999999999999999999", nil, .seconds(9_223_372_036)), ("-1", nil, nil), ("soon", nil, nil), ("", nil, nil),
    ] as [(String, String?, Duration?)])
  func retryAfter(_ value: String, _ date: String?, _ delay: Duration?) {
    var fields: HTTPFields = [.retryAfter: value]
    fields[.date] = date
    #expect(fields.retryAfter(receivedAt: Timestamp(seconds: 1_767_225_600)) == delay)
    guard date != nil || HTTPDate(value, receivedAt: Timestamp(seconds: 0)) == nil else { return }
    let response = HTTPResponse(status: .tooManyRequests, headerFields: fields)
    #expect(CacheError(.other, reason: "", response: response).retryAfter == delay)
    #expect(CacheError(.other, reason: "", response: response, retryAfter: .seconds(1)).retryAfter == .seconds(1))
  }

  @Test(
    "a reason states a delay in whole seconds, rounded up",
    arguments: [
      (nil, ""), (.zero, ""), (.milliseconds(1), ", retry after 1 second"), (.seconds(1), ", retry after 1 second"),
      (.milliseconds(89_001), ", retry after 90 seconds"),
    ] as [(Duration?, String)])
  func hint(_ delay: Duration?, _ text: String) {
    #expect(CacheError.retryHint(delay) == text)
  }

  @Test("a code prints as its name")
  func code() {
    #expect("\(CacheError.Code.connectionRefused)" == "connectionRefused")
    #expect("\(CacheError.Code(rawValue: "ownCode"))" == "ownCode")
  }

  @Test("an error gets a URL only if it has none")
  func about() {
    #expect(CacheError(.other, reason: "why").about("u").url == "u")
    #expect(CacheError(.other, reason: "why", url: "first").about("u").url == "first")
    #expect(CacheError(.other, reason: "why").about(nil).url == nil)
  }

  @Test("an error states whether the origin was unreachable and whether the load was cancelled")
  func kinds() {
    let unreachable: [CacheError.Code] = [
      .hostNotFound, .connectionRefused, .connectionLost, .timedOut, .offline, .malformedResponse, .truncatedBody,
      .bodyInterrupted, .damagedContentCoding, .noDownloader, .networkRestricted, .proxyFailure, .retryLater,
    ]
    for code in unreachable { #expect(CacheError(code, reason: "").isUnreachable) }
    for code in [CacheError.Code.cancelled, .unacceptableStatus, .tlsFailure, .bodyTooLarge, .refused, .notCached] {
      #expect(!CacheError(code, reason: "").isUnreachable)
    }
    #expect(CacheError.cancelled.isCancellation)
    #expect(!CacheError(.timedOut, reason: "").isCancellation)
  }
}
