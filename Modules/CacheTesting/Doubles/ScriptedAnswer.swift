public import CacheCore
public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// One answer of a ``ScriptedDownloader``: a head and a body, or an error, after a delay or behind a gate.
public struct ScriptedAnswer: Sendable {
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

  /// An answer with any status and fields.
  public static func response(_ status: HTTPResponse.Status, fields: HTTPFields = [:], body: Data = Data()) -> Self {
    Self(outcome: .response(HTTPResponse(status: status, headerFields: fields), body: body))
  }

  /// 200 with a body.
  public static func ok(_ body: Data, etag: String? = nil, cacheControl: String? = nil, fields: HTTPFields = [:]) -> Self {
    var fields = fields
    if let etag { fields[.eTag] = etag }
    if let cacheControl { fields[.cacheControl] = cacheControl }
    return response(.ok, fields: fields, body: body)
  }

  /// 200 with a text.
  public static func ok(_ text: String, etag: String? = nil, cacheControl: String? = nil, fields: HTTPFields = [:]) -> Self {
    ok(Data(text.utf8), etag: etag, cacheControl: cacheControl, fields: fields)
  }

  /// 304.
  public static func notModified(etag: String? = nil, cacheControl: String? = nil) -> Self {
    var fields = HTTPFields()
    if let etag { fields[.eTag] = etag }
    if let cacheControl { fields[.cacheControl] = cacheControl }
    return response(.notModified, fields: fields)
  }

  /// A redirect.
  public static func redirect(to location: String, status: HTTPResponse.Status = .found) -> Self {
    response(status, fields: [.location: location])
  }

  /// No answer.
  public static func failure(_ code: CacheError.Code, reason: String = "scripted") -> Self {
    Self(outcome: .failure(CacheError(code, reason: reason)))
  }

  /// The same answer, after a time on the downloader's clock.
  public func after(_ delay: Duration) -> Self { changed { $0.delay = delay } }

  /// The same answer, once the gate is open.
  public func held(by gate: Gate) -> Self { changed { $0.gate = gate } }

  /// The same answer: the head at once, the body once the gate is open.
  public func bodyHeld(by gate: Gate) -> Self { changed { $0.bodyGate = gate } }

  /// The same answer, with a body that ends with an error after so many bytes, though its head announces all of them.
  public func cut(after bytes: Int) -> Self { changed { $0.cutAfter = bytes } }

  /// The same answer, its body in chunks of so many bytes.
  public func chunked(by size: Int) -> Self { changed { $0.chunkSize = max(1, size) } }

  /// The same answer, with a body whose length is not told beforehand.
  public func withoutLength() -> Self { changed { $0.statesLength = false } }

  private func changed(_ change: (inout Self) -> Void) -> Self {
    var answer = self
    change(&answer)
    return answer
  }
}
