internal import CacheCore

/// A provider of background execution time, which lets transfers complete after the app leaves the foreground. Tests replace it
/// with a fake.
///
/// ```swift
/// let downloader = SessionDownloader(backgroundTime: nil)   // transfers are suspended with the app
/// ```
public protocol BackgroundTime: Sendable {
  /// Requests background time.
  ///
  /// - Parameter expire: A closure called on any thread when the time expires. The caller of `begin` then returns it at once.
  /// - Returns: A closure that returns the time. It is called once.
  func begin(expire: @escaping @Sendable () -> Void) -> @Sendable () -> Void
}

/// Background time held while transfers run. One period lasts from the start of the first transfer to the end of the last one, or
/// until the system ends it.
final class BackgroundHold: Sendable {
  private struct State {
    var running = 0
    /// The number of the current period. It tells a late expiration from one of the current period.
    var period = 0
    var giveBack: (@Sendable () -> Void)?
  }

  private let time: (any BackgroundTime)?
  private let state = Lock(State())

  init(_ time: (any BackgroundTime)?) { self.time = time }

  /// Records the start of a transfer. The first running transfer requests background time.
  func enter() {
    guard let time else { return }
    let period: Int? = state.withLock { state in
      state.running += 1
      guard state.running == 1 else { return nil }
      state.period += 1
      return state.period
    }
    guard let period else { return }
    let giveBack = time.begin { [weak self] in self?.end(period) }
    let isOver = state.withLock { state in
      // All transfers may have ended meanwhile, or a new period may have begun.
      guard state.period == period, state.running > 0 else { return true }
      state.giveBack = giveBack
      return false
    }
    if isOver { giveBack() }
  }

  /// Records the end of a transfer. The last one returns the background time.
  func leave() {
    guard time != nil else { return }
    let giveBack: (@Sendable () -> Void)? = state.withLock { state in
      state.running -= 1
      guard state.running == 0 else { return nil }
      defer { state.giveBack = nil }
      return state.giveBack
    }
    giveBack?()
  }

  /// Returns the time that the system has reclaimed. Running transfers continue when the app does. No new period is requested
  /// until all of them have ended.
  private func end(_ period: Int) {
    let giveBack: (@Sendable () -> Void)? = state.withLock { state in
      guard state.period == period else { return nil }
      // A concurrent `enter()` that is about to store its closure sees that the period is over.
      state.period += 1
      defer { state.giveBack = nil }
      return state.giveBack
    }
    giveBack?()
  }
}

/// Background time that is requested from another provider only while the app is in the background, or when it enters it.
///
/// A request is a message to another process. An app that scrolls through images would otherwise send two for each burst of
/// transfers, although it is in the foreground and needs no time.
final class DeferredBackgroundTime: BackgroundTime {
  private struct State {
    var isInBackground = false
    var count = 0
    /// The requests that have not ended, with their expirations.
    var open: [Int: @Sendable () -> Void] = [:]
    /// The time that the provider has granted.
    var granted: [Int: @Sendable () -> Void] = [:]
  }

  private let provider: any BackgroundTime
  private let state = Lock(State())

  init(_ provider: any BackgroundTime) { self.provider = provider }

  func begin(expire: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    let (number, isInBackground) = state.withLock { state in
      state.count += 1
      state.open[state.count] = expire
      return (state.count, state.isInBackground)
    }
    if isInBackground { request(number, expire) }
    return { [self] in end(number) }
  }

  /// Requests time for all transfers that run. Call it before the app is suspended.
  func enterBackground() {
    let open = state.withLock { state in
      defer { state.isInBackground = true }
      return state.isInBackground ? [:] : state.open.filter { state.granted[$0.key] == nil }
    }
    for (number, expire) in open { request(number, expire) }
  }

  /// Time that was granted remains until the transfers end.
  func enterForeground() { state.withLock { $0.isInBackground = false } }

  private func request(_ number: Int, _ expire: @escaping @Sendable () -> Void) {
    let giveBack = provider.begin(expire: expire)
    let isNeeded = state.withLock { state in
      // The transfer may have ended, or an app that left the background and entered it again may have requested twice.
      guard state.open[number] != nil, state.granted[number] == nil else { return false }
      state.granted[number] = giveBack
      return true
    }
    if !isNeeded { giveBack() }
  }

  private func end(_ number: Int) {
    // The closures are released outside the lock.
    let (expire, giveBack) = state.withLock { ($0.open.removeValue(forKey: number), $0.granted.removeValue(forKey: number)) }
    _ = expire
    giveBack?()
  }
}

#if canImport(UIKit) && !os(watchOS)
internal import Foundation
internal import UIKit

/// The provider of background time that calls `UIApplication.beginBackgroundTask`, when the app enters the background while
/// transfers run. It does nothing in an app extension, which has no application object.
final class ApplicationBackgroundTime: BackgroundTime {
  private let time = DeferredBackgroundTime(ApplicationTask())
  private let tokens: Tokens

  /// Proof: the array is set in `init`. Only `deinit` reads it, and an observer may be removed on any thread.
  private struct Tokens: @unchecked Sendable { var all: [any NSObjectProtocol] }

  init() {
    let center = NotificationCenter.default
    // The names are text, because UIKit's constants require its main actor. UIKit posts both on the main thread, and suspends the
    // app only after the observers have returned.
    tokens = Tokens(all: [
      center.addObserver(forName: Notification.Name("UIApplicationDidEnterBackgroundNotification"), object: nil, queue: nil) {
        [weak time] _ in time?.enterBackground()
      },
      center.addObserver(forName: Notification.Name("UIApplicationWillEnterForegroundNotification"), object: nil, queue: nil) {
        [weak time] _ in time?.enterForeground()
      },
    ])
    // The system may have started the app in the background.
    Task { @MainActor [weak time] in
      if ApplicationTask.application?.applicationState == .background { time?.enterBackground() }
    }
  }

  deinit { for token in tokens.all { NotificationCenter.default.removeObserver(token) } }

  func begin(expire: @escaping @Sendable () -> Void) -> @Sendable () -> Void { time.begin(expire: expire) }
}

/// One `UIApplication.beginBackgroundTask` for each request.
private struct ApplicationTask: BackgroundTime {
  func begin(expire: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    let held = Held()
    if Thread.isMainThread {
      MainActor.assumeIsolated { held.begin(expire) }
    } else {
      Task { @MainActor in held.begin(expire) }
    }
    return { Task { @MainActor in held.end() } }
  }

  /// The identifier of the background task and whether the task is still needed. UIKit requires the main actor.
  @MainActor private final class Held {
    private var identifier: UIBackgroundTaskIdentifier?
    private var isOver = false

    nonisolated init() {}

    func begin(_ expire: @escaping @Sendable () -> Void) {
      guard !isOver, let application = ApplicationTask.application else { return }
      identifier = application.beginBackgroundTask(withName: "Etagere") { [self] in
        expire()
        // Synchronously: the system terminates an app whose expiration handler returns while the task is still open.
        MainActor.assumeIsolated { end() }
      }
    }

    func end() {
      isOver = true
      guard let number = identifier else { return }
      identifier = nil
      ApplicationTask.application?.endBackgroundTask(number)
    }
  }

  /// The application, found by selector. `UIApplication.shared` does not compile in an extension, where its use is not allowed.
  @MainActor static var application: UIApplication? {
    let shared = NSSelectorFromString("sharedApplication")
    guard !Bundle.main.bundlePath.hasSuffix(".appex"), UIApplication.responds(to: shared) else { return nil }
    return UIApplication.perform(shared)?.takeUnretainedValue() as? UIApplication
  }
}
#endif
