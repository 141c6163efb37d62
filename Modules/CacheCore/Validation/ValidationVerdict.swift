public import HTTPTypes

/// A decision about a response from the network. Indices refer to `stored`.
public enum ValidationVerdict: Sendable {
  /// A 304 confirmed a stored response. Leave its body unchanged, replace its metadata, and return its
  /// ``ResponseValidator/reply(to:from:now:)``.
  case update(Int, StoredMetadata, StoreChanges)
  /// Make the changes, store the response under `variant`, and return it unmodified.
  case store(variant: String, StoredMetadata, StoreChanges)
  /// The response continues a stored part (RFC 9111 §3.4). The stored bytes, followed by this body, are the whole response that
  /// the metadata describes.
  ///
  /// Make the changes, which remove the part. Store the whole response under `variant` and return its
  /// ``ResponseValidator/reply(to:from:now:)``.
  case complete(Int, variant: String, StoredMetadata, StoreChanges)
  /// Return the response without storing it. `shareable` states whether concurrent equal requests may also receive it.
  case pass(StoreChanges, shareable: Bool)
  /// The response is of no use to the cache and the caller, such as a 304 that confirms no stored response, or a part that
  /// continues none. Send this request, which has only the caller's own conditions.
  case refetch(HTTPRequest)
  /// Serve the stored response, because the origin could not be reached or failed.
  case serveStale(Int)
}
