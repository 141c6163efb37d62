#if Origin
public import CacheTesting
public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The timing of a response, its framing and its faults.
public struct OriginDelivery: Sendable {
  /// An interim response, such as 103 Early Hints.
  public struct Interim: Sendable, Hashable {
    /// The status, which is 1xx.
    public var status: HTTPResponse.Status
    /// The header fields.
    public var fields: HTTPFields

    /// Creates an interim response, for example a 103 with `Link` fields.
    public init(_ status: HTTPResponse.Status = .earlyHints, fields: HTTPFields = [:]) {
      (self.status, self.fields) = (status, fields)
    }
  }

  /// The interim responses, sent in order before any gate or delay of the final response.
  public var interim: [Interim]
  /// A gate that blocks the response before its head.
  public var gate: Gate?
  /// The delay before the head, after the gate.
  public var headDelay: Duration
  /// The delay between the head and the body.
  public var bodyDelay: Duration
  /// A gate that blocks the response after `bodyGateOffset` body bytes. The head and those bytes are sent before.
  public var bodyGate: Gate?
  /// The position of `bodyGate` in body bytes.
  public var bodyGateOffset: Int
  /// The framing of the body.
  public var framing: OriginFraming
  /// The fault, or `nil` for none. It applies to every response, including a 304.
  public var fault: OriginFault?
  /// Whether the response has `Connection: close` and the connection is closed after it.
  public var closesAfterwards: Bool

  /// Creates a delivery. By default the response is sent completely and without delay.
  public init(
    interim: [Interim] = [], gate: Gate? = nil, headDelay: Duration = .zero, bodyDelay: Duration = .zero,
    bodyGate: Gate? = nil, bodyGateOffset: Int = 0, framing: OriginFraming = .contentLength, fault: OriginFault? = nil,
    closesAfterwards: Bool = false
  ) {
    (self.interim, self.gate, self.headDelay, self.bodyDelay) = (interim, gate, headDelay, bodyDelay)
    (self.bodyGate, self.bodyGateOffset, self.framing, self.fault) = (bodyGate, bodyGateOffset, framing, fault)
    self.closesAfterwards = closesAfterwards
  }

  /// Creates a delivery with a fault.
  public static func fault(_ fault: OriginFault) -> Self { Self(fault: fault) }

  /// Creates a delivery that waits at a gate before the head.
  public static func gated(by gate: Gate) -> Self { Self(gate: gate) }

  /// Creates a delivery in chunks of the given size in bytes, without a length.
  public static func chunked(of size: Int = 16_384) -> Self { Self(framing: .chunked(of: size)) }
}

/// A fault in a response. Byte counts refer to body bytes, without chunk headers.
public enum OriginFault: Sendable, Hashable {
  /// The connection is closed in an orderly way before the first byte of the response.
  case closeBeforeHead
  /// The connection is closed in the middle of the header section, after the status line and half of the field bytes.
  case closeMidHead
  /// The connection is reset (RST) at the position of `closeMidHead`.
  case resetMidHead
  /// Header fields are sent without end, as fast as the client reads them.
  case endlessHead
  /// The head is sent one byte at a time, with the given pause after each. The body follows normally.
  case trickleHead(every: Duration)
  /// The body is sent one byte at a time, with the given pause after each. It is never silent and practically never complete.
  case trickle(every: Duration)
  /// The connection is closed after the given number of body bytes. With chunks it is closed in the middle of a chunk. The last
  /// chunk is never sent, even if the number covers the whole body.
  case cut(afterBodyBytes: Int)
  /// The connection is reset (RST) before the first byte of the response.
  case resetBeforeHead
  /// The connection is reset (RST) after the given number of body bytes. A reset discards bytes that the origin's kernel has not
  /// yet sent to the client. Use at most a few hundred KB.
  case reset(afterBodyBytes: Int)
  /// No byte is sent. The connection stays open until the client or `stop()` closes it.
  case stallBeforeHead
  /// No more bytes are sent after the given number of body bytes. The connection stays open.
  case stall(afterBodyBytes: Int)
  /// A chunk with an invalid size follows the given number of body bytes. Then the connection is closed. Chunks are used
  /// regardless of `framing`.
  case malformedChunk(afterBodyBytes: Int)
  /// The complete response is followed by these unannounced bytes. The connection stays open in an invalid state.
  case surplus(Data)
  /// The connection is closed after a complete response that promised to keep it open. The client's next request fails on it.
  case closeAfterwards
  /// Bytes that no HTTP parser accepts are sent instead of the response. Then the connection is closed.
  case garbage
  /// These bytes are sent instead of the response. If `thenCloses` is `false`, the connection stays open for the next request.
  case raw(Data, thenCloses: Bool = true)
}

/// The method that marks the end of a body (RFC 9112 §6).
public enum OriginFraming: Sendable, Hashable {
  /// `Content-Length` with the actual length.
  case contentLength
  /// `Content-Length` with the given length in bytes, which may be false. The connection is closed after a body of another
  /// length. If the body is longer, all of it is sent.
  case claimedLength(Int)
  /// `Transfer-Encoding: chunked`, in chunks of the given size in bytes (at least 1). For an HTTP/1.0 client it is `untilClose`.
  case chunked(of: Int = 16_384)
  /// Neither of both: the body ends with the connection.
  case untilClose
}
#endif
