internal import HTTPTypes

extension HTTPResponse {
  /// Sets `Cache-Control`, unless the response has the field: `max-age` in whole seconds, or `no-store` without a lifetime.
  ///
  /// Only a success (2xx) gets a lifetime. Another status may be a success the next time, and gets no field.
  mutating func setFreshness(_ lifetime: Duration?) {
    guard headerFields[.cacheControl] == nil else { return }
    guard let lifetime else {
      headerFields[.cacheControl] = "no-store"
      return
    }
    if status.kind == .successful { headerFields[.cacheControl] = "max-age=\(max(0, lifetime.components.seconds))" }
  }
}
