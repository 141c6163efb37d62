public import CacheCore
public import HTTPTypes

extension ETagValidator {
  /// Returns the fields that make a request conditional on a stored response: `If-None-Match`, `If-Modified-Since`, or both (RFC
  /// 9110 §13.1).
  ///
  /// ```swift
  /// for field in validator.conditionalHeaders(for: metadata) {
  ///   urlRequest.setValue(field.value, forHTTPHeaderField: field.name.rawName)
  /// }
  /// ```
  ///
  /// A 304 response to that request confirms the stored response. The result is empty if the response has neither `ETag` nor
  /// `Last-Modified`.
  public func conditionalHeaders(for metadata: StoredMetadata) -> HTTPFields {
    HTTPRequest(method: .get, scheme: nil, authority: nil, path: nil)
      .revalidating(metadata, and: [], CacheControl()).headerFields
  }
}
