#if AsyncHTTP
internal import NIOCore
internal import NIOHTTP1

/// Sends request targets unchanged.
///
/// async-http-client parses a URL with Foundation, which encodes characters that RFC 3986 does not allow: `|`, `[`, a `%` that
/// begins no escape. Such targets are in use, and a signature over one is valid for no other. The exact target is therefore
/// passed to the connection in a separate field. A handler below the client puts it into the request line.
///
/// It works over HTTP/1.1 only. An HTTP/2 connection has no handler between the client and the encoding of the fields.
enum ExactTarget {
  /// The name of the field, which is removed before the request is written.
  static let fieldName = "Etagere-Exact-Target"

  /// Returns whether Foundation would change these bytes. A target beyond visible ASCII has no exact form.
  static func isNeeded(for target: String) -> Bool {
    var target = target
    return target.withUTF8 { bytes in
      var isChanged = false
      for (index, byte) in bytes.enumerated() {
        guard (0x21...0x7E).contains(byte), byte != UInt8(ascii: "#") else { return false }
        if byte == UInt8(ascii: "%") {
          let escape = bytes[(index + 1)...].prefix(2)
          if escape.count < 2 || !escape.allSatisfy(\.isHexDigit) { isChanged = true }
        } else if !byte.isTargetCharacter {
          isChanged = true
        }
      }
      return isChanged
    }
  }

  /// Adds the handler below the client's in an HTTP/1.1 connection. Call it on the connection's event loop.
  static func install(in channel: any Channel) throws {
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(Handler(), position: .after(pipeline.handler(type: HTTPRequestEncoder.self)))
  }

  private final class Handler: ChannelOutboundHandler {
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      guard case .head(var head) = unwrapOutboundIn(data), let target = head.headers.first(name: fieldName) else {
        return context.write(data, promise: promise)
      }
      head.uri = target
      head.headers.remove(name: fieldName)
      context.write(wrapOutboundOut(.head(head)), promise: promise)
    }
  }
}

extension UInt8 {
  fileprivate var isHexDigit: Bool { (48...57).contains(self) || (65...70).contains(self) || (97...102).contains(self) }

  /// Whether the byte is allowed unencoded in a path or a query (RFC 3986 §3.3, §3.4).
  fileprivate var isTargetCharacter: Bool {
    switch self {
    case 48...57, 65...90, 97...122: true
    // - . _ ~ ! $ & ' ( ) * + , ; = : @ / ?
    case 45, 46, 95, 126, 33, 36, 38...44, 59, 61, 58, 64, 47, 63: true
    default: false
    }
  }
}
#endif
