#if Tool && Service
import CacheTesting
import Etagere
import Foundation
import HTTPTypes
import ImageService
import NIOCore
import Testing

@testable import EtagereTool
@testable import HTTPServing

@Suite("etagere-cli serve: endpoints, log and metrics of a port")
struct PortResponderTests {
  private let lines = WatchedState<[String]>([])
  private let metrics = PrometheusMetrics()

  private func responder(field: HTTPField.Name? = nil) -> PortResponder {
    var responder = PortResponder(["/a": .get { _ in ServerResponse(.ok, "a") }])
    let lines = lines
    let writer = LogWriter { data in lines.update { $0.append(String(decoding: data, as: UTF8.self)) } }
    responder.log = AccessLog(field: field, writer: writer)
    responder.metrics = RequestMetrics(factory: metrics)
    return responder
  }

  private func request(_ path: String, _ method: HTTPRequest.Method = .get, _ fields: HTTPFields = [:]) -> ServerRequest {
    ServerRequest(
      head: HTTPRequest(method: method, scheme: "http", authority: "h", path: path, headerFields: fields), body: nil,
      peer: try? SocketAddress(ipAddress: "198.51.100.7", port: 1), target: path, isHTTP10: false)
  }

  private func line() async -> String {
    await lines.wait { !$0.isEmpty }
    return lines.read { $0.joined() }
  }

  @Test("a response is recorded when it has ended, with the bytes that were sent")
  func ending() async throws {
    let response = await responder().respond(to: request("/a?b"))
    #expect(response.head.status == .ok && response.head.headerFields[.date] != nil)
    #expect(!metrics.text().contains("http_request"))
    response.onEnd?(ServerResponse.Delivery(bodyBytes: 2, isComplete: true))
    #expect(metrics.text().contains(#"_count{route="/a",status="200"} 1"#))
    let line = await line()
    #expect(line.contains(#""bytes":2,"client":"198.51.100.7","method":"GET""#) && line.contains(#""path":"/a?…","status":200"#))
    #expect(!line.contains("aborted"))
  }

  @Test("a response that was not sent completely counts as aborted, with the error of the connection")
  func aborted() async throws {
    let response = await responder().respond(to: request("/a"))
    response.onEnd?(ServerResponse.Delivery(error: CacheError(.connectionLost, reason: "gone")))
    #expect(metrics.text().contains(#"_count{route="/a",status="aborted"} 1"#))
    let line = await line()
    #expect(line.contains(#""aborted":true,"bytes":0"#) && line.contains(#""error":"connectionLost: gone""#))
  }

  @Test(
    "the log has no query and no user information of a source, and no whole signature",
    arguments: [
      ("https%3A%2F%2Fb.example%2Fa.jpg%3FX-Amz-Signature%3Dsecret", "https%3A%2F%2Fb.example%2Fa.jpg%3F…"),
      ("https%3a%2f%2fb.example%3fsecret", "https%3a%2f%2fb.example%3f…"),
      ("https://b.example/a?secret", "https://b.example/a?…"),
      ("https%3A%2F%2Fme%3Asecret%40b.example%2Fa%40b", "https%3A%2F%2F…%40b.example%2Fa%40b"),
      ("https://secret@b.example/a@b", "https://…@b.example/a@b"), ("site%2Fa@b.png", "site%2Fa@b.png"),
    ])
  func presigned(_ source: String, _ logged: String) async throws {
    let signature = String(repeating: "s", count: 43)
    let response = await responder().respond(to: request("/img/\(signature)/width=3/\(source)"))
    response.onEnd?(ServerResponse.Delivery(isComplete: true))
    let line = await line()
    #expect(line.contains("\"path\":\"/img/ssssss…/width=3/\(logged)\","), "\(line)")
  }

  @Test("a body that fails before its first byte is a 502 in the response and in the log")
  func failingBody() async throws {
    let response = await responder().respond(to: request("/a"))
    let instead = try #require(response.onFailure?(CacheError(.truncatedBody, reason: "short")))
    #expect(instead.head.status == .badGateway && instead.head.headerFields[.date] != nil)
    instead.onEnd?(ServerResponse.Delivery(isComplete: true))
    #expect(metrics.text().contains(#"_count{route="/a",status="502"} 1"#))
    #expect(await line().contains(#""error":"truncatedBody: short""#))
  }

  @Test("a refused request is recorded without a route, and a path that does not exist too")
  func refused() async throws {
    let responder = responder()
    let refused = responder.respond(to: RequestRefusal.malformed("no Host"), peer: nil)
    #expect(refused.head.status == .badRequest && refused.body.data == Data("no Host\n".utf8))
    refused.onEnd?(ServerResponse.Delivery(bodyBytes: 8, isComplete: true))
    let missing = await responder.respond(to: request("/b"))
    #expect(missing.head.status == .notFound)
    missing.onEnd?(ServerResponse.Delivery(isComplete: true))
    let text = metrics.text()
    #expect(text.contains(#"_count{route="none",status="400"} 1"#) && text.contains(#"_count{route="none",status="404"} 1"#))
    #expect(await line().contains(#""error":"badRequest: no Host","milliseconds""#))
  }

  @Test("without a valid address in the field of the proxy, the client is the connection's peer")
  func client() throws {
    let name = try #require(HTTPField.Name("X-Forwarded-For"))
    for (values, client) in [
      (["192.0.2.1"], "192.0.2.1"), (["192.0.2.1", "192.0.2.2"], "192.0.2.2"), (["unknown"], "198.51.100.7"),
      ([], "198.51.100.7"),
    ] {
      var fields = HTTPFields()
      fields[values: name] = values
      let request = request("/a", .get, fields)
      #expect(ClientAddress.of(request, from: request.peer, field: name) == client, "\(values)")
      #expect(ClientAddress.of(request, from: request.peer, field: nil) == "198.51.100.7")
    }
  }

  /// A body that the connection ends with an error.
  private final class RefusedBody: ResourceBody.Source {
    func next() async throws(CacheError) -> Data? {
      throw CacheError(RequestRefusal(status: .requestTimeout, reason: "too slow"))
    }

    func cancel() {}
    var trailers: HTTPFields? { nil }
  }

  @Test("a body of /demo/sign that does not arrive in time gets 408")
  func slowBody() async throws {
    var settings = ServeSettings()
    (settings.keys, settings.origins) = ([.random()], ["https://photos.example.com"])
    let service = try ImageService(try settings.configuration())
    let signing = try #require(DemoPage(service, settings).endpoints["/demo/sign"])
    var request = request("/demo/sign", .post, [.contentType: "application/json"])
    request.head.authority = "localhost"
    request.body = ResourceBody(length: nil, source: RefusedBody())
    let response = await signing.respond(to: request)
    #expect(response.head.status == .requestTimeout)
    #expect(response.error?.code == .badRequest)
  }
}
#endif
