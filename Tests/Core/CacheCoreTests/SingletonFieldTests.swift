import CacheCore
import HTTPTypes
import Testing

@Suite("Fields that may occur once and occur several times")
struct SingletonFieldTests {
  private let now = Timestamp(seconds: 1_767_225_600)

  private func fields(_ name: HTTPField.Name, _ lines: [String]) -> HTTPFields {
    HTTPFields(lines.map { HTTPField(name: name, value: $0) })
  }

  @Test("equal lines count as one, and different ones as none")
  func single() {
    #expect(fields(.eTag, ["\"a\"", "\"a\""]).single(.eTag)?.value == "\"a\"")
    #expect(fields(.eTag, ["\"a\"", "\"b\""]).single(.eTag) == nil)
    #expect(fields(.eTag, ["\"a\"", "\"b\"", "\"a\""]).single(.eTag) == nil)
    #expect(fields(.eTag, []).single(.eTag) == nil)
    #expect(fields(.eTag, ["\"a\"", "\"b\""]).first(.eTag)?.value == "\"a\"")
    // Two strings can be equal although their bytes differ.
    #expect(fields(.location, ["/\u{E9}", "/e\u{301}"]).single(.location) == nil)
  }

  @Test(
    "a Content-Length has digits only, and equal ones count as one",
    arguments: [
      (["5"], 5), (["05"], 5), (["5", "5"], 5), (["5, 05 ,\t5,"], 5), (["9223372036854775807"], .max), (["0"], 0),
      (["+5"], nil), (["-5"], nil), (["5 5"], nil), (["\u{665}"], nil), (["5", "6"], nil), (["5", "+5"], nil), ([""], nil),
      ([","], nil), (["9223372036854775808"], nil), ([], nil),
    ] as [([String], Int64?)])
  func length(_ lines: [String], _ length: Int64?) { #expect(fields(.contentLength, lines).contentLength == length) }

  @Test(
    "the earliest valid Date applies",
    arguments: [
      (["Thu, 01 Jan 2026 00:00:05 GMT", "Thu, 01 Jan 2026 00:00:02 GMT"], 2), (["junk", "Thu, 01 Jan 2026 00:00:02 GMT"], 2),
      (["Thu, 01 Jan 2026 00:00:02 GMT"], 2), (["junk"], nil), ([], nil),
    ] as [([String], Int64?)])
  func date(_ lines: [String], _ seconds: Int64?) {
    #expect(fields(.date, lines).date(receivedAt: now) == seconds.map { now + .seconds($0) })
  }

  @Test(
    "the first member of Age applies, if it is a number",
    arguments: [
      (["5", "80"], 5), (["5, 80"], 5), ([", 5"], 5), (["x", "5"], nil), (["-5"], nil),
      (["99999999999999999999999"], 2_147_483_648), ([""], nil),
      ([], nil),
    ] as [([String], Int64?)])
  func age(_ lines: [String], _ seconds: Int64?) {
    #expect(fields(.age, lines).statedAge == seconds.map { .seconds($0) })
  }

  @Test(
    "the last valid Content-Type applies, in several lines or in one (Fetch)",
    arguments: [
      (["text/html"], "text/html"), (["text/html", "image/png"], "image/png"), (["text/html, image/png"], "image/png"),
      (["image/png", "image/png"], "image/png"), (["image/png", "junk"], "image/png"), (["image/png", "*/*"], "image/png"),
      (["image/png", ""], "image/png"),
      (["text/html;charset=\"a,b\""], "text/html;charset=\"a,b\""), (["text/html;x=\"\\\",b\", image/gif"], "image/gif"),
      (["text/html;charset=utf-8", "TEXT/HTML"], "text/html;charset=utf-8"),
      (["text/html;charset=a", "text/html;charset=b"], "text/html;charset=b"),
      (["junk"], "junk"), (["a/b/c"], "a/b/c"), ([], nil),
    ] as [([String], String?)])
  func contentType(_ lines: [String], _ type: String?) {
    #expect(fields(.contentType, lines).contentType == type)
  }
}
