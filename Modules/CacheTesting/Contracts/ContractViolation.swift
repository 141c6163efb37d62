/// A component broke a statement of its contract.
public struct ContractViolation: Error, Sendable, CustomStringConvertible {
  /// What was expected, and what was seen.
  public let description: String

  /// A violation in words.
  public init(_ description: String) { self.description = description }

  static func expect(_ condition: Bool, _ otherwise: @autoclosure () -> String) throws {
    guard condition else { throw ContractViolation(otherwise()) }
  }

  static func expectEqual<Value: Equatable>(_ seen: Value, _ expected: Value, _ what: String) throws {
    guard seen == expected else { throw ContractViolation("\(what): expected \(expected), saw \(seen)") }
  }
}
