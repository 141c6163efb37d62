#if canImport(Darwin)
private import Dispatch
private import Foundation
#endif

#if canImport(Darwin)
/// An observer that trims a store when the system runs short of memory, or the app receives a memory warning or enters the
/// background. It references the store weakly.
final class PressureSource: Sendable {
  // Proof of `@unchecked Sendable`: the properties are set once in `init` and only read in `deinit`.
  private struct Registration: @unchecked Sendable {
    let source: any DispatchSourceMemoryPressure
    let tokens: [any NSObjectProtocol]
  }

  private let registration: Registration

  init(_ storage: any EntryStorage) {
    let source = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical], queue: .global(qos: .utility))
    source.setEventHandler { [weak storage, weak source] in
      guard let storage, let event = source?.data else { return }
      storage.respond(to: event.contains(.critical) ? .critical : .warning)
    }
    source.activate()
    // The names are text, because UIKit's constants would require UIKit and its main actor. The memory warning is about the limit
    // of the app, and the dispatch source about the memory of the device.
    let tokens = ["UIApplicationDidEnterBackgroundNotification", "UIApplicationDidReceiveMemoryWarningNotification"].map { name in
      NotificationCenter.default.addObserver(forName: Notification.Name(name), object: nil, queue: nil) { [weak storage] _ in
        storage?.respond(to: .warning)
      }
    }
    registration = Registration(source: source, tokens: tokens)
  }

  deinit {
    registration.source.cancel()
    for token in registration.tokens { NotificationCenter.default.removeObserver(token) }
  }
}
#else
/// A placeholder for other systems, which send no such signal. A program can call ``MemoryCache/trim(to:)`` itself.
final class PressureSource: Sendable {
  init(_ storage: any EntryStorage) {}
}
#endif

/// A signal of the system to use less memory.
enum MemoryPressure: Sendable { case warning, critical }

extension EntryStorage {
  /// Removes half of the bytes on a warning, and all entries at the critical level.
  func respond(to pressure: MemoryPressure) {
    switch pressure {
    case .warning: trim(to: cost / 2)
    case .critical: removeAll()
    }
  }
}
