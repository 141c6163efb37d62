internal import CacheCore

/// A task as the waiter of a coalesced load. It pulls the events one by one, while other waiters are called back.
struct WaitingTask<Output: Shareable>: Sendable {
  private enum Step: Sendable {
    case event(CoalescedLoadEvent<Output>)
    case end(Result<Output, CacheError>)

    static func merge(_ earlier: Self, _ later: Self) -> Self? {
      guard case .event(let earlier) = earlier, case .event(let later) = later else { return nil }
      return CoalescedLoadEvent.merge(earlier, later).map { .event($0) }
    }
  }

  /// The link between the waiter and the coalesced load.
  let link: LoadTask
  /// The waiter that joins the coalesced load.
  let waiter: CoalescedLoad<Output>.Waiter
  private let channel: EventChannel<Step>

  init(_ priority: LoadPriority) {
    let channel = EventChannel<Step>(merging: Step.merge)
    self.channel = channel
    link = LoadTask(priority: priority)
    waiter = .init { message in
      switch message {
      case .post(let event): channel.send(.event(event))
      case .deliver: break
      case .end(let result): channel.finish(with: .end(result))
      case .askAlone: channel.finish()
      }
    }
  }

  /// Waits for the end of the coalesced load.
  ///
  /// - Parameter event: Called with each event. An output that it returns ends the waiting, and the coalesced load goes on.
  /// - Returns: `nil` if the outcome is for another waiter alone.
  /// - Throws: A cancellation of the calling task, which leaves the coalesced load, and what `event` throws.
  func outcome(
    _ event: (CoalescedLoadEvent<Output>) async throws(CacheError) -> Output?
  ) async throws(CacheError) -> Result<Output, CacheError>? {
    channel.onAbandon { [link] in link.cancel() }
    do throws(CacheError) {
      while let step = try await channel.next() {
        switch step {
        case .event(let happened):
          guard let enough = try await event(happened) else { continue }
          link.finish()
          return .success(enough)
        case .end(let result): return result
        }
      }
      return nil
    } catch {
      link.cancel()
      throw error
    }
  }
}
