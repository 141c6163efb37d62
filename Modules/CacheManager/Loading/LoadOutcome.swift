internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The bytes of a load, with everything that a ``Resource`` states about them.
///
/// A class, because every stage at the end of a load passes it on.
@dynamicMemberLookup
final class LoadOutcome: Shareable {
  struct Parts: Sendable {
    var data: Data
    var metadata: StoredMetadata
    var key: CacheKey
    var url: URL
    var redirects: [URL] = []
    var source: ResourceSource
    var validation: RevalidationOutcome
    var metrics = TransferMetrics.nothing
    var isShareable = true
    /// The error that caused this stale response to be served.
    var fallbackReason: CacheError?
    /// Whether the response may be stored.
    var isStored = true
    /// Whether the bytes were left in the durable store, because the stored transforms are enough.
    var isBodyLeft = false
    /// The encoded values of these transforms.
    var encoded: [String: Data] = [:]
    /// The origin of the value.
    var valueOrigin = ValueOrigin.original
    /// The part of the memory budget that ``data`` uses, or `nil` if it uses none.
    var reservation: MemoryReservation?
  }

  private let parts: Parts

  init(_ parts: Parts) { self.parts = parts }

  var isShareable: Bool { parts.isShareable }
  var isBodyLeft: Bool { parts.isBodyLeft }

  /// Returns a copy that `change` has changed.
  func with(_ change: (inout Parts) -> Void) -> LoadOutcome {
    var changed = parts
    change(&changed)
    return LoadOutcome(changed)
  }

  /// Returns the outcome at the end of a chain of redirects. A chain is only as shareable as its least shareable hop, and its
  /// metrics are the sum of all hops.
  func following(_ redirects: [LoadOutcome]) -> LoadOutcome {
    with {
      let spent = redirects.reduce(TransferMetrics.nothing) { $0.followed(by: $1.metrics) }
      $0.isShareable = $0.isShareable && redirects.allSatisfy(\.isShareable)
      $0.metrics = spent.followed(by: $0.metrics)
      $0.metrics.redirects += redirects.count
    }
  }

  subscript<Part>(dynamicMember part: KeyPath<Parts, Part>) -> Part { parts[keyPath: part] }

  /// Whether a stored response is used past its freshness, without a confirmation by the origin.
  private func isPastFreshness(at now: Timestamp) -> Bool {
    switch parts.source {
    case .memory, .disk: now >= parts.metadata.freshness.freshUntil
    case .revalidated, .network, .schemeHandler: false
    }
  }

  func resource<Value: Sendable>(_ value: Value, clock: any CacheClock, startedAt start: Duration) -> Resource<Value> {
    let now = clock.now
    return Resource(
      value: value, url: parts.url, redirects: parts.redirects, response: parts.metadata.response, source: parts.source,
      validation: parts.validation, age: parts.metadata.freshness.age(at: now), isStale: isPastFreshness(at: now),
      fallbackReason: parts.fallbackReason,
      duration: clock.uptime - start, metrics: parts.metrics, key: parts.key,
      revision: parts.metadata.revision, valueOrigin: parts.valueOrigin)
  }
}

/// A value that was made from the bytes of a load.
struct TransformedOutcome<Value: Sendable>: Shareable {
  var value: Value
  var outcome: LoadOutcome

  var isShareable: Bool { outcome.isShareable }
}

/// Measures the transfers of one load from all its sources, including those that failed.
final class TransferMeter: Sendable {
  private struct State {
    /// The metrics of the responses. Their bodies may still be arriving.
    var responses: [@Sendable () -> TransferMetrics] = []
    /// The number of requests without a response.
    var withoutResponse = 0
  }

  private let clock: any CacheClock
  private let startedAt: Duration
  private let state = Lock(State())

  init(_ clock: any CacheClock) {
    self.clock = clock
    startedAt = clock.uptime
  }

  /// Returns the same request with a downloader that this meter measures.
  func metering(_ load: ResolvedRequest) -> ResolvedRequest {
    guard let downloader = load.downloader else { return load }
    return load.with { $0.downloader = MeteredDownloader(base: downloader, account: self) }
  }

  /// The cost of all transfers so far: counts, and the time since the load began.
  var spent: TransferMetrics {
    let (responses, withoutResponse) = state.withLock { ($0.responses, $0.withoutResponse) }
    // The closures belong to the engine, so they are called outside the lock.
    var spent = responses.reduce(TransferMetrics.nothing) { spent, measured in
      var metrics = measured()
      metrics.attempts = max(1, metrics.attempts)
      return spent.followed(by: metrics)
    }
    spent.attempts += withoutResponse
    if spent.attempts > 0 { spent.total = clock.uptime - startedAt }
    return spent
  }

  fileprivate func note(_ response: DownloadResponse) { state.withLock { $0.responses.append(response.metrics) } }

  fileprivate func note(_ error: CacheError, attempt: Int) {
    guard !Self.unsent.contains(error.code) else { return }
    let sent = max(1, (error.attempt ?? attempt) - attempt + 1)
    state.withLock { $0.withoutResponse += sent }
  }

  /// The errors for which no request was sent.
  private static let unsent: Set<CacheError.Code> = [.networkRestricted, .retryLater, .unsupportedScheme, .invalidURL]
}

/// A downloader whose requests are measured.
private struct MeteredDownloader: Downloader {
  let base: any Downloader
  let account: TransferMeter

  var id: ComponentID { base.id }
  var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    do throws(CacheError) {
      let response = try await base.download(request)
      account.note(response)
      return response
    } catch {
      account.note(error, attempt: request.attempt)
      throw error
    }
  }
}

extension TransferMetrics {
  /// The metrics of a response for which no request was sent.
  static let nothing = TransferMetrics(attempts: 0)

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
