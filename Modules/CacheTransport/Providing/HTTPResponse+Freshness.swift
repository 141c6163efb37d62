internal import HTTPTypes

extension HTTPResponse {
  /// Sets `Cache-Control` if the response has no such field: `max-age` in whole seconds, or `no-store` without a lifetime.
  ///
  /// Only a successful response (2xx) gets a lifetime. Other statuses get no field, because the next request may succeed.
  mutating func setFreshness(_ lifetime: Duration?) {
    guard headerFields[.cacheControl] == nil else { return }
    guard let lifetime else {
      headerFields[.cacheControl] = "no-store"
      return
    }
    if status.kind == .successful { headerFields[.cacheControl] = "max-age=\(max(0, lifetime.components.seconds))" }
  }
}
