#if Service
internal import HTTPTypes
public import Hummingbird
public import ImageService

/// The routes of an image service: GET and HEAD for the paths below `ImageService.path`.
///
/// Add the endpoints to the router itself and not to a group with a path, because the service reads the whole path.
public struct ImageRoutes<Context: RequestContext>: Sendable {
  private let service: ImageService
  private let client: @Sendable (Request, Context) -> String?

  /// Creates the routes of a service.
  ///
  /// - Parameters:
  ///   - service: The service. Close it when the server has stopped.
  ///   - context: The type of the router's context.
  ///   - client: Returns the identity of the client for `ImageService.Limits.clientRate`, or `nil` for no limit. Behind a
  ///     proxy, it is the address that the proxy states. Otherwise, it is the address of the connection.
  public init(
    _ service: ImageService, context: Context.Type = BasicRequestContext.self,
    client: @escaping @Sendable (Request, Context) -> String? = { _, _ in nil }
  ) {
    (self.service, self.client) = (service, client)
  }

  /// The endpoints, for `Router.addRoutes(_:)`.
  public var endpoints: RouteCollection<Context> {
    let routes = RouteCollection(context: Context.self)
    for method in [HTTPRequest.Method.get, .head] {
      routes.on(RouterPath("\(service.path)/**"), method: method) { [service, client] request, context in
        Self.response(await service.respond(to: request.head, client: client(request, context)))
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
