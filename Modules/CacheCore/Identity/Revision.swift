private import Synchronization

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

  /// A new revision: 128 bits that nobody else mints, in this process or another one.
  ///
  /// Digests of consecutive numbers under a key that is random in each process: bits of the system's own cost two system calls each time, and every answer mints.
  public static func random() -> Revision {
    let (high, low) = SipHash.digest(minted.wrappingAdd(1, ordering: .relaxed).newValue, key: key)
    return Revision(high: high, low: low)
  }

  private static let key = SipHash.Key.random()
  private static let minted = Atomic<UInt64>(0)
}

extension Revision: CustomStringConvertible {
  /// 32 hexadecimal digits.
  public var description: String { Hexadecimal.text(high) + Hexadecimal.text(low) }
}
