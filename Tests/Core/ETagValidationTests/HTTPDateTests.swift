import CacheCore
import ETagValidation
import Testing

@Suite("Reading and writing HTTP dates")
struct HTTPDateTests {
  private let now = CacheFixture.start  // 2026-01-01

  @Test(
    "the three forms denote the same second",
    arguments: [
      "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
      "sun, 06 nov 1994 08:49:37 gmt",
      "SUNDAY, 06-NOV-94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 UTC", "  Sun, 06 Nov 1994 08:49:37 GMT\t",
      "Mon, 06 Nov 1994 08:49:37 GMT", "Sun Nov 06 08:49:37 1994",
    ])
  func forms(text: String) {
    #expect(HTTPDate(text, receivedAt: now)?.timestamp.seconds == 784_111_777)
  }

  @Test(
    "seconds since 1970 are correct across leap years, centuries and the epoch",
    arguments: [
      ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Wed, 31 Dec 1969 23:59:59 GMT", -1), ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
      ("Wed, 01 Mar 2000 00:00:00 GMT", 951_868_800), ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400),
      ("Thu, 29 Feb 2024 23:59:60 GMT", 1_709_251_200), ("Mon, 01 Jan 1900 00:00:00 GMT", -2_208_988_800),
      ("Tue, 19 Jan 2038 03:14:08 GMT", 2_147_483_648),
    ] as [(String, Int64)])
  func calendar(text: String, seconds: Int64) {
    #expect(HTTPDate(text, receivedAt: now)?.timestamp == Timestamp(seconds: seconds))
  }

  @Test(
    "any other text is rejected",
    arguments: [
      "", "0", "-1", "junk", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Nov 1994 08:49:37 +0000",
      "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06  Nov 1994 08:49:37 GMT",
      "Sun 06 Nov 1994 08:49:37 GMT",
      "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 06 Nov 1994 08.49.37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
      "Sun, 06 Nov 1994 08:60:37 GMT",
      "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 31 Apr 1994 08:49:37 GMT", "Sun, 29 Feb 2023 08:49:37 GMT",
      "Sun, 29 Feb 2100 08:49:37 GMT",
      "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT", "Foo, 06 Nov 1994 08:49:37 GMT",
      "Sun-06-Nov-1994 08:49:37 GMT",
      "Sun, 06 Nov 1994 08:49:37 GMT junk", "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT", "784111777",
      "1994-11-06T08:49:37Z", "Sun, 06 Nov ١٩٩٤ 08:49:37 GMT",
    ])
  func malformed(text: String) {
    #expect(HTTPDate(text, receivedAt: now) == nil)
  }

  @Test(
    "a two-digit year is at most 50 years ahead",
    arguments: [
      ("Wednesday, 31-Dec-75 23:59:59 GMT", "Tue, 31 Dec 2075 23:59:59 GMT"),
      ("Wednesday, 01-Jan-76 00:00:00 GMT", "Wed, 01 Jan 2076 00:00:00 GMT"),
      ("Wednesday, 01-Jan-76 00:00:01 GMT", "Thu, 01 Jan 1976 00:00:01 GMT"),
      ("Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"),
      ("Sunday, 06-Nov-26 08:49:37 GMT", "Fri, 06 Nov 2026 08:49:37 GMT"),
    ] as [(String, String)])
  func twoDigitYears(text: String, expected: String) {
    #expect(HTTPDate(text, receivedAt: now)?.description == expected)
  }

  @Test("years beyond the range of a timestamp saturate")
  func saturation() {
    #expect(HTTPDate("Fri, 31 Dec 9999 23:59:59 GMT", receivedAt: now)?.timestamp == .distantFuture)
    #expect(HTTPDate("Sat, 01 Jan 0000 00:00:00 GMT", receivedAt: now)?.timestamp == .distantPast)
  }

  @Test("a written date is read as the same second, for 20,000 random times")
  func roundTrip() {
    var generator = SeededGenerator(7)
    for _ in 0..<20_000 {
      let moment = Timestamp(nanoseconds: .random(in: .min + 2_000_000_000 ... .max, using: &generator))
      let written = HTTPDate(moment)
      #expect(HTTPDate(written.description, receivedAt: now) == written)
      #expect(written.timestamp.seconds == moment.seconds)
    }
  }
}
