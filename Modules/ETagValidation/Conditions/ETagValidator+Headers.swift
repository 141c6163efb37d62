public import CacheCore
public import HTTPTypes

extension ETagValidator {
  /// Returns the fields that make a request conditional on a stored response: `If-None-Match`, `If-Modified-Since`, or both (RFC 9110 §13.1).
  ///
  /// ```swift
  /// for field in validator.conditionalHeaders(for: metadata) {
  ///   urlRequest.setValue(field.value, forHTTPHeaderField: field.name.rawName)
  /// }
  /// ```
  ///
  /// The fields are empty if the response has neither an `ETag` nor a `Last-Modified` field. A 304 then confirms the stored response.
  public func conditionalHeaders(for metadata: StoredMetadata) -> HTTPFields {
    HTTPRequest(method: .get, scheme: nil, authority: nil, path: nil)
      .asking(about: metadata, and: [], CacheControl()).headerFields
  }
}
