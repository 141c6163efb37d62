import CacheCore
import Testing

@Suite("An error")
struct CacheErrorTests {
  @Test(
    "is one line that names the thing and the reason",
    arguments: [
      (CacheError(.other, reason: "why"), "why"),
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

  @Test("keeps what a program needs to act")
  func parts() {
    struct Cause: Error {}
    let error = CacheError(
      .diskFull, reason: "no space", url: "u", status: 507, path: "/p", errno: 28, underlying: Cause())
    #expect(error.code == .diskFull)
    #expect(error.status == 507)
    #expect(error.errno == 28)
    #expect(error.underlying is Cause)
    #expect(CacheError.Code(rawValue: "diskFull") == .diskFull)
  }

  @Test("has a code that prints as its name")
  func code() {
    #expect("\(CacheError.Code.connectionRefused)" == "connectionRefused")
    #expect("\(CacheError.Code(rawValue: "ownCode"))" == "ownCode")
  }

  @Test("is named after its URL once")
  func about() {
    #expect(CacheError(.other, reason: "why").about("u").url == "u")
    #expect(CacheError(.other, reason: "why", url: "first").about("u").url == "first")
    #expect(CacheError(.other, reason: "why").about(nil).url == nil)
  }

  @Test("tells whether nobody answered, and whether nobody failed")
  func kinds() {
    let unreachable: [CacheError.Code] = [
      .hostNotFound, .connectionRefused, .connectionLost, .timedOut, .offline, .malformedResponse, .truncatedBody,
      .bodyInterrupted, .damagedContentCoding, .noDownloader, .networkRestricted, .proxyFailure,
    ]
    for code in unreachable { #expect(CacheError(code, reason: "").isUnreachable) }
    for code in [CacheError.Code.cancelled, .unacceptableStatus, .tlsFailure, .bodyTooLarge, .refused, .notCached] {
      #expect(!CacheError(code, reason: "").isUnreachable)
    }
    #expect(CacheError.cancelled.isCancellation)
    #expect(!CacheError(.timedOut, reason: "").isCancellation)
  }
}
