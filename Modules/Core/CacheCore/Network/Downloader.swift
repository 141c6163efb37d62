public import HTTPTypes
internal import Synchronization

/// A request to a downloader for a single exchange. Wrappers around the downloader handle redirects, retries, size limits and
/// resumption.
public struct DownloadRequest: Sendable {
  /// The method, the URL and the fields that are sent.
  public var head: HTTPRequest
  /// The content to send, as a stream. It can be read only once, so a repeated request needs a new body.
  public var body: ResourceBody?
  /// The priority, which may rise while the request waits or runs.
  public var priority: LoadPriority
  /// The maximum time without received data, or `nil` for the engine's default.
  public var idleTimeout: Duration?
  /// The maximum duration of the whole exchange, from the call to the end of the body, or `nil` for no limit. Wrappers pass on
  /// the time that is left. With zero or less, the exchange fails with ``CacheError/Code/timedOut``.
  public var timeout: Duration?
  /// The networks that may be used. A request that needs another network fails with ``CacheError/Code/networkRestricted``. Only
  /// Apple platforms distinguish networks.
  public var networkAccess: NetworkAccess
  /// The number of this request for the resource, counted from 1.
  public var attempt: Int
  /// The largest body, in bytes, that the downloader may collect before it returns, or 0 to return at the head.
  ///
  /// A caller that needs the whole body then waits once for both, and reads ``ResourceBody/data``. It is a permission, which a
  /// downloader may ignore. A downloader that uses it still returns at the head in these cases:
  /// - The length of the body is unknown or greater.
  /// - The response is not successful (2xx) or is a part (206), because its reader may reject it at the head.
  ///
  /// It may also return any body up to this size that has already arrived completely. If a body fails while it is collected, the
  /// response is returned with the bytes so far as a stream, which then throws the error.
  public var collectUpTo: Int
  /// Receives each interim response (1xx) before the final one, in order, or `nil` to drop them. The closure must not block.
  ///
  /// An interim response has no part in the final one, and none is ever stored (RFC 9110 §15.2). An engine that does not see
  /// interim responses never calls it. It is called for each attempt, and can be called just after the download was cancelled.
  public var onInterimResponse: (@Sendable (HTTPResponse) -> Void)?

  /// Creates a request.
  public init(
    head: HTTPRequest, body: ResourceBody? = nil, priority: LoadPriority = LoadPriority(), idleTimeout: Duration? = nil,
    timeout: Duration? = nil, networkAccess: NetworkAccess = .all, attempt: Int = 1, collectUpTo: Int = 0
  ) {
    self.head = head
    self.body = body
    self.priority = priority
    self.idleTimeout = idleTimeout
    self.timeout = timeout
    self.networkAccess = networkAccess
    self.attempt = attempt
    self.collectUpTo = collectUpTo
  }
}

extension HTTPResponse {
  /// Whether a downloader that uses ``DownloadRequest/collectUpTo`` returns this response at the end of its body.
  ///
  /// - Parameters:
  ///   - limit: The largest body, in bytes, that the downloader may collect.
  ///   - length: The length of the body in bytes, or `nil` if it is unknown.
  package func isCollected(upTo limit: Int, length: Int64?) -> Bool {
    guard limit > 0, let length, (0...Int64(limit)).contains(length) else { return false }
    return length == 0 || status.kind == .successful && status != .partialContent
  }
}

extension CacheError {
  /// The error for a body that ended too early.
  ///
  /// - Parameters:
  ///   - received: The number of bytes that were received.
  ///   - expected: The number of bytes that the head announced, or `nil` if it announced none.
  package static func truncated(received: Int64, expected: Int64?, underlying: (any Error)? = nil) -> CacheError {
    let reason =
      if let expected {
        "the body ended after \(received) of \(expected) bytes"
      } else {
        "the body was cut off after \(received) bytes"
      }
    return CacheError(.truncatedBody, reason: reason, underlying: underlying)
  }

  /// The error for a body with more bytes than the head announced.
  package static func overlong(expected: Int64) -> CacheError {
    CacheError(.malformedResponse, reason: "the body is longer than the announced \(expected) bytes")
  }
}

