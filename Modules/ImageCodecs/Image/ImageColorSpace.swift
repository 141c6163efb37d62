/// What the numbers of a picture's file mean. Decoded pixels are sRGB always (grey ones with sRGB's curve).
public struct ImageColorSpace: RawRepresentable, Hashable, Sendable {
  /// The name.
  public let rawValue: String

  /// A colour space by name: the description of an embedded profile (ICC.1), `Display P3`.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// sRGB (IEC 61966-2-1), embedded or taken for granted.
  public static let sRGB = Self(rawValue: "sRGB")
  /// Shades of grey.
  public static let gray = Self(rawValue: "grey")
  /// Cyan, magenta, yellow, black: for print.
  public static let cmyk = Self(rawValue: "CMYK")
}

extension ImageColorSpace: CustomStringConvertible {
  /// The name.
  public var description: String { rawValue }
}
