private import Synchronization

/// The identity of one body. A new body gets a new revision, and a 304 leaves it unchanged.
///
/// It ties metadata, bytes and derived values together. A derived value whose revision differs from the metadata's is a miss, so
/// a store does not have to enumerate derived values.
public struct Revision: Hashable, Sendable {
  /// The upper 64 bits.
  public let high: UInt64
  /// The lower 64 bits.
  public let low: UInt64

  /// Creates a revision from its two halves, as a store reads it.
  public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

  /// Returns a new revision of 128 bits, which is unique across processes.
  ///
  /// It is a digest of a counter under a key that is random in each process. Random bits from the system would cost two system
  /// calls for each response.
  public static func random() -> Revision {
    let (high, low) = SipHash.digest(counter.wrappingAdd(1, ordering: .relaxed).newValue, key: key)
    return Revision(high: high, low: low)
  }

  private static let key = SipHash.Key.random()
  private static let counter = Atomic<UInt64>(0)
}

extension Revision: CustomStringConvertible {
  /// 32 hexadecimal digits.
  public var description: String { Hexadecimal.text(high) + Hexadecimal.text(low) }
}
