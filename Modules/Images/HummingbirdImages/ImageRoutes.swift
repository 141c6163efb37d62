#if Service
internal import HTTPTypes
public import Hummingbird
public import ImageService

/// The routes of an image service, for all paths below `ImageService.pathPrefix`.
///
/// ```swift
/// import Hummingbird
/// import HummingbirdImages
///
/// let router = Router()
/// router.addRoutes(ImageRoutes(service).endpoints)
/// ```
///
/// Add the endpoints to the router itself and not to a group with a path, because the service reads the whole path.
public struct ImageRoutes<Context: RequestContext>: Sendable {
  private let service: ImageService
  private let client: @Sendable (Request, Context) -> String?
  private let onError: @Sendable (CacheError, Request, Context) -> Void

  /// Creates the routes of a service.
  ///
  /// - Parameters:
  ///   - service: The service. Close it when the server has stopped.
  ///   - client: Returns the identity of the client for `ImageService.Limits.clientRate`: the address that a proxy states, or
  ///     that of the connection. The default returns `nil`, so that the rate has no effect.
  ///   - onError: Receives the error of a request that gets a problem response, for a log.
  public init(
    _ service: ImageService,
    client: @escaping @Sendable (Request, Context) -> String? = { _, _ in nil },
    onError: @escaping @Sendable (CacheError, Request, Context) -> Void = { _, _, _ in }
  ) {
    (self.service, self.client, self.onError) = (service, client, onError)
  }

  /// The endpoints, for `Router.addRoutes(_:)`.
  public var endpoints: RouteCollection<Context> {
    let routes = RouteCollection(context: Context.self)
    for method in [HTTPRequest.Method.get, .head, .post, .put, .patch, .delete, .options] {
      routes.on(RouterPath("\(service.pathPrefix)/**"), method: method) { [service, client, onError] request, context in
        let response = await service.respond(to: request.head, client: client(request, context))
        if let error = response.error { onError(error, request, context) }
        return Self.response(response)
      }
    }
    return routes
  }

  private static func response(_ response: ImageResponse) -> Response {
    let body: ResponseBody
    if let data = response.body.data {
      body = data.isEmpty ? ResponseBody() : ResponseBody(byteBuffer: ByteBuffer(bytes: data))
    } else {
      body = ResponseBody(contentLength: response.body.length.map { Int($0) }) { writer in
        for try await chunk in response.body { try await writer.write(ByteBuffer(bytes: chunk)) }
        try await writer.finish(nil)
      }
    }
    return Response(status: response.head.status, headers: response.head.headerFields, body: body)
  }
}
#endif
