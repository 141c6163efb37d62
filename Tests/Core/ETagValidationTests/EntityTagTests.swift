import ETagValidation
import HTTPTypes
import Testing

@Suite("Entity tags")
struct EntityTagTests {
  @Test(
    "a tag is weak or strong as written, and an invalid tag is weak",
    arguments: [
      ("\"a\"", false, "a"), ("W/\"a\"", true, "a"), ("w/\"a\"", true, "a"), ("\"\"", false, ""), ("abc", true, "abc"),
      ("  \"a\" ", false, "a"), ("\"a", true, "\"a"), ("\"a\", \"b\"", true, "\"a\", \"b\""), ("W/a", true, "W/a"),
      ("\"W/a\"", false, "W/a"),
    ] as [(String, Bool, String)])
  func reading(text: String, isWeak: Bool, opaque: String) throws {
    let tag = try #require(EntityTag(text))
    #expect(tag.isWeak == isWeak)
    #expect(tag.opaque == Array(opaque.utf8))
  }

  @Test("a tag prints as it appears in a field", arguments: ["\"a\"", "W/\"a\"", "\"\""])
  func printed(text: String) throws {
    #expect(try "\(#require(EntityTag(text)))" == text)
  }

  @Test("an empty value is not a tag", arguments: ["", " \t "])
  func empty(text: String) {
    #expect(EntityTag(text) == nil)
  }

  @Test(
    "comparison follows the table of RFC 9110 §8.8.3.2",
    arguments: [
      ("W/\"1\"", "W/\"1\"", false, true), ("W/\"1\"", "W/\"2\"", false, false), ("W/\"1\"", "\"1\"", false, true),
      ("\"1\"", "\"1\"", true, true), ("\"é\"", "\"e\u{301}\"", false, false),
    ] as [(String, String, Bool, Bool)])
  func comparison(a: String, b: String, strong: Bool, weak: Bool) throws {
    let (first, second) = try (#require(EntityTag(a)), #require(EntityTag(b)))
    #expect(first.stronglyMatches(second) == strong)
    #expect(first.weaklyMatches(second) == weak)
    #expect(second.stronglyMatches(first) == strong)
  }

  @Test("tags that are not UTF-8 are compared by bytes")
  func bytes() throws {
    let a = try #require(EntityTag(HTTPField(name: .eTag, value: [0x22, 0xFE, 0x22])))
    let b = try #require(EntityTag(HTTPField(name: .eTag, value: [0x22, 0xFF, 0x22])))
    #expect(a.stronglyMatches(a))
    #expect(!a.weaklyMatches(b))
  }
}
