public import CacheCore
internal import HTTPTypes

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
