public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A request as a ``ContractOrigin`` got it.
public struct ContractRequest: Sendable {
  /// Method, target and fields.
  public var head: HTTPRequest
  /// The body, whole.
  public var body: Data
  /// Which connection it came over; nil where there are none.
  public var connection: Int?

  /// A request of its parts.
  public init(head: HTTPRequest, body: Data = Data(), connection: Int? = nil) {
    (self.head, self.body, self.connection) = (head, body, connection)
  }
}
