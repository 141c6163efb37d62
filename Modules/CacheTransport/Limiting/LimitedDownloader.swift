public import CacheCore
internal import HTTPTypes

/// A downloader that runs only so many transfers at the same time, in all and to one host.
///
/// ```swift
/// let downloader = SessionDownloader().limitingConcurrency(TransferLimits(total: 16, perHost: 6))
/// ```
///
/// A slot is held from the request until the body has ended, failed, been cancelled or let go of. Who keeps an unread body keeps
/// its slot, so a load must not wait for another one of the same downloader while it does. A request's `timeout` counts the wait.
public struct LimitedDownloader: Downloader {
  public let id: ComponentID
  /// How many, and who is next.
  public let limits: TransferLimits
  private let base: any Downloader
  private let clock: any CacheClock
  private let gate: TransferGate

  /// A downloader with slots of its own; copies share them.
  ///
  /// - Parameters:
  ///   - base: who transfers.
  ///   - limits: how many, and who is next.
  ///   - clock: measures how long it waited, and runs the request's `timeout` meanwhile.
  public init(_ base: any Downloader, limits: TransferLimits, clock: any CacheClock = SystemClock()) {
    id = ComponentID(
      Self.self,
      "\(limits.total) \(limits.perHost) \(limits.order) \(limits.maximumWaiting.map(String.init) ?? "")", around: base.id)
    self.base = base
    self.limits = limits
    self.clock = clock
    gate = TransferGate(limits)
  }

  /// Transfers that run now.
  public var activeTransfers: Int { gate.active }

  /// Requests that wait for their turn.
  public var waitingTransfers: Int { gate.waiting }

  public var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  /// - Throws: `CacheError.Code.queueFull` when too many wait, `timedOut` when the request's time is over before its turn, else
  ///   what the wrapped downloader throws.
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    let began = clock.uptime
    let host = TransferHost.name(of: request.head)
    let (gate, priority) = (gate, request.priority)
    let slot: TransferSlot
    if let free = gate.enterAtOnce(host: host, level: priority.level) {
      // Most transfers: no tasks and no timer for a wait that there is none of.
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
        // All bytes are here already.
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
  /// This downloader, with only so many transfers at the same time.
  ///
  /// - Parameters:
  ///   - limits: how many, and who is next.
  ///   - clock: measures how long it waited.
  public func limitingConcurrency(_ limits: TransferLimits, clock: any CacheClock = SystemClock()) -> LimitedDownloader {
    LimitedDownloader(self, limits: limits, clock: clock)
  }
}
