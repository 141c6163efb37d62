/// The identity of one body: minted when it arrives, kept when a 304 confirms it.
///
/// It ties metadata, bytes and derived values together: a derived value whose revision is not the metadata's is a miss, without any enumeration.
public struct Revision: Hashable, Sendable {
  /// The upper 64 bits.
  public let high: UInt64
  /// The lower 64 bits.
  public let low: UInt64

  /// A revision of its two halves, as a store reads it back.
  public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

  /// A new revision: 128 random bits, so that two processes never mint the same one.
  public static func mint() -> Revision {
    var generator = SystemRandomNumberGenerator()
    return Revision(high: generator.next(), low: generator.next())
  }
}

extension Revision: CustomStringConvertible {
  /// 32 hexadecimal digits.
  public var description: String { Hexadecimal.text(high) + Hexadecimal.text(low) }
}
