#if Service
public import CacheCore
public import HTTPTypes

/// A response of an ``ImageService``.
public struct ImageResponse: Sendable {
  /// The status and the fields. Fields about the connection, `Date` and `Server` are left to the HTTP server.
  public var head: HTTPResponse
  /// The bytes, which stream. The body is empty for HEAD.
  public var body: ResourceBody
  /// The tier of the cache from which the response came, or `nil` if the service responds itself, for example to a request
  /// without a signature.
  public var servedFrom: ResourceSource?
  /// The error that caused this response, with its reason, for a log; or `nil`. The body does not contain it.
  public var error: CacheError?

  /// Creates a response from its parts, for fakes in tests.
  public init(head: HTTPResponse, body: ResourceBody, servedFrom: ResourceSource? = nil, error: CacheError? = nil) {
    (self.head, self.body, self.servedFrom, self.error) = (head, body, servedFrom, error)
  }

  init(_ problem: Problem, error: CacheError? = nil) {
    let (head, body) = problem.response
    self.init(head: head, body: ResourceBody(body), error: error)
  }
}
#endif
