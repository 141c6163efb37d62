#if Origin
public import HTTPTypes
#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The response of a path: one fixed response, several in turn, or the result of a closure.
public struct Route: Sendable {
  enum Source: Sendable {
    case fixed(OriginResponse)
    case turns(ResponseSequence)
    case closure(@Sendable (ReceivedRequest) async -> OriginResponse)
  }

  let source: Source

  /// Creates a route with one response for every request. Conditions and ranges are evaluated each time.
  public init(_ response: OriginResponse) { source = .fixed(response) }

  /// Creates a route with the same bytes for every request. The parameters are those of `OriginResponse`.
  public init(
    _ body: Data, contentType: String? = nil, etag: OriginETag? = nil, lastModified: Date? = nil, fields: HTTPFields = [:],
    status: HTTPResponse.Status = .ok, acceptsRanges: Bool = false, credential: OriginCredential? = nil,
    delivery: OriginDelivery = OriginDelivery()
  ) {
    self.init(
      OriginResponse(
        body, contentType: contentType, etag: etag, lastModified: lastModified, fields: fields, status: status,
        acceptsRanges: acceptsRanges, credential: credential, delivery: delivery))
  }

  /// Creates a route that gives the responses in turn, across all clients. The last one is repeated. An empty array means an
  /// empty 200.
  public init(inTurn responses: [OriginResponse]) { source = .turns(ResponseSequence(responses)) }

  /// Creates a route with a closure that creates the response to each request. The closure is retained while the route is set or
  /// a request is in progress. Its task is cancelled if the client disconnects or the origin stops.
  public init(handler: @escaping @Sendable (ReceivedRequest) async -> OriginResponse) { source = .closure(handler) }

  /// Creates a route with a short response that has a fault.
  public static func fault(_ fault: OriginFault) -> Self { Self(OriginResponse(text: "faulty", delivery: .fault(fault))) }

  /// Creates a redirect. See `OriginResponse.redirect(to:status:)`.
  public static func redirect(to location: String, status: HTTPResponse.Status = .found) -> Self {
    Self(.redirect(to: location, status: status))
  }
}
#endif
