import CacheCore
import CacheManager
import Foundation
import GatewayServer
import HTTPServing
import HTTPTypes

/// A responder that handles the requests of the page, and forwards all others to the gateway.
///
/// | request | response |
/// | --- | --- |
/// | `GET /`, `/gallery.css`, `/gallery.js` | the page |
/// | `POST /runs/SCENARIO` | 204 when the scenario is prepared |
/// | `GET /runs/lookup` | the images that the cache has, with their layer and freshness, as JSON |
/// | `GET /runs/report` | the origin's counters since then, as JSON |
/// | another path below `/runs/` | 404 |
///
/// A scenario changes the cache for all clients, so it is prepared only for clients on the same machine, and not for the pages of
/// other sites.
struct GalleryResponder: Responder {
  let next: any Responder
  let cache: ResourceManager
  let origin: GalleryOrigin

  func respond(to request: ServerRequest) async throws(CacheError) -> ProxyAnswer {
    let path = request.head.path ?? "/"
    if let document = GalleryPage.document(at: path) { return await answer(request, .get) { document } }
    if path == "/runs/lookup" { return await answer(request, .get) { await lookUp(for: request.head.authority) } }
    if path == "/runs/report" { return await answer(request, .get) { json(await origin.report) } }
    if let name = path.wholeMatch(of: /\/runs\/(\w+)/)?.output.1, let scenario = Scenario(rawValue: String(name)) {
      guard PurgePermission.loopback.allows(request.peer), !isCrossSite(request) else {
        return text(.forbidden, "only this page on this machine may prepare a run")
      }
      return await answer(request, .post) { await prepare(scenario) }
    }
    if path.hasPrefix("/runs/") { return text(.notFound, "no such path '\(path)'") }
    var answer = try await next.respond(to: request)
    tellSource(in: &answer)
    return answer
  }

  /// Returns whether a page of another site makes the request (Fetch Metadata, W3C).
  private func isCrossSite(_ request: ServerRequest) -> Bool {
    guard let site = HTTPField.Name("Sec-Fetch-Site").flatMap({ request.head.headerFields[$0] }) else { return false }
    return site != "same-origin" && site != "none"
  }

  /// Adds the store of a hit to `Cache-Status`, as its `detail` (RFC 9211 §2.8).
  private func tellSource(in answer: inout ProxyAnswer) {
    guard answer.outcome == .hit, let source = answer.source, let field = HTTPField.Name("Cache-Status"),
      let status = answer.head.headerFields[field]
    else { return }
    answer.head.headerFields[field] = "\(status);detail=\(source.rawValue)"
  }

  private func prepare(_ scenario: Scenario) async -> ProxyAnswer {
    do {
      try await origin.prepare(scenario, cache: cache)
      return ProxyAnswer(head: head(.noContent), body: ResourceBody(Data()), outcome: .local)
    } catch {
      return text(.internalServerError, "cannot prepare '\(scenario.rawValue)': \(error)")
    }
  }

  /// Returns the images in the cache, by path. Lookups send no request, and change nothing in the cache.
  ///
  /// - Parameter authority: The authority of the client, by which the gateway names the responses in its cache.
  private func lookUp(for authority: String?) async -> ProxyAnswer {
    var images: [String: CachedImage] = [:]
    do {
      for image in GalleryImage.all {
        guard let url = URL(string: "http://\(authority ?? "")\(image.path)") else { continue }
        images[image.path] = CachedImage(try await cache.lookup(url))
      }
    } catch {
      return text(.internalServerError, "cannot look up the images: \(error)")
    }
    return json(images)
  }

  private func json(_ value: some Encodable) -> ProxyAnswer {
    do {
      var response = head(.ok)
      response.headerFields[.contentType] = "application/json"
      return ProxyAnswer(head: response, body: ResourceBody(try JSONEncoder().encode(value)), outcome: .local)
    } catch {
      return text(.internalServerError, "cannot encode the report: \(error)")
    }
  }

  /// Returns the response to a method, or 405 to another method.
  private func answer(
    _ request: ServerRequest, _ method: HTTPRequest.Method, _ make: () async -> ProxyAnswer
  ) async -> ProxyAnswer {
    let asked = request.head.method
    if asked == method || asked == .head && method == .get { return await make() }
    var answer = text(.methodNotAllowed, "use \(method)")
    answer.head.headerFields[.allow] = method == .get ? "GET, HEAD" : method.rawValue
    return answer
  }

  private func head(_ status: HTTPResponse.Status) -> HTTPResponse {
    HTTPResponse(status: status, headerFields: [.cacheControl: "no-store"])
  }

  private func text(_ status: HTTPResponse.Status, _ text: String) -> ProxyAnswer {
    ProxyAnswer(status, text: text, fields: [.cacheControl: "no-store"], date: SystemClock().now)
  }
}
