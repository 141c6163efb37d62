public import HTTPTypes

/// A decision about a request, given the stored responses. Indices refer to `stored`.
public enum ValidationPlan: Sendable {
  /// Use a stored response. If it is stale, send `thenRevalidate` in the background. ``ResponseValidator/reply(to:from:now:)``
  /// returns what the client receives: with the caller's own conditions or range, it is not the whole response.
  case use(Int, thenRevalidate: HTTPRequest?)
  /// Send the request. If the origin cannot be reached, `fallback` may be served instead.
  case fetch(HTTPRequest, fallback: Int?, reason: ForwardReason)
  /// Return this response (504), which has no body.
  case respond(HTTPResponse)
}
