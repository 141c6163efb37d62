/// A set of restricted networks that a request may use in addition to the unrestricted ones.
public struct NetworkAccess: OptionSet, Hashable, Sendable {
  /// The bits of the set, one for each kind.
  public let rawValue: UInt8

  /// Creates a set from its bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Cellular networks.
  public static let cellular = NetworkAccess(rawValue: 1)
  /// Networks that the system considers expensive, such as cellular networks and personal hotspots.
  public static let expensive = NetworkAccess(rawValue: 2)
  /// Networks for which the user has turned on Low Data Mode.
  public static let constrained = NetworkAccess(rawValue: 4)
  /// All networks.
  public static let all: NetworkAccess = [.cellular, .expensive, .constrained]
}

extension NetworkAccess: CustomStringConvertible {
  /// The names of the networks in brackets.
  public var description: String {
    names([(.cellular, "cellular"), (.expensive, "expensive"), (.constrained, "constrained")])
  }
}
