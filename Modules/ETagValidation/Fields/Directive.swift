internal import CacheCore

/// A member of a directive list: `name`, `name=token` or `name="quoted"` (RFC 9111 §5.2). It is valid only as long as the line
/// that it was read from is.
struct Directive {
  enum Argument {
    case none
    case token(UnsafeBufferPointer<UInt8>)
    /// The bytes between the quotes, with their escapes.
    case quoted(UnsafeBufferPointer<UInt8>)
    /// An argument that violates the grammar: blanks around `=`, an open quote, text after the closing quote, or an invalid
    /// token.
    case unreadable
  }

  /// The name, in any case.
  let name: UnsafeBufferPointer<UInt8>
  let argument: Argument

  init(_ member: UnsafeBufferPointer<UInt8>) {
    guard let equals = member.firstIndex(of: UInt8(ascii: "=")) else {
      (name, argument) = (member, .none)
      return
    }
    name = UnsafeBufferPointer(rebasing: member[..<equals]).trimmingBlanks()
    let tail = UnsafeBufferPointer(rebasing: member[(equals + 1)...])
    argument = name.count == equals ? Self.argument(tail) : .unreadable
  }

  private static func argument(_ text: UnsafeBufferPointer<UInt8>) -> Argument {
    guard text.first == UInt8(ascii: "\"") else {
      return !text.isEmpty && text.allSatisfy(isToken) ? .token(text) : .unreadable
    }
    guard let close = text.closingQuote(from: 1), close + 1 == text.count else { return .unreadable }
    return .quoted(UnsafeBufferPointer(rebasing: text[1..<close]))
  }

  /// Returns whether the byte is a `tchar` (RFC 9110 §5.6.2).
  static func isToken(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
    case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E, 0x5F, 0x60, 0x7C, 0x7E: true
    default: false
    }
  }
}

extension Directive.Argument {
  /// The argument as a number of seconds, or `nil` if it does not consist of digits only.
  var seconds: Duration? {
    switch self {
    case .token(let text): DeltaSeconds.duration(text)
    case .quoted(let text): Self.unescaped(text).withUnsafeBufferPointer { DeltaSeconds.duration($0) }
    case .none, .unreadable: nil
    }
  }

  /// The field names in a quoted argument, in lower case, or `nil` if the argument is not quoted. Only quoted names are field
  /// names; with a token (`no-cache=1`) the directive applies as a whole.
  var fieldNames: [String]? {
    guard case .quoted(let text) = self else { return nil }
    return Self.unescaped(text).withUnsafeBufferPointer { FieldList($0).map(\.lowercased) }
  }

  private static func unescaped(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
    var bytes: [UInt8] = []
    var escaped = false
    for byte in text {
      if byte == UInt8(ascii: "\\"), !escaped {
        escaped = true
      } else {
        bytes.append(byte)
        escaped = false
      }
    }
    return bytes
  }
}
