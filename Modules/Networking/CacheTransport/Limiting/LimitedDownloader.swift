public import CacheCore
internal import HTTPTypes
private import Synchronization

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The downloader that `limitingConcurrency(_:clock:)` returns.
package struct LimitedDownloader: Downloader {
  package let id: ComponentID
  private let base: any Downloader
  private let clock: any CacheClock
  private let gate: TransferGate
  private let validity: Result<Void, CacheError>

  package init(_ base: any Downloader, limits: TransferLimits, clock: any CacheClock = SystemClock()) {
    id = ComponentID(
      Self.self,
      "\(limits.total) \(limits.perHost) \(limits.newestFirst) \(limits.maximumWaiting.map(String.init) ?? "")", around: base.id)
    self.base = base
    self.clock = clock
    gate = TransferGate(limits)
    validity = Result(catching: limits.check)
  }

  /// The number of running transfers.
  package var activeTransfers: Int { gate.active }

  /// The number of requests that wait for a slot.
  package var waitingTransfers: Int { gate.waiting }

  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    try validity.get()
    let began = clock.uptime
    let host = TransferHost.name(of: request.head)
    let (gate, priority) = (gate, request.priority)
    let slot: TransferSlot
    if let free = gate.enterWithoutWaiting(host: host, level: priority.level) {
      // Most transfers do not wait and need no task or timer.
      slot = free
    } else {
      slot = try await Deadline(limit: request.timeout, clock: clock, error: .overdue(request.timeout ?? .zero))
        .run { () async throws(CacheError) in try await gate.enter(host: host, priority: priority) }
    }
    let waited = clock.uptime - began
    do throws(CacheError) {
      var response = try await base.download(request.afterWaiting(waited)).queued(for: waited)
      if response.body.data == nil {
        response.body = ResourceBody(length: response.body.length, source: SlotBody(response.body.source, slot))
      } else {
        // All bytes have arrived.
        slot.release()
      }
      return response
    } catch {
      slot.release()
      throw error
    }
  }
}

extension Downloader {
  /// Returns this downloader with a limit on concurrent transfers, in total and per host.
  ///
  /// A transfer occupies a slot from the request until its body has ended, failed, or been cancelled or released. An unread body
  /// occupies its slot too, so a load that has one must not wait for another load of the same downloader. A request's `timeout`
  /// includes the wait.
  ///
  /// A request fails with `CacheError.Code.queueFull` if too many requests wait, and with `timedOut` if it waits longer than its
  /// timeout.
  ///
  /// ```swift
  /// let downloader = SessionDownloader().limitingConcurrency(TransferLimits(total: 16, perHost: 6))
  /// ```
  ///
  /// - Parameters:
  ///   - limits: The limits and the order of waiting requests.
  ///   - clock: The clock for the wait.
  public func limitingConcurrency(_ limits: TransferLimits, clock: any CacheClock = SystemClock()) -> some Downloader {
    LimitedDownloader(self, limits: limits, clock: clock)
  }
}

/// The limits of concurrent transfers and the order of the waiting requests.
///
/// The request with the highest `LoadPriority` starts next. Among equal priorities, ``newestFirst`` selects the newest or the
/// oldest. Every eighth free slot goes to the oldest request, regardless of its priority, so that no request waits forever. The
/// rule applies to the slots of each host and to all slots together. A request with *n* older requests before it starts after at
/// most *8 (n + 1)* free slots that its host's limit lets it use.
public struct TransferLimits: Hashable, Sendable {
  /// The maximum number of concurrent transfers, at least 1.
  public let total: Int
  /// The maximum number of concurrent transfers to one host and port, at least 1.
  public let perHost: Int
  /// Whether the newest waiting request of a priority starts first, instead of the oldest. Set it for a list that scrolls, where
  /// the newest requests are for the visible rows.
  public let newestFirst: Bool
  /// The maximum number of waiting requests, at least zero, or `nil` for no limit. A further request fails with
  /// `CacheError.Code.queueFull`.
  public let maximumWaiting: Int?

  /// Creates limits. With a number below its minimum, requests fail with `CacheError.Code.invalidConfiguration`.
  public init(total: Int = .max, perHost: Int = .max, newestFirst: Bool = false, maximumWaiting: Int? = nil) {
    self.total = total
    self.perHost = perHost
    self.newestFirst = newestFirst
    self.maximumWaiting = maximumWaiting
  }

  func check() throws(CacheError) {
    try CacheError.require("total", total, in: 1...)
    try CacheError.require("perHost", perHost, in: 1...)
    try CacheError.require("maximumWaiting", maximumWaiting, in: 0...)
  }
}

extension CacheError.Code {
  /// The code of a request that is refused because too many transfers wait. See ``TransferLimits/maximumWaiting``.
  public static let queueFull = Self(rawValue: "queueFull")
}

