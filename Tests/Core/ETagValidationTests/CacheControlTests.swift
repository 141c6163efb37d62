import ETagValidation
import HTTPTypes
import Testing

@Suite("Parsing of Cache-Control")
struct CacheControlTests {
  @Test(
    "a number of seconds is read according to its notation",
    arguments: [
      ("max-age=60", 60), ("MAX-AGE=60", 60), ("max-age=\"60\"", 60), ("max-age=\"\\60\"", 60), ("max-age=0060", 60),
      (" ,\t, max-age=60 ,", 60), ("a=\"x, max-age=1\", max-age=60", 60), ("max-age=2147483647", 2_147_483_647),
      ("max-age=2147483648", 2_147_483_648), ("max-age=2147483649", 2_147_483_648),
      ("max-age=99999999999999999999999999", 2_147_483_648), ("max-age=0", 0), ("max-age=-1", 0), ("max-age=1.5", 0),
      ("max-age=60s", 0), ("max-age=", 0), ("max-age", 0), ("max-age=\"\"", 0), ("max-age='60'", 0), ("max-age=0x10", 0),
      ("max-age =60", 0), ("max-age= 60", 0), ("max-age=\"60\"x", 0), ("max-age=\"60", 0), ("max-age=60;x", 0),
      ("max-age=+60", 0),
      ("max-age=60, max-age=10", 10), ("max-age=10, max-age=60", 10), ("max-age=60, max-age=x", 0), ("max-age=٦٠", 0),
    ] as [(String, Int64)])
  func maxAge(line: String, seconds: Int64) {
    #expect(CacheControl(line).maxAge == .seconds(seconds))
  }

  @Test(
    "a name that only resembles a directive is ignored",
    arguments: ["x-max-age=60", "max-age-x=60", "\"max-age=60\"", "max age=60"])
  func otherNames(line: String) {
    #expect(CacheControl(line).maxAge == nil)
  }

  @Test("each flag is recognized in any case, even with an invalid argument")
  func flags() {
    let flags: [(String, KeyPath<CacheControl, Bool>)] = [
      ("no-store", \.noStore), ("no-cache", \.noCache), ("no-transform", \.noTransform), ("only-if-cached", \.onlyIfCached),
      ("must-revalidate", \.mustRevalidate), ("proxy-revalidate", \.proxyRevalidate), ("must-understand", \.mustUnderstand),
      ("public", \.isPublic), ("private", \.isPrivate), ("immutable", \.immutable),
    ]
    for (name, _) in flags {
      for line in [name, name.uppercased(), "x, \(name)=1 ,y", "\(name) = \"a"] {
        let read = CacheControl(line)
        for (other, flag) in flags { #expect(read[keyPath: flag] == (other == name), "\(line): \(other)") }
      }
    }
  }

  @Test("an unclosed quote hides no directive")
  func openQuote() {
    #expect(CacheControl("private=\"x, no-store").noStore)
    #expect(CacheControl("private=\"x\", foo=\"\\\", no-store").noStore)
  }

  @Test("field names of no-cache and private are read in lower case")
  func fieldNames() {
    let directives = CacheControl("no-cache=\"Set-Cookie, ,X-A\", private=\"Authorization\"")
    #expect(directives.noCacheFields == ["set-cookie", "x-a"])
    #expect(directives.privateFields == ["authorization"])
    #expect(!directives.noCache && !directives.isPrivate)
    // An unquoted name, no name, or a name that caches depend on applies the directive as a whole.
    for text in ["private=Authorization", "private=\"\"", "private=\"x, vary\"", "private=\"x\", private"] {
      #expect(CacheControl(text).isPrivate, "\(text)")
    }
  }

  @Test("of two values the more restrictive applies, even across lines")
  func duplicates() {
    let fields = HTTPFields(lines: [
      "Cache-Control: min-fresh=5, max-stale, stale-while-revalidate=9, s-maxage=3, stale-if-error=8",
      "Cache-Control: min-fresh=7, max-stale=4, stale-while-revalidate=2, s-maxage=6, stale-if-error=-1",
    ])
    let directives = CacheControl(fields)
    #expect(directives.minFresh == .seconds(7))
    #expect(directives.maxStale == .seconds(4))
    #expect(directives.staleWhileRevalidate == .seconds(2))
    #expect(directives.sharedMaxAge == .seconds(3))
    #expect(directives.staleIfError == .zero)
  }

  @Test("an invalid value in a request has the most restrictive meaning")
  func unreadableRequest() {
    #expect(CacheControl("max-stale").maxStale == CacheControl.anyAge)
    #expect(CacheControl("max-stale=x").maxStale == .zero)
    #expect(CacheControl("min-fresh=x").minFresh == .seconds(2_147_483_648))
  }

  @Test("only no-cache in Pragma applies, and only without Cache-Control")
  func pragma() {
    #expect(CacheControl(request: .page(.get, "Pragma: No-Cache")).noCache)
    #expect(CacheControl(request: .page(.get, "Pragma: x, no-cache")).noCache)
    #expect(!CacheControl(request: .page(.get, "Pragma: x")).noCache)
    #expect(!CacheControl(request: .page(.get, "Pragma: no-cache", "Cache-Control: max-age=5")).noCache)
  }
}
