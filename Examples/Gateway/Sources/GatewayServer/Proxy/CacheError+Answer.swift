public import CacheCore
import HTTPServing
public import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension CacheError {
  /// Whether the origin caused the error, and not the client or the gateway.
  fileprivate var isOrigins: Bool {
    code == .retryLater
      || code != .notCached && (responseStatus == .badGateway || responseStatus == .gatewayTimeout)
  }
}

extension ProxyAnswer {
  /// Creates a short text response from the gateway itself.
  ///
  /// - Parameters:
  ///   - status: The status, which is sent with its standard phrase.
  ///   - text: The text, one line.
  ///   - fields: Additional fields.
  ///   - date: The value of `Date`, which a server with a clock sends (RFC 9110 §6.6.1).
  public init(_ status: HTTPResponse.Status, text: String, fields: HTTPFields = [:], date: Timestamp) {
    var fields = fields
    fields[.date] = HTTPDate(date).description
    fields[.contentType] = "text/plain; charset=utf-8"
    self.init(
      head: HTTPResponse(status: status, headerFields: fields), body: ResourceBody(Data("\(text)\n".utf8)), outcome: .local)
  }

  /// Creates the response for an error: a status, one line, and the error code in `Cache-Status` (RFC 9211 §2.8).
  init(_ error: CacheError, at date: Timestamp) {
    let status = error.responseStatus
    var fields = HTTPFields()
    if error.code != .badRequest { fields.append("Cache-Status", "Etagere; detail=\(error.code.rawValue)") }
    if let delay = error.retryAfter { fields[.retryAfter] = "\(Int64((delay / .seconds(1)).rounded(.up)))" }
    self.init(status, text: "\(status.code) \(status.phrase): \(error.reason)", fields: fields, date: date)
    closes = error.code == .badRequest
    if error.isOrigins { outcome = .failed }
  }
}
