#if canImport(UIKit) && !os(watchOS)
internal import CacheCore
internal import Foundation
internal import UIKit

/// The provider of background time that calls `UIApplication.beginBackgroundTask`. It does nothing in an app extension, which has
/// no application object.
struct ApplicationBackgroundTime: BackgroundTime {
  func begin(expire: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    let held = Held()
    Task { @MainActor in held.begin(expire) }
    return { Task { @MainActor in held.end() } }
  }

  /// The identifier of the background task and whether the task is still needed. UIKit requires the main actor.
  @MainActor private final class Held {
    private var identifier: UIBackgroundTaskIdentifier?
    private var isOver = false

    nonisolated init() {}

    func begin(_ expire: @escaping @Sendable () -> Void) {
      guard !isOver, let application = Self.application else { return }
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
      Self.application?.endBackgroundTask(number)
    }

    /// The application, found by selector. `UIApplication.shared` does not compile in an extension, where its use is not allowed.
    private static var application: UIApplication? {
      let shared = NSSelectorFromString("sharedApplication")
      guard !Bundle.main.bundlePath.hasSuffix(".appex"), UIApplication.responds(to: shared) else { return nil }
      return UIApplication.perform(shared)?.takeUnretainedValue() as? UIApplication
    }
  }
}
#endif
