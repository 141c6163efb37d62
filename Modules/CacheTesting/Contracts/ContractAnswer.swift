public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What a ``DownloaderContract`` asks an origin to answer.
public struct ContractAnswer: Sendable {
  /// How the body's end is told (RFC 9112 §6).
  public enum Framing: Hashable, Sendable {
    /// The head tells the length.
    case length
    /// In chunks, without a length.
    case chunks
    /// The body ends where the connection does.
    case connection
    /// The head tells this length, true or not; the connection closes after the body where it is not.
    case claimed(Int)
  }

  /// How an answer ends. Counts are of body bytes.
  public enum Ending: Hashable, Sendable {
    /// As it should.
    case complete
    /// As it should, with a promise to keep the connection, which closes all the same.
    case closesAfterwards
    /// The connection closes after so many of the body's bytes, though all of them were announced.
    case cut(after: Int)
    /// The connection is reset after so many of the body's bytes.
    case reset(after: Int)
    /// Nothing comes after so many of the body's bytes, and the connection stays open.
    case stall(after: Int)
    /// The body comes one byte at a time, each after this pause.
    case trickle(every: Duration)
    /// The connection closes before the head.
    case closeBeforeHead
    /// The connection is reset before the head.
    case resetBeforeHead
    /// The connection stays open, and nothing comes.
    case stallBeforeHead
    /// The connection closes in the middle of the header section.
    case cutInHead
    /// The connection is reset in the middle of the header section.
    case resetInHead
    /// The head comes one byte at a time, each after this pause; the body follows as it should.
    case trickleHead(every: Duration)
    /// The header section never ends.
    case endlessHead
    /// These bytes come instead of an answer, then the connection closes.
    case raw(Data)
  }

  /// The status.
  public var status: HTTPResponse.Status
  /// The fields, besides those that frame the body.
  public var fields: HTTPFields
  /// The body.
  public var body: Data
  /// How the body's end is told.
  public var framing: Framing
  /// How it ends.
  public var ending: Ending
  /// Interim answers (1xx) that come before it.
  public var interim: [HTTPResponse]
  /// What holds the answer back, head and all.
  public var gate: Gate?
  /// What holds the body back when half of it is out.
  public var bodyGate: Gate?

  /// An answer of its parts.
  public init(
    status: HTTPResponse.Status = .ok, fields: HTTPFields = [:], body: Data = Data(), framing: Framing = .length,
    ending: Ending = .complete, interim: [HTTPResponse] = [], gate: Gate? = nil, bodyGate: Gate? = nil
  ) {
    self.status = status
    self.fields = fields
    self.body = body
    self.framing = framing
    self.ending = ending
    self.interim = interim
    self.gate = gate
    self.bodyGate = bodyGate
  }
}
