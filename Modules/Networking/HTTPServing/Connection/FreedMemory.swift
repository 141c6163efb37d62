#if Server
import CacheCore
import Dispatch
import NIOCore

#if canImport(Glibc)
import Glibc
#endif

/// Returns freed memory to the system after many connections have ended.
///
/// The buffers of slow connections lie between memory that is still used. glibc keeps their pages when they are freed: about 200
/// MB after 200 clients that read slowly.
final class FreedMemory: Sendable {
  /// The number of ended connections that cause a release. The buffers of fewer connections are reused soon.
  static let connections = 32
  /// The time from these ends to the release, so that one release serves all connections of a burst.
  static let delay = TimeAmount.seconds(1)
  /// The time from one release until the next one can be planned, because a release walks the whole heap.
  static let pause = TimeAmount.seconds(10)

  private let state = Lock((ended: 0, isPlanned: false))
  private let release: @Sendable () -> Void

  init(_ release: @escaping @Sendable () -> Void = FreedMemory.release) { self.release = release }

  /// Counts an ended connection.
  func connectionEnded(on loop: any EventLoop) {
    state.withLock { $0.ended += 1 }
    plan(on: loop)
  }

  private func plan(on loop: any EventLoop) {
    let isNeeded = state.withLock { state in
      guard !state.isPlanned, state.ended >= Self.connections else { return false }
      state.isPlanned = true
      return true
    }
    guard isNeeded else { return }
    loop.scheduleTask(in: Self.delay) { [self] in
      state.withLock { $0.ended = 0 }
      release()
      loop.scheduleTask(in: Self.pause) { [self] in
        state.withLock { $0.isPlanned = false }
        plan(on: loop)
      }
    }
  }

  private static func release() {
    #if canImport(Glibc)
    // The function takes locks of the allocator, so it does not run on an event loop.
    DispatchQueue.global(qos: .utility).async { _ = trim?(0) }
    #endif
  }

  #if canImport(Glibc)
  /// `malloc_trim`, which Swift's Glibc module does not export.
  private static let trim = dlsym(nil, "malloc_trim").map {
    unsafeBitCast($0, to: (@Sendable @convention(c) (Int) -> CInt).self)
  }
  #endif
}
#endif
