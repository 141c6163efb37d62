private import Synchronization

/// The identifier of a load, which tells it apart from every other load of this process, also of the same URL.
///
/// Redirects, retries, alternative sources and a revalidation in the background belong to the load that caused them.
public struct LoadID: Hashable, Sendable, CustomStringConvertible {
  private let number: UInt64

  /// Creates an identifier that no other load has.
  public init() { number = Self.last.wrappingAdd(1, ordering: .relaxed).newValue }

  private static let last = Atomic<UInt64>(0)

  /// The number of the load, such as `42`.
  public var description: String { "\(number)" }
}
