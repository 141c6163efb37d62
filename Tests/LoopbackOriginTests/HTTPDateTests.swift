#if Origin
  import Foundation
  import Testing

  @testable import LoopbackOrigin

  @Suite("HTTP dates")
  struct HTTPDateTests {
    @Test(
      "a date is written as IMF-fixdate and read back",
      arguments: [
        (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
        (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"), (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
        (-62_135_596_800, "Mon, 01 Jan 0001 00:00:00 GMT"),
      ])
    func roundTrip(seconds: Int, text: String) {
      let date = Date(timeIntervalSince1970: Double(seconds))
      #expect(HTTPDate.string(date) == text)
      #expect(HTTPDate.date(text) == date)
    }

    @Test("fractions of a second are cut off, not rounded")
    func fractions() {
      #expect(HTTPDate.string(Date(timeIntervalSince1970: 59.999)) == "Thu, 01 Jan 1970 00:00:59 GMT")
    }

    @Test(
      "what is no IMF-fixdate is not read",
      arguments: [
        "", "0", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Xyz, 06 Nov 1994 08:49:37 GMT", "Sun, +6 Nov 1994 08:49:37 GMT",
      ])
    func refused(text: String) {
      #expect(HTTPDate.date(text) == nil)
    }
  }
#endif
