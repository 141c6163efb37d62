public import HTTPTypes

/// What to do about a request, given what is stored. Indices point into `stored`.
public enum ValidationPlan: Sendable {
  /// Use a stored answer: it is fresh, or may be shown stale while `thenRevalidate` asks. What is sent of it says
  /// ``ResponseValidator/reply(to:from:now:)``: under the caller's own conditions, or for a range, it is not the whole answer.
  case use(Int, thenRevalidate: HTTPRequest?)
  /// Ask. When nobody can be asked, `fallback` may be shown instead.
  case fetch(HTTPRequest, fallback: Int?, reason: ForwardReason)
  /// An answer made here (504), without body.
  case answer(HTTPResponse)
}