/// A downloader's response, returned as soon as its header arrives, or with its whole body (``DownloadRequest/collectUpTo``). To
/// reject it, cancel its body without reading it.
public struct DownloadResponse: Sendable {
  /// The status and the fields. If the engine decoded the body (`Content-Encoding`), the fields describe the decoded bytes.
  public var head: HTTPResponse
  /// The body. It throws ``CacheError/Code/truncatedBody`` if it is shorter than announced.
  public var body: ResourceBody
  /// Returns the metrics so far. They are complete when the body has ended.
  public var metrics: @Sendable () -> TransferMetrics

  /// Creates a response.
  public init(
    head: HTTPResponse, body: ResourceBody, metrics: @escaping @Sendable () -> TransferMetrics = { TransferMetrics() }
  ) {
    self.head = head
    self.body = body
    self.metrics = metrics
  }
}

/// An HTTP engine that sends one request and returns one response. Any status is a response, including 304 and 404. It does not
/// follow redirects.
///
/// ```swift
/// struct Greeting: Downloader {
///   let id = ComponentID(Greeting.self)
///
///   func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
///     DownloadResponse(head: HTTPResponse(status: .ok), body: ResourceBody(Data("hello".utf8)))
///   }
/// }
/// configuration.schemeHandlers["greeting"] = Greeting()
/// ```
///
/// A download ends with ``CacheError/cancelled`` when the calling task is cancelled. Its errors contain no URL, because the
/// caller knows it.
public protocol Downloader: Component {
  /// Sends the request and returns when the header of the response has arrived, or when its body has
  /// (``DownloadRequest/collectUpTo``).
  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse

  /// The executor on which a load that uses this engine runs best, or `nil` for the cooperative pool. The default is `nil`.
  ///
  /// An engine returns the executor on which its responses arrive, so that they do not change threads. It is read once for each
  /// load. A wrapper returns the executor of its base.
  var preferredExecutor: (any TaskExecutor)? { get }
}

extension Downloader {
  public var preferredExecutor: (any TaskExecutor)? { nil }
}

/// The measurements of a transfer, or of a chain of transfers. They mean the same for every engine.
///
/// A duration is `nil` if the step was not measured or did not occur. A reused connection, for example, needs no name lookup and
/// no handshake.
public struct TransferMetrics: Hashable, Sendable {
  /// The time before the request was sent, while it waited for a limit or for a free connection.
  public var queued: Duration?
  /// The duration of the host name lookup.
  public var nameLookup: Duration?
  /// The duration of the connection setup, including TLS.
  public var connect: Duration?
  /// The duration of the TLS handshake, which is part of ``connect``.
  public var tls: Duration?
  /// The time from the start of the request, after ``queued``, to the first byte of the response.
  public var timeToHead: Duration?
  /// The time from the call to the last byte of the body, or `nil` before that.
  public var total: Duration?
  /// The number of body bytes on the network, before content decoding, if the engine knows it.
  public var bytesOnWire: Int64
  /// The number of body bytes after content decoding.
  public var bytesDecoded: Int64
  /// The ALPN name of the protocol (RFC 7301): `http/1.1`, `h2` or `h3`.
  public var protocolName: String?
  /// Whether an existing connection was reused.
  public var isReusedConnection: Bool?
  /// The number of redirects that were followed.
  public var redirects: Int
  /// The number of requests that were sent for this response. It is 1 without retries.
  public var attempts: Int

  /// Creates metrics.
  public init(
    queued: Duration? = nil, nameLookup: Duration? = nil, connect: Duration? = nil, tls: Duration? = nil,
    timeToHead: Duration? = nil, total: Duration? = nil, bytesOnWire: Int64 = 0, bytesDecoded: Int64 = 0,
    protocolName: String? = nil, isReusedConnection: Bool? = nil, redirects: Int = 0, attempts: Int = 1
  ) {
    self.queued = queued
    self.nameLookup = nameLookup
    self.connect = connect
    self.tls = tls
    self.timeToHead = timeToHead
    self.total = total
    self.bytesOnWire = bytesOnWire
    self.bytesDecoded = bytesDecoded
    self.protocolName = protocolName
    self.isReusedConnection = isReusedConnection
    self.redirects = redirects
    self.attempts = attempts
  }
}

