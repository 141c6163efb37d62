internal import CacheCore
internal import Dispatch
internal import Synchronization

#if canImport(UIKit) && !targetEnvironment(macCatalyst)
internal import Foundation
internal import UIKit
#endif

/// The gate that every job of the disk executor passes on a system that suspends processes; see ``SuspensionState``.
final class SuspensionGate: Sendable {
  private struct State {
    var decisions = SuspensionState()
    /// The jobs that wait for a change of the state.
    var waiters: [DispatchSemaphore] = []
    /// The activities that the system performs, by number.
    var activities: [UInt64: DispatchSemaphore] = [:]

    /// Returns the semaphore for which a job waits, if it has to.
    mutating func wait(_ entry: SuspensionState.Entry) -> DispatchSemaphore? {
      switch entry {
      case .full, .reading, .takeLocks: return nil
      case .ask, .wait:
        let turn = DispatchSemaphore(value: 0)
        waiters.append(turn)
        return turn
      }
    }
  }

  /// Whether changes are refused, for readers that must not wait for a lock.
  final class Flag: Sendable {
    private let value = Atomic<Bool>(false)

    var isSet: Bool {
      get { value.load(ordering: .acquiring) }
      set { value.store(newValue, ordering: .releasing) }
    }
  }

  private let state = Lock(State())
  private let system: SuspensionSystem
  private let flag: Flag
  /// Releases the locks. It does not wait.
  private let handBack: @Sendable () -> Void
  /// Takes the locks again in the steps of opening the folder, and returns whether that succeeded.
  private let take: @Sendable () -> Bool
  private let observation = Lock<(any Sendable)?>(nil)

  init(
    _ system: SuspensionSystem, _ flag: Flag, handBack: @escaping @Sendable () -> Void, take: @escaping @Sendable () -> Bool
  ) {
    (self.system, self.flag, self.handBack, self.take) = (system, flag, handBack, take)
    let token = system.observe { [weak self] notice in
      guard let self else { return }
      switch notice {
      case .foreground: update { $0.enteredForeground() }
      case .background: update { $0.enteredBackground() }
      }
    }
    observation.withLock { $0 = token }
  }

  private var uptime: Duration { SystemClock().uptime }

  // MARK: Jobs

  /// Returns when a job may begin. It is called on a thread that may wait.
  func enter() -> SuspensionState.Entry {
    var isWaiting = false
    while true {
      let uptime = uptime
      let (entry, turn) = change { state in
        let (entry, actions) = state.decisions.enter(isWaiting: isWaiting, at: uptime)
        return ((entry, state.wait(entry)), actions)
      }
      switch entry {
      case .full, .reading: return entry
      case .takeLocks:
        let isSuccess = take()
        return change { state in state.decisions.took(isSuccess, at: self.uptime) }
      case .ask(let number):
        ask(number)
        wait(turn, for: number)
      case .wait(let number): wait(turn, for: number)
      }
      isWaiting = true
    }
  }

  /// Ends a job and begins the next one of the same thread, which may need another permission.
  func renew(_ entry: SuspensionState.Entry) -> SuspensionState.Entry {
    if case .full = entry, !flag.isSet { return entry }
    leave(entry)
    return enter()
  }

  func leave(_ entry: SuspensionState.Entry) { update { $0.leave(entry) } }

  /// Runs a job.
  func pass<Result>(_ job: () -> Result) -> Result {
    let entry = enter()
    defer { leave(entry) }
    return job()
  }

  /// Waits for a change of the state, but not without limit for the reply to a request.
  private func wait(_ turn: DispatchSemaphore?, for number: UInt64?) {
    guard let turn else { return }
    guard let number else { return turn.wait() }
    guard turn.wait(timeout: .now() + system.replyLimit.timeInterval) == .timedOut else { return }
    giveUp(number)
  }

  private func giveUp(_ number: UInt64) {
    let uptime = uptime
    update { $0.unanswered(number, at: uptime) }
  }

  // MARK: Activities

  private func ask(_ number: UInt64) {
    system.perform { [self] isExpired in
      if isExpired {
        let uptime = uptime
        update { $0.expired(number, at: uptime) }
      } else {
        perform(number)
      }
    }
  }

  /// Keeps the time that the system has granted until no job needs it.
  private func perform(_ number: UInt64) {
    let end = DispatchSemaphore(value: 0)
    state.withLock { $0.activities[number] = end }
    update { $0.granted(number) }
    while end.wait(timeout: .now() + system.idleInterval.timeInterval) == .timedOut {
      if change({ state in state.decisions.endIfIdle(number) }) { break }
    }
    state.withLock { _ = $0.activities.removeValue(forKey: number) }
  }

  // MARK: Changes of the state

  private func update(_ event: (inout SuspensionState) -> SuspensionState.Actions) {
    change { state in ((), event(&state.decisions)) }
  }

