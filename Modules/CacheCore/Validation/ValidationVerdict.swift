public import HTTPTypes

/// What to do with an answer. Indices point into `stored`.
public enum ValidationVerdict: Sendable {
  /// A 304 confirmed a stored answer: keep its body, replace its metadata, and send what
  /// ``ResponseValidator/reply(to:from:now:)`` says of it.
  case update(Int, StoredMetadata, StoreChanges)
  /// Store it under `variant`, after carrying out the changes, and hand it on as it came.
  case store(variant: String, StoredMetadata, StoreChanges)
  /// The answer continues a stored part: the bytes of the stored answer followed by this body are the whole answer that the
  /// metadata describe. Store that under `variant`, in the place of what the changes drop (the part is among it), and send what
  /// ``ResponseValidator/reply(to:from:now:)`` says of it (RFC 9111 §3.4).
  case complete(Int, variant: String, StoredMetadata, StoreChanges)
  /// Hand it on without storing it. `shareable` says whether others who asked the same at the same time may have it too.
  case pass(StoreChanges, shareable: Bool)
  /// The answer helps neither the cache nor the caller (a 304 that confirms nothing that is stored, a part that continues
  /// nothing): send this request, which has no conditions but the caller's own.
  case refetch(HTTPRequest)
  /// Nobody could be asked, or the origin failed and the stored answer may stand in for it: show the stored answer.
  case serveStale(Int)
}
