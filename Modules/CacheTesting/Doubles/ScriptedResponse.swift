public import CacheCore
public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// One response of a ``ScriptedDownloader``: a head and a body, or an error, optionally delayed or held by a gate.
public struct ScriptedResponse: Sendable {
  enum Outcome: Sendable {
    case response(HTTPResponse, body: Data)
    case failure(CacheError)
  }

  var outcome: Outcome
  var delay: Duration = .zero
  var gate: Gate?
  var bodyGate: Gate?
  var cutAfter: Int?
  var chunkSize = 64 << 10
  var statesLength = true

  /// Returns a response with any status and fields.
  public static func response(_ status: HTTPResponse.Status, fields: HTTPFields = [:], body: Data = Data()) -> Self {
    Self(outcome: .response(HTTPResponse(status: status, headerFields: fields), body: body))
  }

  /// Returns a 200 response with a body.
  public static func ok(_ body: Data, etag: String? = nil, cacheControl: String? = nil, fields: HTTPFields = [:]) -> Self {
    var fields = fields
    if let etag { fields[.eTag] = etag }
    if let cacheControl { fields[.cacheControl] = cacheControl }
    return response(.ok, fields: fields, body: body)
  }

  /// Returns a 200 response with a text body.
  public static func ok(_ text: String, etag: String? = nil, cacheControl: String? = nil, fields: HTTPFields = [:]) -> Self {
    ok(Data(text.utf8), etag: etag, cacheControl: cacheControl, fields: fields)
  }

  /// Returns a 304 response.
  public static func notModified(etag: String? = nil, cacheControl: String? = nil) -> Self {
    var fields = HTTPFields()
    if let etag { fields[.eTag] = etag }
    if let cacheControl { fields[.cacheControl] = cacheControl }
    return response(.notModified, fields: fields)
  }

  /// Returns a redirect.
  public static func redirect(to location: String, status: HTTPResponse.Status = .found) -> Self {
    response(status, fields: [.location: location])
  }

  /// Returns an error instead of a response.
  public static func failure(_ code: CacheError.Code, reason: String = "scripted") -> Self {
    Self(outcome: .failure(CacheError(code, reason: reason)))
  }

  /// Delays the response, measured by the downloader's clock.
  public func after(_ delay: Duration) -> Self { changed { $0.delay = delay } }

  /// Holds the response until the gate opens.
  public func held(by gate: Gate) -> Self { changed { $0.gate = gate } }

  /// Holds the body until the gate opens. The head is delivered immediately.
  public func bodyHeld(by gate: Gate) -> Self { changed { $0.bodyGate = gate } }

  /// Ends the body with an error after the given number of bytes, although the head declares all of them.
  public func cut(after bytes: Int) -> Self { changed { $0.cutAfter = bytes } }

  /// Delivers the body in chunks of the given size.
  public func chunked(by size: Int) -> Self { changed { $0.chunkSize = max(1, size) } }

  /// Omits the length of the body.
  public func withoutLength() -> Self { changed { $0.statesLength = false } }

  private func changed(_ change: (inout Self) -> Void) -> Self {
    var copy = self
    change(&copy)
    return copy
  }
}
