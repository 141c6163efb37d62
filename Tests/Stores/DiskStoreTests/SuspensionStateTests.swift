import CacheCore
import CacheTesting
import Testing

@testable import DiskStore

extension SuspensionState {
  fileprivate mutating func enter(at uptime: Duration = .zero, isWaiting: Bool = false) -> Entry {
    enter(isWaiting: isWaiting, at: uptime).0
  }
}

@Suite("Disk store: when locks are held on a system that suspends processes")
struct SuspensionStateTests {
  private typealias Entry = SuspensionState.Entry
  private typealias Actions = SuspensionState.Actions

  /// Returns the state of an app in the foreground that has the locks, without jobs.
  private func foreground() -> SuspensionState {
    var state = SuspensionState()
    _ = state.enteredForeground()
    return state
  }

  /// Returns the state in which the system has granted time to one job in the background.
  private func protected() -> SuspensionState {
    var state = SuspensionState()
    _ = state.enter()
    _ = state.granted(1)
    #expect(state.enter(isWaiting: true) == .takeLocks)
    #expect(state.took(true, at: .zero).0 == .full)
    return state
  }

  @Test("a request that no job waits for is over after the limit, and the end of the last job hands back the locks")
  func unanswered() async throws {
    let phone = SuspendingSystem()
    var system = phone.system
    system.replyLimit = .milliseconds(20)
    let flag = SuspensionGate.Flag()
    let isHandedBack = Lock(false)
    let gate = SuspensionGate(system, flag, handBack: { isHandedBack.withLock { $0 = true } }, take: { true })
    phone.send(.foreground)
    let entry = gate.enter()
    #expect(entry == .full)
    phone.set { $0.reply = .none }
    phone.send(.background)
    #expect(phone.current.activities.count == 1)
    try await Polling.until { flag.isSet }
    #expect(!isHandedBack.withLock { $0 })
    gate.leave(entry)
    #expect(isHandedBack.withLock { $0 })
  }

  @Test("granted time is not given up")
  func answered() {
    var state = protected()
    #expect(state.unanswered(1, at: .zero) == Actions())
    #expect(state.phase == .protected)
  }

  @Test("in the foreground, jobs run without a request, and the locks stay")
  func jobsInForeground() {
    var state = foreground()
    #expect(state.enter() == .full)
    #expect(state.leave(.full) == Actions())
    #expect(state.locks == .held)
    #expect(!state.refusesChanges)
  }

  @Test("an app that leaves the foreground hands the locks back at once if no job runs")
  func leavingIdle() {
    var state = foreground()
    #expect(state.enteredBackground() == Actions(handsBack: true))
    #expect(state.phase == .background)
    #expect(state.refusesChanges)
  }

