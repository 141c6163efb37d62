internal import CacheCore

/// A member of a directive list: `name`, `name=token` or `name="quoted"` (RFC 9111 §5.2).
struct Directive {
  enum Argument: Equatable {
    case none
    case token(String)
    case quoted(String)
    /// An argument that violates the grammar: blanks around `=`, an open quote, text after the closing quote, or an invalid
    /// token.
    case unreadable
  }

  /// The name in lower case.
  let name: String
  let argument: Argument

  init(_ member: Substring.UTF8View) {
    guard let equals = member.firstIndex(of: UInt8(ascii: "=")) else {
      (name, argument) = (Self.lowercased(member), .none)
      return
    }
    let head = member[..<equals].trimmingBlanks()
    name = Self.lowercased(head)
    let tail = member[member.index(after: equals)...]
    argument = head.endIndex == equals ? Self.argument(tail) : .unreadable
  }

  /// Returns the name in lower case. It avoids a copy if the name already is, as is usually the case.
  private static func lowercased(_ name: Substring.UTF8View) -> String {
    let isLowercase = name.allSatisfy { $0 < 0x80 && !(UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }
    return isLowercase ? String(Substring(name)) : Substring(name).lowercased()
  }

  private static func argument(_ text: Substring.UTF8View) -> Argument {
    guard text.first == UInt8(ascii: "\"") else {
      return !text.isEmpty && text.allSatisfy(isToken) ? .token(String(Substring(text))) : .unreadable
    }
    let inside = text.dropFirst()
    guard let close = inside.closingQuote(from: inside.startIndex), inside.index(after: close) == inside.endIndex else {
      return .unreadable
    }
    var bytes: [UInt8] = []
    var escaped = false
    for byte in inside[..<close] {
      if byte == UInt8(ascii: "\\"), !escaped {
        escaped = true
      } else {
        bytes.append(byte)
        escaped = false
      }
    }
    return .quoted(String(decoding: bytes, as: UTF8.self))
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
    case .token(let text), .quoted(let text): DeltaSeconds.duration(text.utf8)
    case .none, .unreadable: nil
    }
  }

  /// The field names in a quoted argument, in lower case.
  var fieldNames: [String] {
    guard case .quoted(let text) = self else { return [] }
    return FieldList(text).map { Substring($0).lowercased() }
  }

  /// Whether the argument is quoted. Only quoted names are field names; with a token (`no-cache=1`) the directive applies as a
  /// whole.
  var isQuoted: Bool { if case .quoted = self { true } else { false } }
}
