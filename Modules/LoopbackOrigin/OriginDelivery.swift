#if Origin
public import CacheTesting
public import HTTPTypes

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
#endif
