internal import CacheCore
internal import Synchronization

/// The observer of one load.
///
/// Every piece of work of a load retains the load's ``ResolvedRequest``, and with it this object. It is therefore released when
/// all work has ended. This includes work after the result: a commit to a slow store, a revalidation, or a body that an HTTP
/// caller reads.
final class LoadObservation: Sendable {
  let observer: any LoadObserver
  private let id: LoadID
  private let isStarted = Atomic(false)

  init(_ observer: any LoadObserver, of id: LoadID) {
    self.observer = observer
    self.id = id
  }

  deinit { if isStarted.load(ordering: .acquiring) { observer.observe(.workEnded, of: id) } }

  func observe(_ event: CacheEvent) {
    if case .started = event { isStarted.store(true, ordering: .releasing) }
    observer.observe(event, of: id)
  }

  /// Returns a number that the events of one transfer share.
  static func makeTransferNumber() -> Int { lastTransfer.wrappingAdd(1, ordering: .relaxed).newValue }

  private static let lastTransfer = Atomic(0)
}
