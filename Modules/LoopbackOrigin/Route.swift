#if Origin
public import HTTPTypes
#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What a path answers with: always the same, or what a closure makes of each request.
public struct Route: Sendable {
  enum Source: Sendable {
    case fixed(OriginAnswer)
    case turns(AnswerTurns)
    case closure(@Sendable (ReceivedRequest) async -> OriginAnswer)
  }

  let source: Source

  /// The same answer to every request, conditions and ranges looked at each time.
  public init(_ answer: OriginAnswer) { source = .fixed(answer) }

  /// The same bytes to every request; the parameters are `OriginAnswer`'s.
  public init(
    _ body: Data, contentType: String? = nil, etag: OriginETag? = nil, lastModified: Date? = nil, fields: HTTPFields = [:],
    status: HTTPResponse.Status = .ok, acceptsRanges: Bool = false, credential: OriginCredential? = nil,
    delivery: OriginDelivery = OriginDelivery()
  ) {
    self.init(
      OriginAnswer(
        body, contentType: contentType, etag: etag, lastModified: lastModified, fields: fields, status: status,
        acceptsRanges: acceptsRanges, credential: credential, delivery: delivery))
  }

  /// One answer after another, whoever asks; the last one answers all that follow. Without any it is an empty 200.
  public init(inTurn answers: [OriginAnswer]) { source = .turns(AnswerTurns(answers)) }

  /// What the closure makes of each request. It is held strongly, as long as the route is set or a request is being answered;
  /// its task is cancelled when the client goes away or the origin stops.
  public init(answering: @escaping @Sendable (ReceivedRequest) async -> OriginAnswer) { source = .closure(answering) }

  /// An ordinary small answer that goes wrong in this way.
  public static func fault(_ fault: OriginFault) -> Self { Self(OriginAnswer(text: "faulty", delivery: .fault(fault))) }

  /// A redirect; see `OriginAnswer.redirect(to:status:)`.
  public static func redirect(to location: String, status: HTTPResponse.Status = .found) -> Self {
    Self(.redirect(to: location, status: status))
  }
}
#endif
