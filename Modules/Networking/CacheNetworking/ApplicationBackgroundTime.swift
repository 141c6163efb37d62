#if canImport(UIKit) && !os(watchOS)
internal import CacheCore
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
