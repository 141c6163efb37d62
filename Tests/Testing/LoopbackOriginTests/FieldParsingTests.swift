#if Origin
import Testing

@testable import LoopbackOrigin

@Suite("Parsing of field values")
struct FieldParsingTests {
  @Test(
    "a list of entity tags is parsed up to the first invalid one",
    arguments: [
      ("\"a\"", ["\"a\""]), ("\"a\", W/\"b\",\"c\"", ["\"a\"", "W/\"b\"", "\"c\""]), ("\"a,b\" , \"\"", ["\"a,b\"", "\"\""]),
      (", ,\"a\",", ["\"a\""]), ("a", []), ("\"open", []), ("w/\"a\"", []), ("\"a\" junk \"b\"", ["\"a\""]), ("", []),
    ])
  func tagList(value: String, tags: [String]) {
    #expect(OriginETag.list(value).map(\.description) == tags)
  }

  @Test("tags match strongly only if neither is weak, and weakly by their text")
  func comparison() {
    let (strong, weak): (OriginETag, OriginETag) = ("a", .weak("a"))
    #expect(strong.stronglyMatches(.strong("a")) && !strong.stronglyMatches(weak) && !weak.stronglyMatches(weak))
    #expect(strong.weaklyMatches(weak) && weak.weaklyMatches(weak) && !weak.weaklyMatches("b"))
  }

  @Test(
    "a range is applied to a body of ten bytes",
    arguments: [
      ("bytes=0-3", .bytes(0..<4)), ("bytes=4-", .bytes(4..<10)), ("bytes=-3", .bytes(7..<10)), ("bytes=-30", .bytes(0..<10)),
      ("bytes=9-9", .bytes(9..<10)), ("bytes=0-99", .bytes(0..<10)), ("BYTES=1-2", .bytes(1..<3)),
      ("bytes=0-99999999999999999999", .bytes(0..<10)), ("bytes=10-", .unsatisfiable),
      ("bytes=99999999999999999999-", .unsatisfiable),
      ("bytes=-0", .unsatisfiable), ("bytes=3-2", .ignored), ("bytes=-", .ignored), ("bytes=a-b", .ignored),
      ("bytes=+1-2", .ignored),
      ("bytes=0-1,3-4", .ignored), ("lines=0-1", .ignored), ("bytes", .ignored), ("bytes=1-2-3", .ignored),
    ] as [(String, ByteRange)])
  func range(value: String, range: ByteRange) {
    #expect(ByteRange.parse(value, length: 10) == range)
  }

  @Test("no range of an empty body is satisfiable", arguments: ["bytes=0-", "bytes=-1", "bytes=0-0"])
  func emptyBody(value: String) {
    #expect(ByteRange.parse(value, length: 0) == .unsatisfiable)
  }

  @Test(
    "a credential is accepted with any case of its scheme, and only completely",
    arguments: [
      ("Basic dXNlcjpzZWNyZXQ=", true), ("basic dXNlcjpzZWNyZXQ=", true), ("Basic dXNlcjpvdGhlcg==", false), ("Basic", false),
      ("Bearer dXNlcjpzZWNyZXQ=", false), ("", false), (nil, false),
    ] as [(String?, Bool)])
  func credential(value: String?, isAccepted: Bool) {
    #expect(OriginCredential(user: "user", password: "secret").accepts(value) == isAccepted)
  }
}
#endif
