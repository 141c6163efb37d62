import CacheCore
import HTTPTypes
import Testing

@Suite("End-to-end fields (RFC 9110 §7.6.1)")
struct EndToEndFieldTests {
  private func fields(_ lines: [(String, String)]) -> HTTPFields {
    var fields = HTTPFields()
    for (name, value) in lines {
      if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
    }
    return fields
  }

  @Test("the fields about one connection are left out, and all others stay in order")
  func hopByHop() {
    let all = fields([
      ("Date", "d"), ("Connection", "keep-alive"), ("Keep-Alive", "timeout=5"), ("Set-Cookie", "a=1"), ("TE", "trailers"),
      ("Trailer", "X-Sum"), ("Transfer-Encoding", "chunked"), ("Upgrade", "h2c"), ("Proxy-Connection", "close"),
      ("Proxy-Authenticate", "Basic"), ("Proxy-Authorization", "x"), ("Proxy-Authentication-Info", "y"), ("Set-Cookie", "b=2"),
      ("Authorization", "z"), ("ETag", "\"1\""),
    ])
    let left = all.endToEnd().map { "\($0.name) \($0.value)" }
    #expect(left == ["Date d", "Set-Cookie a=1", "Set-Cookie b=2", "Authorization z", "ETag \"1\""])
  }

  @Test(
    "the fields that Connection names are left out",
    arguments: [
      "X-One, X-Two", "close, x-one ,\tX-TWO", ",X-One,,X-Two,", "keep-alive, X-One, X-Two, X-Absent",
      "X-One,\u{301}, X-Two,\u{301}a",
    ])
  func named(_ value: String) {
    let all = fields([("X-One", "1"), ("Connection", value), ("X-Two", "2"), ("X-One", "3"), ("X-Three", "4")])
    #expect(all.endToEnd() == fields([("X-Three", "4")]))
  }

  @Test("every line of Connection counts")
  func lines() {
    let all = fields([("Connection", "X-One"), ("Connection", "X-Two"), ("X-One", "1"), ("X-Two", "2"), ("Age", "1")])
    #expect(all.endToEnd() == fields([("Age", "1")]))
  }

  @Test("fields without a connection's are unchanged")
  func unchanged() {
    let all = fields([("Accept", "a"), ("Accept", "b"), ("Host", "h")])
    #expect(all.endToEnd() == all)
    #expect(HTTPFields().endToEnd().isEmpty)
  }
}
