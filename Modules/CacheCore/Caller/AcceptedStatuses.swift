/// The statuses that a load accepts as success.
///
/// ```swift
/// options.acceptedStatuses = AcceptedStatuses(200..<300, 304..<305)
/// ```
public struct AcceptedStatuses: Hashable, Sendable {
  private let ranges: [Range<Int>]

  /// Creates a set of the statuses in the given ranges.
  public init(_ ranges: Range<Int>...) { self.ranges = ranges }

  /// The statuses from 200 to 299.
  public static let success = AcceptedStatuses(200..<300)

  /// Returns whether the set contains `status`.
  public func contains(_ status: Int) -> Bool { ranges.contains { $0.contains(status) } }
}

extension AcceptedStatuses: CustomStringConvertible {
  /// The ranges, separated by commas: `200..<300, 304..<305`.
  public var description: String { ranges.map(\.description).joined(separator: ", ") }
}
