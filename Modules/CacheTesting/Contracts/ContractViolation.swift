/// The error of a component that violates a statement of its contract.
public struct ContractViolation: Error, Sendable, CustomStringConvertible {
  /// The expected and the observed behavior.
  public let description: String

  /// Creates a violation with a description.
  public init(_ description: String) { self.description = description }

  static func expect(_ condition: Bool, _ otherwise: @autoclosure () -> String) throws {
    guard condition else { throw ContractViolation(otherwise()) }
  }

  static func expectEqual<Value: Equatable>(_ seen: Value, _ expected: Value, _ what: String) throws {
    guard seen == expected else { throw ContractViolation("\(what): expected \(expected), saw \(seen)") }
  }
}
