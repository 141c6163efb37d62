/// The decisions of a ``SuspensionGate``, without their effects.
///
/// A process that is suspended with a lock on a file in a shared container is ended by the system. The store therefore has its
/// locks only while the process cannot be suspended: in the foreground, or during an activity for which the system granted time.
struct SuspensionState: Sendable {
  enum Phase: Hashable, Sendable {
    /// The app is on screen, so the system does not suspend it.
    case foreground
    /// The system can suspend the process at any time. The locks are handed back before this phase begins.
    case background
    /// The system was asked for time and has not replied.
    case asking
    /// The system has granted time.
    case protected
    /// The time is over or was refused. The locks are handed back when the last job that began earlier ends.
    case expired
  }

  enum Locks: Hashable, Sendable { case held, handedBack, beingTaken }

  /// The permission with which a job runs, or the step that it must take first.
  enum Entry: Hashable, Sendable {
    /// The job may change the folder.
    case full
    /// The job may only read, unless the locks are taken before it ends.
    case reading(epoch: UInt64)
    /// The job may change the folder once it has taken the locks again. It reports the outcome to ``took(_:at:)``.
    case takeLocks
    /// The job asks the system for time, and then waits.
    case ask(UInt64)
    /// The job waits for a change of the state, and then enters again. The number is that of the unanswered request, if any.
    case wait(UInt64?)
  }

  /// The effects that follow an event.
  struct Actions: Hashable, Sendable {
    /// The locks are released now.
    var handsBack = false
    /// The system is asked for time, with this number.
    var asks: UInt64?
    /// The activity with this number ends.
    var ends: UInt64?
    /// The waiting jobs enter again.
    var wakes = false
  }

  /// The minimum time between two requests after one was refused, and between two attempts to take the locks.
  static let retryInterval = Duration.seconds(1)

  private(set) var phase = Phase.background
  /// Opening the folder takes the locks.
  private(set) var locks = Locks.held
  /// The jobs that may change the folder.
  private(set) var holders = 0
  /// The jobs that entered while changes were refused.
  private(set) var readers = 0
  private var waiting = 0
  /// The number of times that changes became possible again. Readers of an earlier epoch count as holders.
  private var epoch: UInt64 = 0
  /// The number of the last request for time.
  private var serial: UInt64 = 0
  /// The number of the activity that the system performs, if any.
  private var activity: UInt64?
  private var entries: UInt64 = 0
  private var entriesSeen: UInt64 = 0
  private var nextRequest = Duration.zero
  private var nextAttempt = Duration.zero

  /// Whether jobs must not take a lock. Jobs that began earlier finish the change that they are in.
  var refusesChanges: Bool { locks != .held || phase == .expired }

  // MARK: Jobs

  /// Decides how a job begins.
  ///
  /// - Parameter isWaiting: Whether the job has waited.
  mutating func enter(isWaiting: Bool, at uptime: Duration) -> (Entry, Actions) {
    if isWaiting { waiting -= 1 }
    entries &+= 1
    switch phase {
    case .foreground, .protected: return (enterAwake(at: uptime), Actions())
    case .asking:
      waiting += 1
      return (.wait(serial), Actions())
    case .background: break
    case .expired:
      // An activity that has expired ends with the jobs that it protects.
      if uptime < nextRequest || holders > 0 { return (read(), Actions()) }
    }
    waiting += 1
    let actions = ask()
    return (.ask(serial), actions)
  }

  private mutating func enterAwake(at uptime: Duration) -> Entry {
    switch locks {
    case .held:
      holders += 1
      return .full
    case .beingTaken:
      waiting += 1
      return .wait(nil)
    case .handedBack:
      guard uptime >= nextAttempt else { return read() }
      locks = .beingTaken
      holders += 1
      return .takeLocks
    }
  }

  private mutating func read() -> Entry {
    readers += 1
    return .reading(epoch: epoch)
  }

  /// Begins to wait for the system's reply.
  private mutating func ask() -> Actions {
    phase = .asking
    serial &+= 1
    return settled()
  }

  /// Notes whether a job that was told to take the locks has them.
  ///
  /// - Returns: The permission with which that job runs.
  mutating func took(_ isSuccess: Bool, at uptime: Duration) -> (Entry, Actions) {
    var entry = Entry.full
    if isSuccess {
      locks = .held
      if !refusesChanges { admitReaders() }
    } else {
      (locks, nextAttempt) = (.handedBack, uptime + Self.retryInterval)
      holders -= 1
      entry = read()
    }
    var actions = settled()
    actions.wakes = true
    return (entry, actions)
  }

  mutating func leave(_ entry: Entry) -> Actions {
    if case .reading(epoch) = entry { readers -= 1 } else { holders -= 1 }
    return settled()
  }

  /// Lets the jobs count that only read until now, because they can take locks from now on.
  private mutating func admitReaders() {
    epoch &+= 1
    (holders, readers) = (holders + readers, 0)
  }

  // MARK: The system

  /// Notes that the system performs the activity with this number.
  mutating func granted(_ number: UInt64) -> Actions {
    guard phase == .asking, number == serial else { return Actions(ends: number) }
    (phase, activity) = (.protected, number)
    // The jobs that asked have not entered again yet, so the activity does not end before the next check for idleness.
    entriesSeen = entries &- 1
    var actions = settled()
    actions.wakes = true
    return actions
  }

  /// Notes that the system has refused time or has ended it.
  mutating func expired(_ number: UInt64, at uptime: Duration) -> Actions {
    guard number == serial, phase == .asking || phase == .protected else { return Actions() }
    (phase, nextRequest) = (.expired, uptime + Self.retryInterval)
    var actions = settled()
    actions.wakes = true
    return actions
  }

  /// Notes that the system has not replied in time to the request with this number.
  mutating func unanswered(_ number: UInt64, at uptime: Duration) -> Actions {
    phase == .asking ? expired(number, at: uptime) : Actions()
  }

  /// Ends the activity if no job has entered since the last call.
  ///
  /// - Returns: Whether the activity is over.
  mutating func endIfIdle(_ number: UInt64) -> (Bool, Actions) {
    guard activity == number else { return (true, Actions()) }
    guard phase == .protected, holders == 0, waiting == 0, entries == entriesSeen else {
      entriesSeen = entries
      return (false, Actions())
    }
    (phase, activity) = (.background, nil)
    return (true, settled())
  }

  mutating func enteredForeground() -> Actions {
    let wasRefusing = refusesChanges
    phase = .foreground
    if wasRefusing, !refusesChanges { admitReaders() }
    (nextRequest, nextAttempt) = (.zero, .zero)
    var actions = settled()
    actions.wakes = true
    return actions
  }

  mutating func enteredBackground() -> Actions {
    guard phase == .foreground else { return Actions() }
    guard holders > 0 || waiting > 0 else {
      phase = .background
      return settled()
    }
    var actions = ask()
    actions.asks = serial
    return actions
  }

  /// Returns the effects of the current state: locks that no job needs are handed back unless the process cannot be suspended,
  /// and an activity that is not needed any more ends.
  private mutating func settled() -> Actions {
    var actions = Actions()
    let isAwake = phase == .foreground || phase == .protected
    if holders == 0, locks == .held, !isAwake {
      locks = .handedBack
      actions.handsBack = true
    }
    if let activity, phase == .foreground || phase == .expired && holders == 0 {
      actions.ends = activity
      self.activity = nil
    }
    return actions
  }
}
