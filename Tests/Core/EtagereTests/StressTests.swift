#if Origin
import CacheCore
import CacheTesting
import Etagere
import Foundation
import LoopbackOrigin
import Testing

@Suite("A storm of loads", .timeLimit(.minutes(30)))
struct StressTests {
  /// The default suits the sanitizers. The environment variable `ETAGERE_STORM` sets another number, such as 10,000.
  private static var loads: Int { ProcessInfo.processInfo.environment["ETAGERE_STORM"].flatMap { Int($0) } ?? 1_000 }

  @Test(
    "with random faults, stalls and cancellations, every load ends exactly once and only whole bodies are stored",
    arguments: StressEngine.all, [1, 2] as [UInt64])
  func stress(engine: StressEngine, seed: UInt64) async throws {
    let outcome = try await StressRun(engine: engine, loads: Self.loads, seed: seed).run()

    #expect(outcome.ends.count == Self.loads)
    #expect(outcome.ends.values.allSatisfy { $0 == 1 })
    #expect(outcome.wrong.isEmpty)
    // One lost transfer ends all loads that share it.
    #expect(outcome.lost <= Self.loads / 20)
    #expect(outcome.succeeded > Self.loads / 10 && outcome.cancelled > Self.loads / 20)
  }

  #if os(Linux)
  // The storm has its own process, because descriptors are counted for a whole process.
  @Test("a storm on URLSession leaks no descriptor")
  func descriptors() async {
    await #expect(processExitsWith: .success) { try await countDescriptors(.urlSession) }
  }
  #endif
}

#if os(Linux)
/// Compares the number of descriptors before and after a storm.
private func countDescriptors(_ engine: StressEngine) async throws {
  func descriptors() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count }
  // The first storm creates everything that a process creates once.
  _ = try await StressRun(engine: engine, loads: 200, seed: 3).run()
  let before = try descriptors()
  let outcome = try await StressRun(engine: engine, loads: 600, seed: 4).run()
  // The last descriptors are closed by the thread that releases their last reference.
  try? await Polling.until { try descriptors() <= before + 16 }
  let after = try descriptors()
  // A few connections may stay open for the next load.
  guard after <= before + 16, outcome.wrong.isEmpty, outcome.ends.count == 600 else {
    throw CacheError(.other, reason: "\(before) descriptors, then \(after); \(outcome.wrong)")
  }
}
#endif
#endif
