#if canImport(UIKit) && !targetEnvironment(macCatalyst)
internal import Foundation
internal import UIKit
#endif

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
