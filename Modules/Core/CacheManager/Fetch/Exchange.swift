internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A response on its way from a store or from the origin to its caller, with everything that a ``Resource`` or a
/// ``CachedResponse`` states about it.
///
/// A value behind a reference. Each asynchronous call on the way reserves space for it, and would copy a large value.
@dynamicMemberLookup
struct Exchange: Shareable {
  struct Parts: Sendable {
    let request: ResolvedRequest
    /// The redirect that led to this response, or `nil` if the caller's own request did.
    let hop: RedirectHop?
    /// The head for an HTTP caller. For a load, it is the stored or the received head.
    var head: HTTPResponse
    /// The body. Bytes that are already at the load's destination are not included.
    var body: ResourceBody
    /// The layer that the body came from, or the origin.
    var source: ResourceSource
    /// The `Cache-Status` of the response, without the cache's name.
    var status: CacheStatus
    /// The key under which the response is stored, or would be stored.
    var key: CacheKey
    var metadata: StoredMetadata
    /// Whether the response may be stored. A new response is stored when its body has been read.
    var isStored: Bool
    /// The outcome of revalidating a stored response.
    var validation = RevalidationOutcome.notAttempted
    /// Whether other waiters may receive the response too.
    var isShareable = true
    /// The error that caused this stale response to be served.
    var fallbackReason: CacheError?
    /// The response of the origin, or `nil` if no request was sent or the origin did not respond.
    var received: ReceivedResponse?
    /// The body that is being recorded, or `nil` if none is.
    var recording: RecordingBody?
    /// Whether the stored body was left in the durable store, because the stored transforms are sufficient.
    var isBodyLeft = false
    /// The encoded values of these transforms.
    var encoded: [String: Data] = [:]
    /// The part of the memory budget that the body uses, or `nil` if it uses none.
    var reservation: MemoryReservation?
    /// The metrics of all requests so far, or `nil` if no request was sent. All waiters share them.
    private(set) var spent: SpentMetrics?
    /// The origin of the value that is made from the body.
    var valueOrigin = ValueOrigin.original

    var metrics: TransferMetrics {
      get { spent?.metrics ?? .nothing }
      set { spent = newValue == .nothing ? nil : SpentMetrics(newValue) }
    }
  }

  // Proof of `@unchecked Sendable`: the parts change only while a single exchange refers to the storage. That also makes accesses
  // exclusive, so they need no check.
  private final class Storage: @unchecked Sendable {
    @exclusivity(unchecked) var parts: Parts

    init(_ parts: Parts) { self.parts = parts }
  }

  private var storage: Storage

  init(_ parts: Parts) { storage = Storage(parts) }

  private init(_ storage: Storage) { self.storage = storage }

  subscript<Part>(dynamicMember part: KeyPath<Parts, Part>) -> Part { storage.parts[keyPath: part] }

  subscript<Part>(dynamicMember part: WritableKeyPath<Parts, Part>) -> Part {
    get { storage.parts[keyPath: part] }
    _modify {
      if !isKnownUniquelyReferenced(&storage) { storage = copied() }
      yield &storage.parts[keyPath: part]
    }
  }

  /// Makes several changes, which cost as much as one: each checks whether the storage is shared.
  mutating func change(_ change: (inout Parts) -> Void) {
    if !isKnownUniquelyReferenced(&storage) { storage = copied() }
    change(&storage.parts)
  }

  /// Out of line, because each asynchronous function would reserve memory for a copy of the parts at every change.
  @inline(never)
  private func copied() -> Storage { Storage(storage.parts) }

  /// Returns a copy that `change` has changed.
  @inline(never)
  func with(_ change: (inout Parts) -> Void) -> Exchange {
    let storage = copied()
    change(&storage.parts)
    return Exchange(storage)
  }

  var isShareable: Bool { storage.parts.isShareable }
  var isBodyLeft: Bool { storage.parts.isBodyLeft }

  /// The bytes, or no bytes if the body is not in memory.
  var data: Data { storage.parts.body.data ?? Data() }

  /// The URL from which the bytes came.
  var url: URL {
    let (request, hop) = (storage.parts.request, storage.parts.hop)
    let url = hop?.url ?? request.url
    guard storage.parts.received == nil else { return url }
    return request.origin(of: storage.parts.metadata, for: hop?.request ?? request.head, at: url)
  }

  /// The URLs that redirected, in order.
  var redirects: [URL] { storage.parts.hop?.chain ?? [] }

  // MARK: The end of a load

  /// Replaces the body that was being recorded by the result of reading it to its end.
  mutating func complete(with recording: RecordingBody.Recording) {
    change {
      $0.recording = nil
      if recording.data == nil || $0.body.data == nil { $0.body = recording.data.map { ResourceBody($0) } ?? .none }
      if !$0.isStored {
        $0.metadata.bodyLength = recording.count
      } else if let metadata = recording.metadata, $0.validation != .notModified {
        // A copy under another variant does not have the metadata that was confirmed.
        $0.metadata = metadata
      }
    }
  }

  /// Returns the response at the end of a chain of redirects. A chain is only as shareable as its least shareable hop, and its
  /// metrics are the sum of all hops.
  func following(_ redirects: [Exchange]) -> Exchange {
    with {
      let spent = redirects.reduce(TransferMetrics.nothing) { $0.followed(by: $1.metrics) }
      $0.isShareable = $0.isShareable && redirects.allSatisfy(\.isShareable)
      $0.metrics = spent.followed(by: $0.metrics)
      $0.metrics.redirects += redirects.count
    }
  }

