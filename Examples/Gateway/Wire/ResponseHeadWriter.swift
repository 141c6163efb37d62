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
    PieceWriter.write(to: &buffer) { text in
      writeStatus(head.status, to: &text)
      var hasLength = false
      for field in head.headerFields {
        guard field.name != .contentLength else {
          // In its place, and once.
          if !hasLength { hasLength = writeLength(of: field, to: &text) }
          continue
        }
        text.write(field.name.rawName)
        text.write(": ")
        field.withUnsafeBytesOfValue { text.write(UnsafeRawBufferPointer($0)) }
        text.write(Self.lineEnd)
      }
      writeFraming(hasLength: hasLength, to: &text)
    }
  }

  private func writeStatus(_ status: HTTPResponse.Status, to text: inout PieceWriter) {
    text.write("HTTP/1.1 ")
    text.write(String(status.code))
    text.write(" ")
    text.write(status.phrase)
    text.write(Self.lineEnd)
  }

  private func writeLength(of field: HTTPField, to text: inout PieceWriter) -> Bool {
    let value: String
    switch framing {
    case .bodiless: value = field.value
    case .length(let length): value = String(length)
    case .none, .chunked, .untilClose: return false
    }
    text.write(field.name.rawName)
    text.write(": ")
    text.write(value)
    text.write(Self.lineEnd)
    return true
  }

  private func writeFraming(hasLength: Bool, to text: inout PieceWriter) {
    switch framing {
    case .length(let length) where !hasLength:
      text.write("Content-Length: ")
      text.write(String(length))
      text.write(Self.lineEnd)
    case .chunked: text.write("Transfer-Encoding: chunked\r\n")
    case .bodiless, .none, .length, .untilClose: break
    }
    if !keepsAlive || framing == .untilClose {
      text.write("Connection: close\r\n")
    } else if isHTTP10 {
      text.write("Connection: keep-alive\r\n")
    }
    text.write(Self.lineEnd)
  }

  private static var lineEnd: StaticString { "\r\n" }
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