  /// Changes the state and carries out the actions that follow.
  private func change<Result>(_ event: (inout State) -> (Result, SuspensionState.Actions)) -> Result {
    var waiters: [DispatchSemaphore] = []
    var request: UInt64?
    let result = state.withLock { state in
      let (result, actions) = event(&state)
      flag.isSet = state.decisions.refusesChanges
      // Before another job can take the locks again.
      if actions.handsBack { handBack() }
      if let number = actions.ends { state.activities[number]?.signal() }
      if actions.wakes { swap(&waiters, &state.waiters) }
      request = actions.asks
      return result
    }
    for waiter in waiters { waiter.signal() }
    if let request {
      ask(request)
      // No job waits for this reply.
      DispatchQueue.global().asyncAfter(deadline: .now() + system.replyLimit.timeInterval) { [weak self] in self?.giveUp(request)
      }
    }
    return result
  }
}

extension Duration {
  fileprivate var timeInterval: DispatchTimeInterval { .nanoseconds(Int(clamping: saturatedNanoseconds)) }
}

/// The calls of a system that suspends processes. A test replaces them.
package struct SuspensionSystem: Sendable {
  package enum Notice: Hashable, Sendable { case foreground, background }

  /// Calls a handler when the app enters the foreground or the background, until the returned value is released.
  package var observe: @Sendable (_ handler: @escaping @Sendable (Notice) -> Void) -> any Sendable
  /// Asks for time, and calls the activity on another thread. `false` begins the time, which lasts until the activity returns.
  /// `true` means that there is no time, or that it is over.
  package var perform: @Sendable (_ activity: @escaping @Sendable (_ isExpired: Bool) -> Void) -> Void
  /// The container of this process, which no other process uses.
  package var home: String?
  /// The time between two checks for idleness, after which an activity ends.
  package var idleInterval = Duration.milliseconds(50)
  /// The time for which jobs wait for a reply of the system.
  package var replyLimit = Duration.seconds(2)

  package init(
    observe: @escaping @Sendable (_ handler: @escaping @Sendable (Notice) -> Void) -> any Sendable,
    perform: @escaping @Sendable (_ activity: @escaping @Sendable (_ isExpired: Bool) -> Void) -> Void, home: String? = nil
  ) {
    (self.observe, self.perform, self.home) = (observe, perform, home)
  }

  /// Whether another process can use a folder. The system ends no process for locks in its own container.
  func canShare(_ folder: String) -> Bool {
    guard let home = home.flatMap({ try? Paths.resolved($0) }), home != "/" else { return true }
    return folder != home && !folder.hasPrefix("\(home)/")
  }
}

#if canImport(UIKit) && !targetEnvironment(macCatalyst)
extension SuspensionSystem {
  /// The system of this process. Its calls are also allowed in an app extension.
  static let current: SuspensionSystem? = SuspensionSystem(
    observe: { AppObserver($0) },
    perform: { ProcessInfo.processInfo.performExpiringActivity(withReason: "Etagere", using: $0) },
    home: NSHomeDirectory())
}

/// The registration for the notifications of an app, which an extension does not receive.
private final class AppObserver: Sendable {
  // Proof of `@unchecked Sendable`: the tokens are set once in `init` and only read in `deinit`.
  private struct Tokens: @unchecked Sendable { let all: [any NSObjectProtocol] }

  // By name, because the constants belong to different classes on watchOS, whose names begin with "WK". A system posts none of
  // the other names.
  private static let names: [(String, SuspensionSystem.Notice)] = ["UI", "WK"].flatMap { prefix in
    [
      ("\(prefix)ApplicationWillEnterForegroundNotification", .foreground),
      ("\(prefix)ApplicationDidBecomeActiveNotification", .foreground),
      ("\(prefix)ApplicationDidEnterBackgroundNotification", .background),
    ]
  }

  private let tokens: Tokens

  init(_ handler: @escaping @Sendable (SuspensionSystem.Notice) -> Void) {
    tokens = Tokens(
      all: Self.names.map { name, notice in
        NotificationCenter.default.addObserver(forName: Notification.Name(name), object: nil, queue: nil) { _ in
          handler(notice)
        }
      })
    #if !os(watchOS)
    // An app that is on screen already is told only when it returns to the screen.
    Task { @MainActor in
      if let application = Self.application, application.applicationState != .background { handler(.foreground) }
    }
    #endif
  }

  #if !os(watchOS)
  /// The application, found by selector. `UIApplication.shared` does not compile in an extension, where its use is not allowed.
  @MainActor private static var application: UIApplication? {
    let shared = NSSelectorFromString("sharedApplication")
    guard !Bundle.main.bundlePath.hasSuffix(".appex"), UIApplication.responds(to: shared) else { return nil }
    return UIApplication.perform(shared)?.takeUnretainedValue() as? UIApplication
  }
  #endif

  deinit { for token in tokens.all { NotificationCenter.default.removeObserver(token) } }
}
#else
extension SuspensionSystem {
  /// There is no such system: Linux and macOS do not suspend a process on their own, also not one of Mac Catalyst.
  static var current: SuspensionSystem? { nil }
}
#endif
