#if Tool && Service
import Foundation
import HTTPTypes
import Hummingbird

/// A middleware that writes a line of JSON for each request. The time is that to the head of the response.
struct AccessLog: RouterMiddleware {
  private struct Line: Encodable {
    var time: String
    var client: String?
    var method: String
    var path: String
    var status: Int
    /// The length of the body, or `nil` if the response does not state it.
    var bytes: Int?
    var milliseconds: Double
    var cache: String?
    var agent: String?
  }

  /// The field in which a proxy states the client's address.
  let field: HTTPField.Name?
  /// The path of the images. The log has only the start of a signature, so that its readers cannot use the URL.
  let path: String

  @concurrent func handle(
    _ request: Request, context: ClientContext, next: @concurrent (Request, ClientContext) async throws -> Response
  ) async throws -> Response {
    let (start, clock) = (Date(), ContinuousClock())
    let began = clock.now
    var line = Line(
      time: start.ISO8601Format(), client: context.client(request, field), method: request.method.rawValue,
      path: shortened(request.head.path ?? ""), status: 0, milliseconds: 0, agent: request.headers[.userAgent])
    do {
      let response = try await next(request, context)
      line.status = response.status.code
      line.bytes = response.headers[.contentLength].flatMap(Int.init)
      line.cache = HTTPField.Name("Cache-Status").flatMap { response.headers[$0] }
      write(line, clock.now - began)
      return response
    } catch {
      line.status = (error as? any HTTPResponseError)?.status.code ?? 500
      write(line, clock.now - began)
      throw error
    }
  }

  private func shortened(_ text: String) -> String {
    guard text.hasPrefix("\(path)/") else { return text }
    let rest = text.dropFirst(path.count + 1)
    guard let slash = rest.firstIndex(of: "/") else { return text }
    return "\(path)/\(rest[..<slash].prefix(6))…\(rest[slash...])"
  }

  private func write(_ line: Line, _ duration: Duration) {
    var line = line
    line.milliseconds = (Text.milliseconds(duration) * 1_000).rounded() / 1_000
    try? Console.json(line)
  }
}
#endif
