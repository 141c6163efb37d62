import CommandIO
import Testing

@Suite("User information in URLs")
struct UserInformationTests {
  @Test(
    "a line has no user information of its URLs",
    arguments: [
      ("get http://me:secret@a.example/b failed", "get http://a.example/b failed"),
      ("http://a:b@c/d: redirected to https://e:f@[::1]:8/", "http://c/d: redirected to https://[::1]:8/"),
      (#"{"url":"http://me:p@ss@a.example"}"#, #"{"url":"http://a.example"}"#),
      ("redis://:secret@cache.internal/1", "redis://cache.internal/1"),
      ("https://a.example/@me/1?to=b@c#d@e", "https://a.example/@me/1?to=b@c#d@e"),
      ("no URL, but me@a.example", "no URL, but me@a.example"),
      ("http://a.example and me@b.example", "http://a.example and me@b.example"),
    ])
  func lines(_ text: String, _ expected: String) { #expect(UserInformation.removed(from: text) == expected) }

  @Test(
    "a typed URL has no user information, even if it is not valid",
    arguments: [
      ("http://me:secret@a.example/b@c", "http://a.example/b@c"), ("HTTP:me:secret@a.example", "HTTP:a.example"),
      ("me:secret@a.example/b", "me:a.example/b"), ("http://me:sec ret@a.example/", "http://a.example/"),
      ("http://me:sec/ret@a.example/", "http://a.example/"), ("http://me:sec#ret@a.example/", "http://a.example/"),
      ("http://[::1]:80/a@b", "http://[::1]:80/a@b"), ("http://[::1]/a@b", "http://[::1]/a@b"),
      ("http://a.example:80/b@c", "http://a.example:80/b@c"), ("data:text/plain,a@b", "data:text/plain,a@b"),
      ("file:///srv/a@b", "file:///srv/a@b"), ("not a URL", "not a URL"), ("", ""),
    ])
  func typed(_ text: String, _ expected: String) { #expect(UserInformation.removed(fromURL: text) == expected) }
}
