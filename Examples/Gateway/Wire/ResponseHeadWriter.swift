#if Gateway
import HTTPTypes
import NIOCore
import NIOHTTP1

/// Writes an answer's head as HTTP/1.1 does: fields in their order, each name and value with its bytes.
struct ResponseHeadWriter {
  var framing: ResponseFraming
  var keepsAlive: Bool
  /// Clients of HTTP/1.0 must be told that the connection stays.
  var isHTTP10: Bool

  /// - Parameters:
  ///   - head: status, reason phrase and end-to-end fields.
  ///   - buffer: written to at its end.
  func write(_ head: HTTPResponse, to buffer: inout ByteBuffer) {
    buffer.writeStaticString("HTTP/1.1 ")
    buffer.writeString(String(head.status.code))
    buffer.writeStaticString(" ")
    buffer.writeString(head.status.phrase)
    buffer.writeStaticString("\r\n")
    var hasLength = false
    for field in head.headerFields {
      if field.name == .contentLength {
        // In its place, and once.
        if !hasLength { hasLength = writeLength(of: field, to: &buffer) }
        continue
      }
      buffer.writeString(field.name.rawName)
      buffer.writeStaticString(": ")
      field.withUnsafeBytesOfValue { _ = buffer.writeBytes($0) }
      buffer.writeStaticString("\r\n")
    }
    writeFraming(hasLength: hasLength, to: &buffer)
  }

  private func writeLength(of field: HTTPField, to buffer: inout ByteBuffer) -> Bool {
    let value: String
    switch framing {
    case .bodiless: value = field.value
    case .length(let length): value = String(length)
    case .none, .chunked, .untilClose: return false
    }
    buffer.writeString(field.name.rawName)
    buffer.writeStaticString(": ")
    buffer.writeString(value)
    buffer.writeStaticString("\r\n")
    return true
  }

  private func writeFraming(hasLength: Bool, to buffer: inout ByteBuffer) {
    switch framing {
    case .length(let length) where !hasLength: buffer.writeString("Content-Length: \(length)\r\n")
    case .chunked: buffer.writeStaticString("Transfer-Encoding: chunked\r\n")
    case .bodiless, .none, .length, .untilClose: break
    }
    if !keepsAlive || framing == .untilClose {
      buffer.writeStaticString("Connection: close\r\n")
    } else if isHTTP10 {
      buffer.writeStaticString("Connection: keep-alive\r\n")
    }
    buffer.writeStaticString("\r\n")
  }
}

extension HTTPResponse.Status {
  /// Its own reason phrase, or else the usual one (RFC 9110 §15); empty for a code that nobody knows.
  var phrase: String {
    guard reasonPhrase.isEmpty else { return reasonPhrase }
    guard case .custom = HTTPResponseStatus(statusCode: code) else { return HTTPResponseStatus(statusCode: code).reasonPhrase }
    return ""
  }
}
#endif
