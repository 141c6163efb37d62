#if Origin
  public import HTTPTypes

  /// When and how an answer travels: delays, gates, framing, and what goes wrong on the way.
  public struct OriginDelivery: Sendable {
    /// An answer that comes before the final one, such as 103 Early Hints.
    public struct Interim: Sendable, Hashable {
      /// 1xx.
      public var status: HTTPResponse.Status
      /// The header fields.
      public var fields: HTTPFields

      /// 103 with `Link` fields, say.
      public init(_ status: HTTPResponse.Status = .earlyHints, fields: HTTPFields = [:]) {
        (self.status, self.fields) = (status, fields)
      }
    }

    /// Sent at once, in order, before any gate or delay of the final answer.
    public var interim: [Interim]
    /// Holds the answer before its head, until the test opens it.
    public var gate: OriginGate?
    /// Waited before the head, after the gate.
    public var headDelay: Duration
    /// Waited between head and body.
    public var bodyDelay: Duration
    /// Holds the answer after `bodyGateOffset` body bytes: head and those bytes are sent, the rest waits for the test.
    public var bodyGate: OriginGate?
    /// In body bytes; see `bodyGate`.
    public var bodyGateOffset: Int
    /// How the end of the body is told.
    public var framing: OriginFraming
    /// What goes wrong. It applies to whatever is sent, a 304 too.
    public var fault: OriginFault?
    /// Whether the answer says `Connection: close` and the connection is closed after it.
    public var closesAfterwards: Bool

    /// Everything is optional; the default is an ordinary answer at once.
    public init(
      interim: [Interim] = [], gate: OriginGate? = nil, headDelay: Duration = .zero, bodyDelay: Duration = .zero,
      bodyGate: OriginGate? = nil, bodyGateOffset: Int = 0, framing: OriginFraming = .contentLength, fault: OriginFault? = nil,
      closesAfterwards: Bool = false
    ) {
      (self.interim, self.gate, self.headDelay, self.bodyDelay) = (interim, gate, headDelay, bodyDelay)
      (self.bodyGate, self.bodyGateOffset, self.framing, self.fault) = (bodyGate, bodyGateOffset, framing, fault)
      self.closesAfterwards = closesAfterwards
    }

    /// An answer that fails in this way.
    public static func fault(_ fault: OriginFault) -> Self { Self(fault: fault) }

    /// An answer that waits at this gate before its head.
    public static func gated(by gate: OriginGate) -> Self { Self(gate: gate) }

    /// An answer in chunks of so many bytes, without a length.
    public static func chunked(of size: Int = 16_384) -> Self { Self(framing: .chunked(of: size)) }
  }
#endif
