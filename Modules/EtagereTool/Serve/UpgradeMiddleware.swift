#if Tool && Service
import HTTPTypes
import Hummingbird

/// A middleware that announces the end of the connection to a client that asks for another protocol with `Upgrade`.
///
/// SwiftNIO's decoder reads nothing after such a request, so the next request on the connection would get no response. The
/// client closes the connection, or the server does so after its idle timeout.
struct UpgradeMiddleware<Context: RequestContext>: RouterMiddleware {
  @concurrent func handle(
    _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
  ) async throws -> Response {
    guard request.headers[.upgrade] != nil else { return try await next(request, context) }
    var response: Response
    do {
      response = try await next(request, context)
    } catch let error as any HTTPResponseError {
      response = try error.response(from: request, context: context)
    } catch {
      response = Response(status: .internalServerError)
    }
    response.headers[.connection] = "close"
    return response
  }
}
#endif
