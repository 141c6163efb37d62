#if Tool && Service
import Etagere
import Foundation
import HTTPServing
import HTTPTypes
import ImageService

/// The page `/demo`, which makes and signs the URLs of images, and the route `/demo/sign`.
///
/// The route signs a URL for every client that can reach it. A page of another site cannot use it.
struct DemoPage: Sendable {
  static let path = "/demo"
  /// The time for which a URL is valid. It limits how long the URLs of a trial stay valid after the page is switched off.
  static let lifetime = Duration.seconds(3_600)
  /// The limit of the body of `/demo/sign`, in bytes.
  private static let bodyLimit: Int64 = 16_384

  private struct SigningRequest: Decodable {
    var source: String
    var operations: String
  }

  private struct SignedPath: Encodable {
    var path: String
  }

  private let service: ImageService
  let settings: ServeSettings
  /// The formats that this process can encode.
  let formats: [ImageFormat]

  init(_ service: ImageService, _ settings: ServeSettings) {
    (self.service, self.settings) = (service, settings)
    formats = [.avif, .webp, .jpeg, .png].filter(ImageEncoder.isWritten)
  }

  var endpoints: [String: Endpoint] {
    [
      Self.path: .get { [self] request in
        hasTrustedHost(request) ? page() : DemoProblem.untrustedHost.response
      },
      "\(Self.path)/sign": Endpoint([.post]) { [self] request in
        do throws(DemoProblem) {
          return try await sign(request)
        } catch {
          return error.response
        }
      },
    ]
  }

  // MARK: Responding

  private func page() -> ServerResponse {
    let nonce = Data((0..<16).map { _ in UInt8.random(in: .min ... .max) }).base64EncodedString()
    var head = HTTPResponse(status: .ok, headerFields: Self.fields("text/html; charset=utf-8"))
    head.headerFields[.contentSecurityPolicy] = [
      "default-src 'none'", "script-src 'nonce-\(nonce)'", "style-src 'nonce-\(nonce)'", "img-src blob: data:",
      "connect-src 'self'", "form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'",
    ].joined(separator: "; ")
    return ServerResponse(head: head, body: ResourceBody(Data(html(nonce: nonce).utf8)))
  }

  private func sign(_ request: ServerRequest) async throws(DemoProblem) -> ServerResponse {
    guard hasTrustedHost(request) else { throw DemoProblem.untrustedHost }
    let fields = request.head.headerFields
    // Browsers omit the field for addresses without TLS, except loopback. Then the type of the body protects the route: a page
    // of another site cannot send JSON without a preflight request, and no route allows that.
    if let name = HTTPField.Name("Sec-Fetch-Site"), let site = fields[name], site != "same-origin" {
      throw DemoProblem(.forbidden, "crossSite", "only the page \(Self.path) of this server may send this request")
    }
    let type = fields.contentType?.split(separator: ";").first.map { $0.trimmingCharacters(in: .whitespaces) }
    guard type?.lowercased() == "application/json" else {
      throw DemoProblem(.unsupportedMediaType, "notJSON", "the type of the body is not application/json")
    }
    let signing: SigningRequest
    do {
      signing = try JSONDecoder().decode(
        SigningRequest.self, from: try await request.body?.collect(limit: Self.bodyLimit) ?? Data())
    } catch {
      let cause = error as? CacheError
      // For example 408, if the body did not arrive in time.
      let status = cause?.code == .badRequest ? cause?.status.map { HTTPResponse.Status(code: $0) } : nil
      throw DemoProblem(
        status ?? .badRequest, "invalidBody", "the body is not a JSON object with 'source' and 'operations', or is too large",
        cause: cause)
    }
    do throws(CacheError) {
      let path = try service.signedPath(for: signing.source, operations: signing.operations, validFor: Self.lifetime)
      return Self.json(SignedPath(path: path), .ok, "application/json")
    } catch {
      throw DemoProblem(.badRequest, error.code.rawValue, error.reason, cause: error)
    }
  }

  private func hasTrustedHost(_ request: ServerRequest) -> Bool {
    Self.isTrusted(request.head.authority ?? "", listeningOn: settings.listen.host)
  }

  /// Whether the authority of a request is an IP address, `localhost`, or the host on which the server listens.
  ///
  /// A site can give its own name the address of this server (DNS rebinding). Its pages then have the same origin as the server,
  /// and their requests look like those of the page.
  static func isTrusted(_ authority: String, listeningOn host: String) -> Bool {
    guard let url = URL(string: "http://\(authority)/"), url.user() == nil, let name = url.host()?.lowercased() else {
      return false
    }
    let address = name.trimmingCharacters(in: ["[", "]"])
    if address == "localhost" || address == host.lowercased() { return true }
    return !address.contains("%") && IPAddress(address) != nil
  }

  fileprivate static func json(
    _ document: some Encodable, _ status: HTTPResponse.Status, _ type: String, error: CacheError? = nil
  ) -> ServerResponse {
    let data = ((try? JSONEncoder.line.encode(document)) ?? Data()) + Data("\n".utf8)
    let head = HTTPResponse(status: status, headerFields: fields(type))
    var response = ServerResponse(head: head, body: ResourceBody(data))
    response.error = error
    return response
  }

  private static func fields(_ type: String) -> HTTPFields {
    var fields: HTTPFields = [.contentType: type, .cacheControl: "no-store", .xContentTypeOptions: "nosniff"]
    if let name = HTTPField.Name("Referrer-Policy") { fields[name] = "no-referrer" }
    return fields
  }
}

/// A request that the demo refuses, in the format of the image service's problems (RFC 9457).
private struct DemoProblem: Error {
  private struct Document: Encodable {
    var status: Int
    var title: String
    var code: String
    var detail: String
  }

  static let untrustedHost = DemoProblem(
    .forbidden, "untrustedHost", "open the page by an IP address of the server, or as localhost")

  private let status: HTTPResponse.Status
  private let code: String
  private let detail: String
  /// The error of the service, for the log.
  private let cause: CacheError?

  init(_ status: HTTPResponse.Status, _ code: String, _ detail: String, cause: CacheError? = nil) {
    (self.status, self.code, self.detail, self.cause) = (status, code, detail, cause)
  }

  var response: ServerResponse {
    DemoPage.json(
      Document(status: status.code, title: status.reasonPhrase, code: code, detail: detail), status,
      "application/problem+json", error: cause)
  }
}
#endif
