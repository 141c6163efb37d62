#if canImport(Darwin)
private import Darwin
private import Dispatch
private import Foundation
#elseif canImport(Glibc)
private import Glibc
#elseif canImport(Musl)
private import Musl
#endif

/// How much memory the machine has.
enum PhysicalMemory {
  static var bytes: Int? {
    let pages = sysconf(Int32(_SC_PHYS_PAGES))
    let size = sysconf(Int32(_SC_PAGESIZE))
    return pages > 0 && size > 0 ? pages * size : nil
  }
}

#if canImport(Darwin)
/// Trims a shard when the system runs short of memory, or the app goes to the background. Holds the shard weakly.
final class PressureSource: Sendable {
  // Proof of `@unchecked Sendable`: both are set once in `init` and only read in `deinit`.
  private struct Registration: @unchecked Sendable {
    let source: any DispatchSourceMemoryPressure
    let token: any NSObjectProtocol
  }

  private let registration: Registration

  init(_ shard: any Shard) {
    let source = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical], queue: .global(qos: .utility))
    source.setEventHandler { [weak shard, weak source] in
      guard let shard, let event = source?.data else { return }
      if event.contains(.critical) { shard.removeAll() } else { shard.trim(to: shard.status().cost / 2) }
    }
    source.activate()
    // The name in text: naming UIKit's constant would need UIKit, and its main actor.
    let token = NotificationCenter.default.addObserver(
      forName: Notification.Name("UIApplicationDidEnterBackgroundNotification"), object: nil, queue: nil
    ) { [weak shard] _ in
      guard let shard else { return }
      shard.trim(to: shard.status().cost / 2)
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
  init(_ shard: any Shard) {}
}
#endif
