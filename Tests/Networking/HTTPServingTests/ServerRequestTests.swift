#if Server
import HTTPTypes
import Testing

@testable import HTTPServing

@Suite("Requests of pages, and targets in a log")
struct ServerRequestTests {
  private static func request(_ target: String = "/", host: String = "h:9090", _ fields: HTTPFields = [:]) -> ServerRequest {
    ServerRequest(
      head: HTTPRequest(method: .post, scheme: "http", authority: host, path: target, headerFields: fields), body: nil, peer: nil,
      target: target, isHTTP10: false)
  }

  @Test(
    "Sec-Fetch-Site and Origin tell that a page of another site has sent the request",
    arguments: [
      ([], [], false), (["none"], [], false), (["same-origin"], ["http://h:9090"], false), (["cross-site"], [], true),
      (["same-site"], [], true), ([""], [], true), (["same-origin", "cross-site"], [], true), ([], ["http://h:9090"], false),
      ([], ["http://H:9090"], false), ([], ["http://h"], true), ([], ["http://h:9091"], true),
      ([], ["http://evil.example"], true),
      ([], ["null"], true), ([], [""], true), ([], ["://"], true), ([], ["http://h:9090", "null"], true),
    ])
  func site(_ sites: [String], _ origins: [String], _ isCrossSite: Bool) throws {
    var fields = HTTPFields()
    fields[values: try #require(HTTPField.Name("Sec-Fetch-Site"))] = sites
    fields[values: .origin] = origins
    #expect(Self.request("/", fields).isCrossSite == isCrossSite)
  }

  @Test(
    "an origin omits the default port of its scheme",
    arguments: [("h", "http"), ("h:80", "http"), ("h", "https"), ("h:443", "https")])
  func defaultPort(_ host: String, _ scheme: String) {
    #expect(!Self.request(host: host, [.origin: "\(scheme)://h"]).isCrossSite)
  }

  @Test(
    "a log has no values of parameters that grant access",
    arguments: [
      ("/a", "/a"), ("/a?b=c&d", "/a?b=c&d"), ("/a%20b?", "/a%20b?"), ("/token=1/a?q=1", "/token=1/a?q=1"),
      ("/a?X-Amz-Expires=9&X-Amz-Signature=abc&x=1", "/a?X-Amz-Expires=9&X-Amz-Signature=…&x=1"),
      ("/a?X-Amz-Security-Token=a/b%2B%3D&x=1", "/a?X-Amz-Security-Token=…&x=1"), ("/a?sv=1&sig=a%3D", "/a?sv=1&sig=…"),
      ("/a?ACCESS_TOKEN=a?b", "/a?ACCESS_TOKEN=…?b"), ("/a?sign%61ture=a", "/a?sign%61ture=…"), ("/a?token", "/a?token"),
      ("/a?design=x&keyword=y", "/a?design=x&keyword=y"), ("/a?key=", "/a?key=…"),
      ("/img/s/https%3A%2F%2Fb%3Fa%3D1%26X-Amz-Signature%3Dabc", "/img/s/https%3A%2F%2Fb%3Fa%3D1%26X-Amz-Signature%3D…"),
      ("/a?url=http://b/?token=x;y=1", "/a?url=http://b/?token=…;y=1"), ("/%", "/%"), ("/a?%", "/a?%"),
      ("/a?%=token", "/a?%=token"), ("/a?b=c=d&token=e=f&g", "/a?b=c=d&token=…&g"), ("/a?tok%65n%3Dx%26b", "/a?tok%65n%3D…%26b"),
      ("http://me:a@b@h/c@d?e=f@g", "http://…@h/c@d?e=f@g"), ("/a?url=http://me:secret@b/c@d", "/a?url=http://…@b/c@d"),
      ("/img/https%3A%2F%2Fuser%3Apass%40host%2Fa%40b", "/img/https%3A%2F%2F…%40host%2Fa%40b"),
      ("/img/https%3a%2f%2fhost%3fa=user%40b", "/img/https%3a%2f%2fhost%3fa=user%40b"), ("/a:/b@c", "/a:/b@c"),
      ("/a?token=http://me@b&c", "/a?token=…&c"), ("/a?key=http://b/&c=d@e", "/a?key=…&c=d@e"), ("/@", "/@"),
      ("/a?u=http%253A%252F%252Fb%253Fsig%253Dabc", "/a?u=http%253A%252F%252Fb%253Fsig%253D…"),
      ("/a;jsessionid=1", "/a;jsessionid=…"),
    ])
  func log(_ target: String, _ logged: String) { #expect(Self.request(target).loggedTarget == logged) }

  @Test("a log can leave out each query, with the user information before it")
  func logWithoutQuery() {
    for (target, logged) in [
      ("/a", "/a"), ("/a?", "/a?…"), ("/a?b=c?d", "/a?…"), ("/a%3fb", "/a%3f…"), ("/http://u@b/c?d", "/http://…@b/c?…"),
      ("/a;token=b?c", "/a;token=…?…"),
      ("/img/http%253A%252F%252Fu%253Ap%2540b%253FX%253Ds", "/img/http%253A%252F%252F…%2540b%253F…"),
    ] {
      #expect(ServerRequest.logged(target, hidesQueries: true) == logged)
    }
  }
}
#endif
