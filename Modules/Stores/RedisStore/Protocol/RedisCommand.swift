#if Redis
internal import CacheCore
internal import NIOCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A command: an array of bulk strings.
struct RedisCommand: Sendable {
  enum Argument: Sendable, ExpressibleByStringLiteral {
    case text(String)
    case bytes([UInt8])
    case data(Data)

    init(stringLiteral value: String) { self = .text(value) }

    static func number(_ value: some BinaryInteger) -> Argument { .text(String(value)) }

    fileprivate var count: Int {
      switch self {
      case .text(let text): text.utf8.count
      case .bytes(let bytes): bytes.count
      case .data(let data): data.count
      }
    }
  }

  private(set) var arguments: [Argument]
  /// The maximum size of the reply, as ``ReplyReader`` counts it.
  let replyLimit: Int

  /// The size in bytes of a reply that is no entry and no list.
  static let smallReply = 65_536
  /// The size in bytes of a reply with the value of one entry and its header.
  static let entryReply = EntryRecord.sizeLimit + 2 * ReplyReader.valueSize
  /// The size in bytes of a list of entries, keys or messages. A larger one would not arrive within the default timeout.
  static let listReply = 64 << 20

  init(_ arguments: Argument..., replyLimit: Int = smallReply) { self.init(arguments, replyLimit: replyLimit) }

  init(_ arguments: [Argument], replyLimit: Int = smallReply) { (self.arguments, self.replyLimit) = (arguments, replyLimit) }

  /// Appends the command as the server receives it.
  func encode(into buffer: inout ByteBuffer) {
    buffer.writeStaticString("*")
    buffer.writeString(String(arguments.count))
    buffer.writeStaticString("\r\n")
    for argument in arguments {
      buffer.writeStaticString("$")
      buffer.writeString(String(argument.count))
      buffer.writeStaticString("\r\n")
      switch argument {
      case .text(let text): buffer.writeString(text)
      case .bytes(let bytes): buffer.writeBytes(bytes)
      case .data(let data): data.withUnsafeBytes { _ = buffer.writeBytes($0) }
      }
      buffer.writeStaticString("\r\n")
    }
  }

  /// An upper bound for the number of encoded bytes.
  var encodedCountLimit: Int { arguments.reduce(16) { $0 + $1.count + 16 } }
}
#endif
