import CacheCore
import Foundation
import HTTPServing
import HTTPTypes

/// The status page: `/` is HTML, `/status.json` is JSON. It has a separate port so that it hides no path of the origin.
struct StatusPage: Responder {
  let document: @Sendable () async -> StatusDocument
  var clock: any CacheClock = SystemClock()

  func respond(to request: ServerRequest) async throws(CacheError) -> ProxyAnswer {
    guard request.head.method == .get || request.head.method == .head else {
      return ProxyAnswer(.methodNotAllowed, text: "only GET and HEAD are allowed", fields: [.allow: "GET, HEAD"], date: clock.now)
    }
    let path = request.head.path?.prefix { $0 != "?" } ?? "/"
    switch path {
    case "/": return page(Data(StatusHTML.text(await document()).utf8), "text/html; charset=utf-8")
    case "/status.json":
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
      let data = (try? encoder.encode(await document())) ?? Data()
      return page(data + Data("\n".utf8), "application/json")
    default: return ProxyAnswer(.notFound, text: "the paths are / and /status.json", date: clock.now)
    }
  }

  private func page(_ data: Data, _ type: String) -> ProxyAnswer {
    let fields: HTTPFields = [
      .date: HTTPDate(clock.now).description, .contentType: type, .cacheControl: "no-store",
      .contentSecurityPolicy: "default-src 'none'; style-src 'unsafe-inline'",
    ]
    return ProxyAnswer(head: HTTPResponse(status: .ok, headerFields: fields), body: ResourceBody(data), outcome: .local)
  }
}