/// A body that occupies its transfer's slot until it has ended, failed, or been cancelled or released.
final class SlotBody: ResourceBody.Source {
  private let source: any ResourceBody.Source
  private let slot: TransferSlot

  init(_ source: any ResourceBody.Source, _ slot: TransferSlot) {
    self.source = source
    self.slot = slot
  }

  func next() async throws(CacheError) -> Data? {
    do throws(CacheError) {
      if let chunk = try await source.next() { return chunk }
      slot.release()
      return nil
    } catch {
      // A second concurrent reader is refused, and the first one continues.
      if error.code != .misuse { slot.release() }
      throw error
    }
  }

  func cancel() {
    source.cancel()
    slot.release()
  }

  var trailers: HTTPFields? { source.trailers }
}

/// A slot of a transfer. It is released once: on request, or with the last reference.
final class TransferSlot: Sendable {
  private let gate: TransferGate
  private let host: String
  private let isHeld = Atomic<Bool>(true)

  init(_ gate: TransferGate, host: String) {
    self.gate = gate
    self.host = host
  }

  deinit { release() }

  func release() {
    if isHeld.exchange(false, ordering: .acquiringAndReleasing) { gate.leave(host: host) }
  }
}

/// The host of a transfer, for limits per host.
enum TransferHost {
  /// Returns the host and port in normal form. Case and user information are ignored, and the scheme's default port is added (RFC
  /// 3986 §3.2, §6.2.2.1, §6.2.3).
  static func name(of request: HTTPRequest) -> String {
    let named = request.authority ?? ""
    var authority = HostPort.withoutUserInformation((try? HostName.ascii(authority: named)) ?? named).lowercased()
    // An empty port means the scheme's default port.
    if authority.hasSuffix(":") { authority.removeLast() }
    guard let (host, port) = HostPort.split(authority), let port = port ?? standardPort(request.scheme) else { return authority }
    return "\(host):\(port)"
  }

  private static func standardPort(_ scheme: String?) -> Int? {
    switch scheme?.lowercased() {
    case "http": 80
    case "https": 443
    default: nil
    }
  }
}

/// The downloader that `limitingBodies(to:)` returns.
package struct SizeLimitedDownloader: Downloader {
  package let id: ComponentID
  private let limit: Int64
  private let base: any Downloader

  package init(_ base: any Downloader, limit: Int64) {
    id = ComponentID(Self.self, "\(limit)", around: base.id)
    self.base = base
    self.limit = limit
  }

  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    try CacheError.require("limit", limit, in: 0...)
    var response = try await base.download(request)
    if let length = response.body.length, length > limit {
      response.body.source.cancel()
      throw .tooLarge("has \(length) bytes", limit: limit, response.head)
    }
    if response.body.data == nil {
      let source = SizeLimitedBody(response.body.source, limit: limit, response.head)
      response.body = ResourceBody(length: response.body.length, source: source)
    }
    return response
  }
}

/// A body that counts the bytes read from it.
private final class SizeLimitedBody: ResourceBody.Source {
  private let source: any ResourceBody.Source
  private let limit: Int64
  private let head: HTTPResponse
  private let received = Lock(Int64(0))

  init(_ source: any ResourceBody.Source, limit: Int64, _ head: HTTPResponse) {
    self.source = source
    self.limit = limit
    self.head = head
  }

  func next() async throws(CacheError) -> Data? {
    // A body that was too large stays failed: a further read must not return the rest.
    try check()
    guard let chunk = try await source.next() else { return nil }
    received.withLock { $0 += Int64(chunk.count) }
    try check()
    return chunk
  }

  private func check() throws(CacheError) {
    let received = received.withLock { $0 }
    guard received > limit else { return }
    source.cancel()
    throw .tooLarge("has at least \(received) bytes", limit: limit, head)
  }

  func cancel() { source.cancel() }

  var trailers: HTTPFields? { source.trailers }
}

extension CacheError {
  static func tooLarge(_ size: String, limit: Int64, _ response: HTTPResponse? = nil) -> CacheError {
    CacheError(.bodyTooLarge, reason: "the body \(size); the limit is \(limit)", response: response)
  }
}

extension Downloader {
  /// Returns this downloader with a maximum body size. The announced size is checked first, and the actual size while the body is
  /// read.
  ///
  /// ```swift
  /// let downloader = engine.limitingBodies(to: 32 << 20)
  /// ```
  ///
  /// The limit applies to the bytes that the caller receives. Around a decoding downloader, these are the decoded bytes. A larger
  /// body throws `CacheError.Code.bodyTooLarge` with both numbers, and its transfer is cancelled.
  ///
  /// - Parameter limit: The maximum body size in bytes, at least zero. With a negative number, requests fail with
  ///   `CacheError.Code.invalidConfiguration`.
  public func limitingBodies(to limit: Int64) -> some Downloader { SizeLimitedDownloader(self, limit: limit) }
}