  @Test("an app that leaves the foreground asks for time for the jobs that run, and hands the locks back after the last one")
  func leavingBusy() {
    var state = foreground()
    for _ in 0..<2 { #expect(state.enter() == .full) }
    #expect(state.enteredBackground() == Actions(asks: 1))
    #expect(state.leave(.full) == Actions())
    #expect(!state.refusesChanges)
    #expect(state.leave(.full) == Actions(handsBack: true))
    // The reply comes too late, so the activity ends after the first check that finds no job.
    #expect(state.granted(1) == Actions(wakes: true))
    #expect(state.endIfIdle(1) == (false, Actions()))
    #expect(state.endIfIdle(1) == (true, Actions()))
    #expect(state.phase == .background)
  }

  @Test("the first job in the background hands back the locks that opening took, asks for time, and takes them again")
  func firstJob() {
    var state = SuspensionState()
    #expect(state.enter(isWaiting: false, at: .zero) == (.ask(1), Actions(handsBack: true)))
    #expect(state.enter() == .wait(1))
    #expect(state.granted(1) == Actions(wakes: true))
    #expect(state.enter(isWaiting: true) == .takeLocks)
    #expect(state.enter(isWaiting: true) == .wait(nil))
    #expect(state.took(true, at: .zero) == (.full, Actions(wakes: true)))
    #expect(state.enter(isWaiting: true) == .full)
    #expect(state.holders == 2)
  }

  @Test("an activity ends when no job has entered between two checks, and jobs that follow each other share it")
  func idle() {
    var state = protected()
    #expect(state.leave(.full) == Actions())
    #expect(state.endIfIdle(1) == (false, Actions()))
    #expect(state.enter() == .full)
    #expect(state.leave(.full) == Actions())
    #expect(state.endIfIdle(1) == (false, Actions()))
    #expect(state.endIfIdle(1) == (true, Actions(handsBack: true)))
    #expect(state.enter() == .ask(2))
  }

  @Test("after the time is over, running jobs keep the locks, new ones only read, and the last one hands the locks back")
  func expiry() {
    var state = protected()
    #expect(state.expired(1, at: .zero) == Actions(wakes: true))
    #expect(state.refusesChanges)
    #expect(state.enter() == .reading(epoch: 1))
    #expect(state.locks == .held)
    #expect(state.leave(.full) == Actions(handsBack: true, ends: 1))
    #expect(state.leave(.reading(epoch: 1)) == Actions())
    #expect((state.holders, state.readers) == (0, 0))
  }

  @Test("after the time is over and the last job has ended, a job asks again, at most once a second")
  func askingAgain() {
    var state = protected()
    _ = state.expired(1, at: .seconds(5))
    _ = state.leave(.full)
    #expect(state.enter(at: .milliseconds(5_999)) == .reading(epoch: 1))
    #expect(state.enter(at: .seconds(6)) == .ask(2))
    #expect(state.expired(2, at: .seconds(6)) == Actions(wakes: true))
    #expect(state.enter(at: .seconds(6), isWaiting: true) == .reading(epoch: 1))
    #expect(state.locks == .handedBack)
  }

  @Test("a job that began to read counts once the locks are taken again")
  func readerBecomesHolder() {
    var state = SuspensionState()
    _ = state.enter()
    _ = state.expired(1, at: .zero)
    let reader = state.enter(isWaiting: true)
    #expect(reader == .reading(epoch: 0))
    _ = state.enteredForeground()
    #expect(state.enter() == .takeLocks)
    _ = state.took(true, at: .zero)
    #expect(state.leave(.full) == Actions())
    #expect(state.enteredBackground() == Actions(asks: 2))
    #expect(state.leave(reader) == Actions(handsBack: true))
  }

  @Test("jobs only read for a second if the locks cannot be taken")
  func stuckLocks() {
    var state = foreground()
    _ = state.enteredBackground()
    _ = state.enteredForeground()
    #expect(state.enter() == .takeLocks)
    #expect(state.took(false, at: .seconds(1)) == (.reading(epoch: 0), Actions(wakes: true)))
    #expect(state.enter(at: .milliseconds(1_999)) == .reading(epoch: 0))
    #expect(state.enter(at: .seconds(2)) == .takeLocks)
  }

  @Test("an activity that the system begins after the app has returned ends at once")
  func lateGrant() {
    var state = SuspensionState()
    _ = state.enter()
    #expect(state.enteredForeground() == Actions(wakes: true))
    #expect(state.granted(1) == Actions(ends: 1))
    #expect(state.expired(1, at: .zero) == Actions())
    #expect(state.phase == .foreground)
  }

  @Test("an app that returns ends the activity, and its jobs go on")
  func returning() {
    var state = protected()
    #expect(state.enteredForeground() == Actions(ends: 1, wakes: true))
    #expect(state.endIfIdle(1) == (true, Actions()))
    #expect(state.leave(.full) == Actions())
    #expect(state.locks == .held)
  }

  @Test(
    "whatever the order of events, no lock is held while the process can be suspended and no job finishes its change",
    arguments: 0..<20 as Range<UInt64>)
  func anyOrder(seed: UInt64) {
    var generator = SeededGenerator(state: seed)
    var state = SuspensionState()
    var running: [Entry] = []
    var (waiting, takers, asked) = (0, 0, 0 as UInt64)
    _ = state.enter().waits ? waiting += 1 : ()
    asked = 1
    for step in 0..<5_000 {
      let uptime = Duration.milliseconds(step * 100)
      switch Int.random(in: 0..<9, using: &generator) {
      case 0, 1, 2:
        let isWaiting = waiting > 0 && Bool.random(using: &generator)
        if isWaiting { waiting -= 1 }
        switch state.enter(at: uptime, isWaiting: isWaiting) {
        case .full: running.append(.full)
        case .reading(let epoch): running.append(.reading(epoch: epoch))
        case .takeLocks: takers += 1
        case .ask(let number): (waiting, asked) = (waiting + 1, number)
        case .wait: waiting += 1
        }
      case 3, 4: if let entry = running.popLast() { _ = state.leave(entry) }
      case 5:
        if takers > 0 {
          takers -= 1
          running.append(state.took(Bool.random(using: &generator), at: uptime).0)
        }
      case 6: if let number = (state.enteredBackground() as Actions).asks { asked = number }
      case 7: _ = Bool.random(using: &generator) ? state.enteredForeground() : state.expired(asked, at: uptime)
      default: _ = Bool.random(using: &generator) ? state.granted(asked) : state.endIfIdle(asked).1
      }
      let isAwake = state.phase == .foreground || state.phase == .protected
      #expect(state.locks != .held || isAwake || state.holders > 0)
      #expect(state.phase != .background || state.locks == .handedBack && state.holders == 0)
      #expect(state.holders + state.readers == running.count + takers)
      #expect((state.locks == .beingTaken) == (takers == 1))
    }
  }
}

extension SuspensionState.Entry {
  /// Whether the job enters again later.
  fileprivate var waits: Bool {
    switch self {
    case .ask, .wait: true
    case .full, .reading, .takeLocks: false
    }
  }
}

private func == <First: Equatable, Second: Equatable>(one: (First, Second), other: (First, Second)) -> Bool {
  one.0 == other.0 && one.1 == other.1
}