/// The priority of a load. It is a shared handle: it may be raised while the request waits or runs.
public final class LoadPriority: Sendable {
  /// The levels of priority.
  public enum Level: Int, Sendable, Hashable, Comparable, CaseIterable {
    /// The lowest level. The views of CacheUI use it for an image that is no longer visible.
    case veryLow
    /// The highest level that a prefetch has.
    case low
    /// The level of a load by default.
    case normal
    /// A level above the default.
    case high
    /// The highest level.
    case veryHigh

    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
  }

  /// The registration of an observer. It ends with ``cancel()`` or when the observation is released.
  public final class Observation: Sendable {
    private let priority: LoadPriority
    private let id: UInt64

    fileprivate init(_ priority: LoadPriority, _ id: UInt64) { (self.priority, self.id) = (priority, id) }

    deinit { cancel() }

    /// Removes the observer and releases it, in O(1). Later calls do nothing.
    ///
    /// A raise that is already running may still call the observer once.
    public func cancel() {
      let observer = priority.state.withLock { $0.observers.removeValue(forKey: id) }
      // Release the observer outside the lock, because its captured values may run their own code.
      withExtendedLifetime(observer) {}
    }
  }

  private struct State {
    var lastID: UInt64 = 0
    var observers: [UInt64: @Sendable (Level) -> Void] = [:]
  }

  private let state = Lock(State())
  /// The raw value of the level, which changes under the lock.
  private let rawLevel: Atomic<Int>

  /// Creates a priority that starts at `level`.
  public init(_ level: Level = .normal) { rawLevel = Atomic(level.rawValue) }

  /// The current level.
  public var level: Level { Level(rawValue: rawLevel.load(ordering: .acquiring)) ?? .normal }

  /// The number of observers.
  package var observers: Int { state.withLock { $0.observers.count } }

  /// Raises the level. It never lowers the level, because other loads may wait for the same transfer.
  ///
  /// It returns after all observers were called in the order of registration.
  public func raise(to level: Level) {
    let observers: [UInt64: @Sendable (Level) -> Void] = state.withLock { state in
      guard level > self.level else { return [:] }
      rawLevel.store(level.rawValue, ordering: .releasing)
      return state.observers
    }
    for (_, observer) in observers.sorted(by: { $0.key < $1.key }) { observer(level) }
  }

  /// Calls `observer` with the new level on each raise, until the observation ends.
  ///
  /// Keep the observation while the observer is needed. The closure must not capture the observation's owner strongly.
  ///
  /// - Parameter observer: The closure to call, without a lock held, on the thread that raises the level. Concurrent raises may
  ///   call it in either order, so it must ignore a level below an earlier one.
  public func onRaise(_ observer: @escaping @Sendable (Level) -> Void) -> Observation {
    let id = state.withLock { state in
      state.lastID += 1
      state.observers[state.lastID] = observer
      return state.lastID
    }
    return Observation(self, id)
  }
}

/// A set of restricted networks that a request may use in addition to the unrestricted ones.
public struct NetworkAccess: OptionSet, Hashable, Sendable {
  /// The bits of the set, one for each kind.
  public let rawValue: UInt8

  /// Creates a set from its bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Cellular networks.
  public static let cellular = NetworkAccess(rawValue: 1)
  /// Networks that the system considers expensive, such as cellular networks and personal hotspots.
  public static let expensive = NetworkAccess(rawValue: 2)
  /// Networks for which the user has turned on Low Data Mode.
  public static let constrained = NetworkAccess(rawValue: 4)
  /// All networks.
  public static let all: NetworkAccess = [.cellular, .expensive, .constrained]
}

extension NetworkAccess: CustomStringConvertible {
  /// The names of the networks in brackets.
  public var description: String {
    names([(.cellular, "cellular"), (.expensive, "expensive"), (.constrained, "constrained")])
  }
}
