#if Server
public import HTTPTypes
package import NIOCore
import NIOHTTP1

/// A writer of HTTP/1.1 response heads. It preserves the order of the fields and the bytes of their names and values.
package struct ResponseHeadWriter {
  var framing: ResponseFraming
  var keepsAlive: Bool
  /// Whether the client uses HTTP/1.0. Such a client needs `keep-alive` to know that the connection stays open.
  var isHTTP10: Bool

  package init(framing: ResponseFraming, keepsAlive: Bool, isHTTP10: Bool) {
    (self.framing, self.keepsAlive, self.isHTTP10) = (framing, keepsAlive, isHTTP10)
  }

  /// Appends a head to a buffer.
  ///
  /// - Parameters:
  ///   - head: The status, the reason phrase and the end-to-end fields.
  ///   - buffer: The buffer that the head is appended to.
  package func write(_ head: HTTPResponse, to buffer: inout ByteBuffer) {
    // A head has about forty pieces. Appending to an array costs a fraction of writing each piece to a ByteBuffer.
    var text: [UInt8] = []
    text.reserveCapacity(1024)
    let status = head.status
    text.append(contentsOf: "HTTP/1.1 ".utf8)
    text.append(contentsOf: String(status.code).utf8)
    text.append(UInt8(ascii: " "))
    text.append(contentsOf: status.phrase.utf8)
    text.append(contentsOf: Self.lineEnd)
    var hasLength = false
    for field in head.headerFields {
      guard field.name != .contentLength else {
        // Written once, at the place of the first one.
        if !hasLength { hasLength = writeLength(of: field, to: &text) }
        continue
      }
      text.append(contentsOf: field.name.rawName.utf8)
      text.append(contentsOf: Self.colon)
      field.withUnsafeBytesOfValue { text.append(contentsOf: $0) }
      text.append(contentsOf: Self.lineEnd)
    }
    writeFraming(hasLength: hasLength, to: &text)
    buffer.writeBytes(text)
  }

  private func writeLength(of field: HTTPField, to text: inout [UInt8]) -> Bool {
    let value: String
    switch framing {
    case .headOnly: value = field.value
    case .length(let length): value = String(length)
    case .noContent, .chunked, .untilClose: return false
    }
    text.append(contentsOf: field.name.rawName.utf8)
    text.append(contentsOf: Self.colon)
    text.append(contentsOf: value.utf8)
    text.append(contentsOf: Self.lineEnd)
    return true
  }

  private func writeFraming(hasLength: Bool, to text: inout [UInt8]) {
    switch framing {
    case .length(let length) where !hasLength: text.append(contentsOf: "Content-Length: \(length)\r\n".utf8)
    case .chunked: text.append(contentsOf: "Transfer-Encoding: chunked\r\n".utf8)
    case .headOnly, .noContent, .length, .untilClose: break
    }
    if !keepsAlive || framing == .untilClose {
      text.append(contentsOf: "Connection: close\r\n".utf8)
    } else if isHTTP10 {
      text.append(contentsOf: "Connection: keep-alive\r\n".utf8)
    }
    text.append(contentsOf: Self.lineEnd)
  }

  private static let colon = Array(": ".utf8)
  private static let lineEnd = Array("\r\n".utf8)
}

extension HTTPResponse.Status {
  /// The status's own reason phrase, or the standard one (RFC 9110 §15). Empty for an unknown code.
  public var phrase: String {
    guard reasonPhrase.isEmpty else { return reasonPhrase }
    // SwiftNIO has no name for 103.
    return self == .earlyHints ? Self.earlyHints.reasonPhrase : HTTPResponseStatus(statusCode: code).reasonPhrase
  }
}

/// The framing of a response, which tells the client where the body ends (RFC 9112 §6).
package enum ResponseFraming: Hashable, Sendable {
  /// No body is sent. `Content-Length` states the size that a `GET` would return (RFC 9110 §8.6).
  case headOnly
  /// The status forbids a body and `Content-Length`.
  case noContent
  case length(Int64)
  case chunked
  /// The body ends with the connection, because HTTP/1.0 has no chunks.
  case untilClose

  /// Selects the framing of a response.
  ///
  /// - Parameters:
  ///   - method: The method of the request.
  ///   - status: The status of the response.
  ///   - length: The length of the body, or `nil` if it is unknown.
  ///   - isHTTP10: Whether the client uses HTTP/1.0.
  init(method: HTTPRequest.Method, status: HTTPResponse.Status, length: Int64?, isHTTP10: Bool) {
    if status.code == 204 {
      self = .noContent
    } else if status.code == 304 || method == .head {
      self = .headOnly
    } else if let length {
      self = .length(length)
    } else {
      self = isHTTP10 ? .untilClose : .chunked
    }
  }

  /// Whether a body is sent.
  var hasBody: Bool {
    switch self {
    case .headOnly, .noContent: false
    case .length, .chunked, .untilClose: true
    }
  }
}
#endif
