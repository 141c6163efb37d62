/// Networks that a request may use, beside the ordinary one, as a set.
public struct NetworkAccess: OptionSet, Hashable, Sendable {
  /// One bit a kind.
  public let rawValue: UInt8

  /// A set of its bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// A mobile network.
  public static let cellular = NetworkAccess(rawValue: 1)
  /// One that the system thinks of as expensive: mobile, or a personal hotspot.
  public static let expensive = NetworkAccess(rawValue: 2)
  /// One that the user has put into low-data mode.
  public static let constrained = NetworkAccess(rawValue: 4)
  /// Every network.
  public static let all: NetworkAccess = [.cellular, .expensive, .constrained]
}

extension NetworkAccess: CustomStringConvertible {
  /// The networks' names in brackets.
  public var description: String {
    names([(.cellular, "cellular"), (.expensive, "expensive"), (.constrained, "constrained")])
  }
}
