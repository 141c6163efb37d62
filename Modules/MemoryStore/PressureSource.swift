#if canImport(Darwin)
private import Dispatch
private import Foundation
#endif

#if canImport(Darwin)
/// Trims a store when the system runs short of memory, or the app goes to the background. Holds it weakly.
final class PressureSource: Sendable {
  // Proof of `@unchecked Sendable`: both are set once in `init` and only read in `deinit`.
  private struct Registration: @unchecked Sendable {
    let source: any DispatchSourceMemoryPressure
    let token: any NSObjectProtocol
  }

  private let registration: Registration

  init(_ storage: any EntryStorage) {
    let source = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical], queue: .global(qos: .utility))
    source.setEventHandler { [weak storage, weak source] in
      guard let storage, let event = source?.data else { return }
      if event.contains(.critical) { storage.removeAll() } else { storage.trim(to: storage.cost / 2) }
    }
    source.activate()
    // The name in text: naming UIKit's constant would need UIKit, and its main actor.
    let token = NotificationCenter.default.addObserver(
      forName: Notification.Name("UIApplicationDidEnterBackgroundNotification"), object: nil, queue: nil
    ) { [weak storage] _ in
      guard let storage else { return }
      storage.trim(to: storage.cost / 2)
    }
    registration = Registration(source: source, token: token)
  }

  deinit {
    registration.source.cancel()
    NotificationCenter.default.removeObserver(registration.token)
  }
}
#else
/// Other systems have no such signal; ``MemoryCache/trim(to:)`` is for the program to call.
final class PressureSource: Sendable {
  init(_ storage: any EntryStorage) {}
}
#endif
