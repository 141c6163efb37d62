#if canImport(UIKit) && !os(watchOS)
internal import CacheCore
internal import Foundation
internal import UIKit

/// The background time of `UIApplication.beginBackgroundTask`. In an app extension, which has no application object, it does
/// nothing.
struct ApplicationBackgroundTime: BackgroundTime {
  func begin(expire: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    let held = Held()
    Task { @MainActor in held.begin(expire) }
    return { Task { @MainActor in held.end() } }
  }

  /// The task's number, once it is known, and whether it is needed no more. On the main actor alone, as UIKit wants it.
  @MainActor private final class Held {
    private var identifier: UIBackgroundTaskIdentifier?
    private var isOver = false

    nonisolated init() {}

    func begin(_ expire: @escaping @Sendable () -> Void) {
      guard !isOver, let application = Self.application else { return }
      identifier = application.beginBackgroundTask(withName: "Etagere") { [self] in
        expire()
        // Here and now: the system ends an app that leaves the handler with the task still open.
        MainActor.assumeIsolated { end() }
      }
    }

    func end() {
      isOver = true
      guard let number = identifier else { return }
      identifier = nil
      Self.application?.endBackgroundTask(number)
    }

    /// By name: `UIApplication.shared` does not compile in an extension, where asking for it is not allowed.
    private static var application: UIApplication? {
      let shared = NSSelectorFromString("sharedApplication")
      guard !Bundle.main.bundlePath.hasSuffix(".appex"), UIApplication.responds(to: shared) else { return nil }
      return UIApplication.perform(shared)?.takeUnretainedValue() as? UIApplication
    }
  }
}
#endif
