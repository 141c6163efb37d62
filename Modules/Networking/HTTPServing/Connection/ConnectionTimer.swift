#if Server
import NIOCore

/// The deadlines of one connection: `.read` for bytes from the client, and `.write` for the client to take bytes. Both use one
/// timer of the event loop, which is rescheduled when it fires or when an earlier deadline is set. So an event usually costs one
/// reading of the clock.
final class ConnectionTimer {
  enum Kind { case read, write }

  /// Called on the event loop when a deadline has passed.
  var onTime: () -> Void = {}

  private let eventLoop: any EventLoop
  private var readDue: NIODeadline?
  private var writeDue: NIODeadline?
  private var timer: (scheduled: Scheduled<Void>, due: NIODeadline)?
  private var isStopped = false

  init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  /// Sets a deadline, counted from now.
  func set(_ kind: Kind, in time: TimeAmount) {
    let due = eventLoop.now + time
    switch kind {
    case .read: readDue = due
    case .write: writeDue = due
    }
    if timer.map({ due < $0.due }) ?? true { schedule(due) }
  }

  /// Sets a deadline, counted from now, unless it is set.
  func start(_ kind: Kind, in time: TimeAmount) {
    if !isSet(kind) { set(kind, in: time) }
  }

  /// Returns whether there is a deadline, passed or not.
  func isSet(_ kind: Kind) -> Bool { (kind == .read ? readDue : writeDue) != nil }

  /// Removes a deadline.
  func clear(_ kind: Kind) {
    switch kind {
    case .read: readDue = nil
    case .write: writeDue = nil
    }
  }

  /// Returns whether a deadline has passed.
  func isDue(_ kind: Kind) -> Bool {
    (kind == .read ? readDue : writeDue).map { $0 <= eventLoop.now } ?? false
  }

  /// Stops the timer for good.
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