  /// Whether a stored response is used past its freshness, without a confirmation by the origin.
  private func isPastFreshness(at now: Timestamp) -> Bool {
    switch storage.parts.source {
    case .memory, .disk: now >= storage.parts.metadata.freshness.freshUntil
    case .revalidated, .network, .schemeHandler: false
    }
  }

  func resource<Value: Sendable>(_ value: Value, clock: any CacheClock, startedAt start: Duration) -> Resource<Value> {
    let now = clock.now
    return Resource(
      value: value, url: url, redirects: redirects, response: self.metadata.response, source: self.source,
      validation: self.validation, age: self.metadata.freshness.age(at: now), isStale: isPastFreshness(at: now),
      fallbackReason: self.fallbackReason, duration: clock.uptime - start, spent: self.spent, key: self.key,
      revision: self.metadata.revision, valueOrigin: self.valueOrigin)
  }
}

/// A value that was made from the bytes of a load.
struct TransformedOutcome<Value: Sendable>: Shareable {
  var value: Value
  var outcome: Exchange

  var isShareable: Bool { outcome.isShareable }
}

/// The head from the origin, with the request that was sent.
final class ReceivedResponse: Sendable {
  let sent: HTTPRequest
  let content: RequestContent
  let response: DownloadResponse
  let requestTime: Timestamp
  /// The uptime at which the request was sent.
  let start: Duration
  let timeToHead: Duration
  let retry: RetryState
  /// The part of the memory budget that the body uses, or `nil` if it is not counted.
  let reservation: MemoryReservation?
  /// The number of the transfer in events.
  let transfer: Int
  /// The status code. It is read once, because each reading parses it.
  let status: Int

  init(
    sent: HTTPRequest, content: RequestContent, response: DownloadResponse, requestTime: Timestamp, start: Duration,
    timeToHead: Duration, retry: RetryState, reservation: MemoryReservation?, transfer: Int
  ) {
    (self.sent, self.content, self.response, self.requestTime) = (sent, content, response, requestTime)
    (self.start, self.timeToHead, self.retry, self.reservation) = (start, timeToHead, retry, reservation)
    (self.transfer, status) = (transfer, response.head.status.code)
  }

  var head: HTTPResponse { response.head }

  /// The cost of the response and of the requests before it. It is complete once the body has ended.
  func metrics(at uptime: Duration) -> TransferMetrics {
    retry.total(with: transferMetrics(at: uptime))
  }

  /// The cost of this response alone.
  func transferMetrics(at uptime: Duration) -> TransferMetrics {
    response.metrics().completed(timeToHead: timeToHead, total: uptime - start)
  }

  /// Returns the time at which the head arrived. If the downloader has collected the body, that was before now. Otherwise a
  /// response with a slow body would count as later than one that the origin sent after it.
  func timeOfHead(_ now: Timestamp) -> Timestamp {
    guard response.body.data != nil else { return now }
    let metrics = response.metrics()
    guard metrics.attempts <= 1, let total = metrics.total, let timeToHead = metrics.timeToHead else { return now }
    return max(requestTime, now - max(.zero, total - timeToHead - (metrics.queued ?? .zero)))
  }
}

/// Metrics behind a reference, because they are large and each stage of a load would copy them.
final class SpentMetrics: Sendable {
  let metrics: TransferMetrics

  init(_ metrics: TransferMetrics) { self.metrics = metrics }
}

extension TransferMetrics {
  /// The metrics of a response for which no request was sent.
  static let nothing = TransferMetrics(attempts: 0)

  /// Returns the metrics with the manager's durations in place of those that the engine does not measure.
  ///
  /// - Parameters:
  ///   - timeToHead: The time from the call of the downloader to the head.
  ///   - total: The time from that call until now.
  func completed(timeToHead: Duration, total: Duration) -> TransferMetrics {
    var metrics = self
    metrics.timeToHead = metrics.timeToHead ?? max(.zero, timeToHead - (metrics.queued ?? .zero))
    metrics.total = metrics.total ?? total
    metrics.attempts = max(1, metrics.attempts)
    return metrics
  }

  /// Returns the cost of this transfer and the one after it together.
  ///
  /// Counts and durations are added. The properties of one response (``timeToHead``, the protocol, the connection) are those of
  /// the later response, if a request was sent for it.
  func followed(by later: TransferMetrics) -> TransferMetrics {
    guard attempts > 0 else { return later }
    guard later.attempts > 0 else { return self }
    return TransferMetrics(
      queued: Self.sum(queued, later.queued), nameLookup: Self.sum(nameLookup, later.nameLookup),
      connect: Self.sum(connect, later.connect), tls: Self.sum(tls, later.tls), timeToHead: later.timeToHead,
      total: Self.sum(total, later.total), bytesOnWire: bytesOnWire + later.bytesOnWire,
      bytesDecoded: bytesDecoded + later.bytesDecoded, protocolName: later.protocolName,
      isReusedConnection: later.isReusedConnection, redirects: redirects + later.redirects,
      attempts: attempts + later.attempts)
  }

  private static func sum(_ a: Duration?, _ b: Duration?) -> Duration? {
    guard let a else { return b }
    return a + (b ?? .zero)
  }
}
