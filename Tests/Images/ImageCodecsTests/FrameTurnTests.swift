#if VIPS && os(Linux)
import CacheCore
import ImageFiles
import Testing

@testable import ImageCodecs

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Concurrent decoding of frames")
struct FrameTurnTests {
  private static let colors = [RGBA(255, 0, 0), RGBA(0, 255, 0), RGBA(0, 0, 255), RGBA(255, 0, 0)]
  private static let files = [
    GIFFile(frames: [(1, 10), (2, 10), (3, 10), (1, 10)]).data,
    AnimatedPNGFile(frames: colors.map { .init(color: $0) }).data,
  ]

  private struct State {
    /// The first task is decoding its frame.
    var isBusy = false
    /// The second task is about to request its frame.
    var isAsking = false
    /// The first task is about to finish.
    var isDone = false
    /// The second task's time limit started before that.
    var isEarly = false
  }

  @Test("the time limit of a frame does not start while another frame is decoded", arguments: files)
  func time(file: Data) async throws {
    // A generous limit, because the second thread starts when the machine has a free core.
    let image = try ImageDecoder { $0.limits.time = .seconds(3_600) }.decode(file)
    let state = Lock(State())
    let usual = PixelMemory.allocate
    // Separate threads, because one waits for the other.
    let threads = ProcessingExecutor(width: 2)
    let first = Task(executorPreference: threads) { @concurrent @Sendable in
      defer { state.withLock { $0.isBusy = true } }
      return try PixelMemory.$allocate.withValue({ count in
        state.withLock { $0.isBusy = true }
        while !state.withLock({ $0.isAsking }) {}
        // Enough time to read the clock for a task that does it too early.
        for _ in 0..<100_000 where !state.withLock({ $0.isEarly }) {}
        state.withLock { $0.isDone = true }
        return usual(count)
      }) { try image.pixels(ofFrame: 1)[0, 0] }
    }
    let second = Task(executorPreference: threads) { @concurrent @Sendable in
      while !state.withLock({ $0.isBusy }) {}
      state.withLock { $0.isAsking = true }
      return try DecodingDeadline.$now.withValue({
        state.withLock { $0.isEarly = $0.isEarly || !$0.isDone }
        return .now
      }) { try image.pixels(ofFrame: 2)[0, 0] }
    }
    #expect(try await first.value == Self.colors[1])
    #expect(try await second.value == Self.colors[2])
    #expect(state.withLock { !$0.isEarly })
  }

  @Test("no frame is decoded for a cancelled task", arguments: files)
  func cancellation(file: Data) async throws {
    let image = try ImageDecoder().decode(file)
    _ = try image.pixels(ofFrame: 1)
    let made = Lock(0)
    let usual = PixelMemory.allocate
    let error = await Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return #expect(throws: CacheError.self) {
        try PixelMemory.$allocate.withValue({ count in
          made.withLock { $0 += 1 }
          return usual(count)
        }) { try image.pixels(ofFrame: 2) }
      }
    }.value
    #expect(error?.isCancellation == true)
    #expect(made.withLock { $0 } == 0)
    #expect(try image.pixels(ofFrame: 2)[0, 0] == Self.colors[2])
  }
}
#endif
