#if canImport(Darwin)
private import Dispatch
private import Foundation
#endif

#if canImport(Darwin)
/// An observer that trims a store when the system runs short of memory or the app enters the background. It references the store
/// weakly.
final class PressureSource: Sendable {
  // Proof of `@unchecked Sendable`: both properties are set once in `init` and only read in `deinit`.
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
    // The name is text, because UIKit's constant would require UIKit and its main actor.
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
/// A placeholder for other systems, which send no such signal. A program can call ``MemoryCache/trim(to:)`` itself.
final class PressureSource: Sendable {
  init(_ storage: any EntryStorage) {}
}
#endif
