public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A request that a ``ContractOrigin`` received.
public struct ContractRequest: Sendable {
  /// The method, target and fields.
  public var head: HTTPRequest
  /// The complete body.
  public var body: Data
  /// The number of the connection, or `nil` if the origin has no connections.
  public var connection: Int?

  /// Creates a request from its parts.
  public init(head: HTTPRequest, body: Data = Data(), connection: Int? = nil) {
    (self.head, self.body, self.connection) = (head, body, connection)
  }
}
