#if Origin
import CacheCore
import Etagere
import Foundation
import LoopbackOrigin
import Testing

@Suite("A storm of loads", .timeLimit(.minutes(3)))
struct StormTests {
  /// Seeded, so that a failure can be had again.
  struct Dice: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return state
    }
  }

  /// How often each load has ended.
  final class Tally: Sendable {
    private let counts = Lock<[Int: Int]>([:])

    var all: [Int: Int] { counts.withLock { $0 } }

    func count(_ load: Int) -> Int {
      counts.withLock { counts in
        counts[load, default: 0] += 1
        return counts[load, default: 0]
      }
    }
  }

  @Test(
    "with faults and cancels at random, every load ends exactly once and only whole bodies are stored",
    arguments: [1, 2, 3] as [UInt64])
  func storm(seed: UInt64) async throws {
    // Given
    let origin = try await OriginServer.start()
    let folder = FileManager.default.temporaryDirectory.appending(path: "etagere-storm-\(Revision.mint())")
    defer { try? FileManager.default.removeItem(at: folder) }
    let body = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    for index in 0..<40 {
      let delivery: OriginDelivery =
        switch index % 5 {
        case 0: .fault(.cut(afterBodyBytes: 1_000 * index))
        case 1: .fault(.resetBeforeHead)
        case 2: .fault(.reset(afterBodyBytes: 5_000))
        default: OriginDelivery()
        }
      origin.setRoute(
        "/\(index)", Route(body.prefix(5_000 * index + 1), fields: [.cacheControl: "max-age=1"], delivery: delivery))
    }
    let manager = ResourceManager(try .standard(folder: folder))
    let outcomes = Tally()
    var dice = Dice(state: seed &* 0x9e37_79b9_7f4a_7c15)

    // When
    await withTaskGroup(of: Void.self) { group in
      for load in 0..<400 {
        let path = Int.random(in: 0..<40, using: &dice)
        let yields = Int.random(in: 0..<200, using: &dice)
        let isCancelled = Int.random(in: 0..<3, using: &dice) == 0
        group.addTask {
          await withCheckedContinuation { continuation in
            let options = RequestOptions { $0.callbackQueue = .untouched }
            let task = manager.load(origin.url("/\(path)"), options: options) { result in
              let count = outcomes.count(load)
              if case .success(let resource) = result { #expect(resource.data == body.prefix(5_000 * path + 1)) }
              if count == 1 { continuation.resume() }
            }
            if isCancelled {
              Task {
                for _ in 0..<yields { await Task.yield() }
                task.cancel()
              }
            }
          }
        }
      }
    }
    await manager.close()

    // Then
    #expect(outcomes.all.count == 400)
    #expect(outcomes.all.values.allSatisfy { $0 == 1 })
    let store = try DiskCache(folder: folder)
    let report = try await store.verify()
    #expect(report.isClean)
    for entry in try await store.entries() {
      let path = try #require(entry.metadata.request.path.flatMap { Int($0.dropFirst()) })
      #expect(path % 5 > 2)
      #expect(try await store.open(entry.key)?.body.collect() == body.prefix(5_000 * path + 1))
    }
    await origin.stop()
  }
}
#endif
