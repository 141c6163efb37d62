#if Redis
#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A reply of the server (the Redis serialization protocol, RESP, version 2).
enum RESPValue: Sendable {
  /// A bulk string.
  case bytes(Data)
  /// A simple string.
  case status(String)
  case integer(Int64)
  case null
  case array([RESPValue])
  /// An error with its message, which begins with a code in capital letters.
  case error(String)

  var bytes: Data? { if case .bytes(let data) = self { data } else { nil } }

  var integer: Int64? { if case .integer(let value) = self { value } else { nil } }

  var array: [RESPValue]? { if case .array(let values) = self { values } else { nil } }

  /// The text of a simple or bulk string.
  var text: String? {
    switch self {
    case .bytes(let data): String(decoding: data, as: UTF8.self)
    case .status(let text): text
    default: nil
    }
  }
}
#endif
