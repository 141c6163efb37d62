private import Synchronization

/// The identifier of a load. It differs from that of every other load of this process, including loads of the same URL.
///
/// Redirects, retries, alternative sources and a revalidation in the background belong to the load that caused them.
public struct LoadID: Hashable, Sendable, CustomStringConvertible {
  private let number: UInt64

  /// Creates a unique identifier.
  public init() { number = Self.last.wrappingAdd(1, ordering: .relaxed).newValue }

  private static let last = Atomic<UInt64>(0)

  /// The number of the load, such as `42`.
  public var description: String { "\(number)" }
}
