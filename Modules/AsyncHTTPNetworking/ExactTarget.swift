#if AsyncHTTP
internal import NIOCore
internal import NIOHTTP1

/// Sends targets as they were asked for.
///
/// async-http-client takes a URL apart with Foundation, which encodes what RFC 3986 has no place for: `|`, `[`, a `%` that begins
/// no escape. Servers and people use such targets all the same, and a signature over one fits no other. So they travel to the
/// connection in a field of their own, and are put into their place behind the client.
///
/// Over HTTP/1.1 only: a connection of HTTP/2 has nothing between the client and the coding of its fields.
enum ExactTarget {
  /// Leaves the request before it is written.
  static let fieldName = "Etagere-Exact-Target"

  /// Whether Foundation would send other bytes than these. Beyond visible ASCII there is no exact target.
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

  /// Puts the handler behind the client's own in a connection of HTTP/1.1. To be called on its event loop.
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

  /// What may stand in a path or a query as it is (RFC 3986 §3.3, §3.4).
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
