#if Gateway
import NIOCore

/// How long a client may still take, for what is read and for what is written. One timer of the event loop, set anew when it
/// fires, or when something is due before that: as a rule an event costs a look at the clock.
final class ConnectionTimer {
  enum Kind { case read, write }

  /// Called on the event loop when a time has passed.
  var onTime: () -> Void = {}

  private let eventLoop: any EventLoop
  private var readDue: NIODeadline?
  private var writeDue: NIODeadline?
  private var timer: (scheduled: Scheduled<Void>, due: NIODeadline)?
  private var isStopped = false

  init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  /// From now on so long.
  func set(_ kind: Kind, in time: TimeAmount) {
    let due = eventLoop.now + time
    switch kind {
    case .read: readDue = due
    case .write: writeDue = due
    }
    if timer.map({ due < $0.due }) ?? true { schedule(due) }
  }

  /// There is nothing to wait for.
  func clear(_ kind: Kind) {
    switch kind {
    case .read: readDue = nil
    case .write: writeDue = nil
    }
  }

  /// Whether that time has passed.
  func isDue(_ kind: Kind) -> Bool {
    (kind == .read ? readDue : writeDue).map { $0 <= eventLoop.now } ?? false
  }

  /// It is over.
  func stop() {
    isStopped = true
    (readDue, writeDue, onTime) = (nil, nil, {})
    timer?.scheduled.cancel()
    timer = nil
  }

  private func schedule(_ due: NIODeadline) {
    guard !isStopped else { return }
    timer?.scheduled.cancel()
    timer = (eventLoop.assumeIsolated().scheduleTask(deadline: due) { self.fire() }, due)
  }

  private func fire() {
    timer = nil
    if isDue(.read) || isDue(.write) { onTime() }
    guard let next = [readDue, writeDue].compactMap({ $0 }).min() else { return }
    schedule(max(next, eventLoop.now + .milliseconds(10)))
  }
}
#endif
