#if Server
import CacheCore

/// The character classes of RFC 9110 §5.6.
extension UInt8 {
  /// `ALPHA` or `DIGIT`.
  var isLetterOrDigit: Bool { (48...57).contains(self) || (65...90).contains(self) || (97...122).contains(self) }

  /// `HEXDIG`.
  var isHexDigit: Bool { hexValue != nil }

  /// A character of a registered name (RFC 3986 §3.2.2), including the percent sign of an escape.
  var isHostByte: Bool {
    if isLetterOrDigit { return true }
    switch self {
    case 0x21, 0x24...0x2E, 0x3B, 0x3D, 0x5F, 0x7E: return true
    default: return false
    }
  }

  /// A byte of a field value (RFC 9110 §5.5): visible, blank, or not ASCII. CR, LF and NUL are dangerous, and other control
  /// characters are invalid.
  var isFieldByte: Bool { self >= 0x20 && self != 0x7F || self == 9 }

  /// Visible ASCII, a character of a request target.
  var isVisible: Bool { (0x21...0x7E).contains(self) }
}
#endif
