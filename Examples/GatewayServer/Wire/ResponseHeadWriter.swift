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
    // Some forty pieces: a buffer looks after its memory for each that is written to it, an array at a fraction of the cost.
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
        // In its place, and once.
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
    case .bodiless: value = field.value
    case .length(let length): value = String(length)
    case .none, .chunked, .untilClose: return false
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
    case .bodiless, .none, .length, .untilClose: break
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
  /// Its own reason phrase, or else the usual one (RFC 9110 §15); empty for a code that nobody knows.
  var phrase: String {
    guard reasonPhrase.isEmpty else { return reasonPhrase }
    guard case .custom = HTTPResponseStatus(statusCode: code) else { return HTTPResponseStatus(statusCode: code).reasonPhrase }
    return ""
  }
}
#endif
