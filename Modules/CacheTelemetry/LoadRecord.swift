public import CacheCore

/// A record of one load: its start, its result and its phases. It is delivered when all work of the load has ended.
public struct LoadRecord: Sendable {
  /// The identifier of the load.
  public var load: LoadID
  /// The URL of the load.
  public var url: LoadURL
  /// The time at which the load started.
  public var startedAt: Timestamp
  /// The time from the start to the result.
  public var duration: Duration
  /// The source of the result, or `nil` if there is none.
  public var source: ResourceSource?
  /// The error because of which the result is a stored response that could not be confirmed, or `nil`.
  public var fallbackReason: CacheError?
  /// The error of the load. A cancellation is not a failure.
  public var error: CacheError?
  /// The load that this one joined. That load has the transfer in its record.
  public var joined: LoadID?
  /// Whether a store satisfied the load without waiting.
  public var isHit = false
  /// The phases of the load. Requests are in the order in which they were sent. The other phases are inserted in the
  /// order in which they ended. Phases can overlap. They can end after the result: a background revalidation, a commit
  /// to a slow store, a body that an HTTP caller still reads.
  public var phases: [Phase] = []

  /// Creates a record from its parts, for tests.
  public init(
    load: LoadID, url: LoadURL, startedAt: Timestamp, duration: Duration, source: ResourceSource? = nil,
    fallbackReason: CacheError? = nil, error: CacheError? = nil, joined: LoadID? = nil, isHit: Bool = false, phases: [Phase] = []
  ) {
    self.load = load
    self.url = url
    self.startedAt = startedAt
    self.duration = duration
    self.source = source
    self.fallbackReason = fallbackReason
    self.error = error
    self.joined = joined
    self.isHit = isHit
    self.phases = phases
  }

  /// A timed part of a load.
  public struct Phase: Sendable {
    /// The offset of the phase from the start of the load.
    public var start: Duration
    /// The duration of the phase.
    public var duration: Duration
    /// The kind of work and its details.
    public var work: Work

    /// Creates a phase from its parts, for tests.
    public init(start: Duration, duration: Duration, work: Work) {
      self.start = start
      self.duration = duration
      self.work = work
    }
  }

  /// The work of a phase.
  public enum Work: Sendable {
    /// A request to the origin, from the call of the downloader to the last byte of the body.
    case transfer(Transfer)
    /// The creation of a value, or the decoding of a stored value.
    case transform(ValueOrigin)
    /// The commit of an entry to the durable store, with its number of bytes.
    case store(bytes: Int64)
  }

  /// A request to the origin and its response.
  public struct Transfer: Sendable {
    /// The URL of the request, which changes with a redirect.
    public var url: LoadURL
    /// Whether the request revalidates a stored response.
    public var isConditional: Bool
    /// The status of the response, or `nil` if none was received.
    public var status: Int?
    /// The metrics of the transfer.
    public var metrics: TransferMetrics
    /// The error of the transfer.
    public var error: CacheError?

    /// Creates a transfer from its parts, for tests.
    public init(
      url: LoadURL, isConditional: Bool, status: Int? = nil, metrics: TransferMetrics = TransferMetrics(),
      error: CacheError? = nil
    ) {
      self.url = url
      self.isConditional = isConditional
      self.status = status
      self.metrics = metrics
      self.error = error
    }
  }

  /// The requests of the load and their responses, in the order of the requests.
  public var transfers: [Transfer] {
    phases.compactMap { phase in
      if case .transfer(let transfer) = phase.work { transfer } else { nil }
    }
  }

  /// The number of body bytes received from the network.
  public var bytesOnWire: Int64 { transfers.reduce(0) { $0 + $1.metrics.bytesOnWire } }
}
