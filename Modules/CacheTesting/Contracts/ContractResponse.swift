public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A response that a ``DownloaderContract`` requests from an origin.
public struct ContractResponse: Sendable {
  /// The framing of a body (RFC 9112 §6).
  public enum Framing: Hashable, Sendable {
    /// `Content-Length` declares the length.
    case length
    /// Chunked, without a length.
    case chunks
    /// The body ends with the connection.
    case connection
    /// `Content-Length` declares the given length, correct or not. If it is wrong, the connection closes after the
    /// body.
    case claimed(Int)
  }

  /// The end of a response. Counts are of body bytes.
  public enum Ending: Hashable, Sendable {
    /// A complete response.
    case complete
    /// A complete response that promises to keep the connection open, although the connection closes.
    case closesAfterwards
    /// The connection closes after the given number of body bytes, although the head declares all of them.
    case cut(after: Int)
    /// The connection is reset after the given number of body bytes.
    case reset(after: Int)
    /// Nothing follows the given number of body bytes, and the connection stays open.
    case stall(after: Int)
    /// The body is sent one byte at a time, with a pause before each byte.
    case trickle(every: Duration)
    /// The connection closes before the head.
    case closeBeforeHead
    /// The connection is reset before the head.
    case resetBeforeHead
    /// The connection stays open, and nothing is sent.
    case stallBeforeHead
    /// The connection closes in the middle of the header section.
    case cutInHead
    /// The connection is reset in the middle of the header section.
    case resetInHead
    /// The head is sent one byte at a time, with a pause before each byte. The complete body follows.
    case trickleHead(every: Duration)
    /// The header section never ends.
    case endlessHead
    /// The given bytes replace the response, then the connection closes.
    case raw(Data)
  }

  /// The status.
  public var status: HTTPResponse.Status
  /// The fields, except those that frame the body.
  public var fields: HTTPFields
  /// The body.
  public var body: Data
  /// The framing of the body.
  public var framing: Framing
  /// The end of the response.
  public var ending: Ending
  /// Interim responses (1xx) before this response.
  public var interim: [HTTPResponse]
  /// The gate that holds back the response, including its head.
  public var gate: Gate?
  /// The gate that holds back the second half of the body.
  public var bodyGate: Gate?

  /// Creates a response from its parts.
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
