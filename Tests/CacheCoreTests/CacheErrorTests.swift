import CacheCore
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
      .diskFull, reason: "no space", url: "u", status: 507, path: "/p", errno: 28, underlying: Cause())
    #expect(error.code == .diskFull)
    #expect(error.status == 507)
    #expect(error.errno == 28)
    #expect(error.underlying is Cause)
    #expect(CacheError.Code(rawValue: "diskFull") == .diskFull)
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
