#if Origin
import CacheCore
import Foundation
import Synchronization

/// Loads of a small resource, a few at a time. Each request has a unique query, so that no cache has a response to it.
struct SmallJob: Job {
  static let name = "small"

  let client: ClientKind
  let url: String
  /// The size of the body in bytes.
  let size: Int
  let requests: Int
  let parallel: Int
  /// The number of measured batches.
  let batches: Int

  func run() async throws -> Measurement {
    let client = try client.make()
    var measurement = Measurement()
    // The warm-up initializes connections and libraries. Only here is every byte checked.
    try await read(client, batch: 0) { $0.count == size && Pattern.matches($0, at: 0) }
    for batch in 1...batches {
      let addresses = try addresses(batch: batch)
      let stopwatch = Stopwatch()
      try await read(client, addresses) { $0.count == size }
      stopwatch.stop(&measurement)
    }
    if let peak = ProcessUsage.peakMemory { measurement.add(peak, to: .peakMemory) }
    try await client.close()
    return measurement
  }

  private func addresses(batch: Int) throws -> [Address] {
    try (0..<requests).map { try Address("\(url)?\(batch * requests + $0)") }
  }

  private func read(
    _ client: any Client, batch: Int, _ isRight: @escaping @Sendable (UnsafeRawBufferPointer) -> Bool
  ) async throws {
    try await read(client, addresses(batch: batch), isRight)
  }

  private func read(
    _ client: any Client, _ addresses: [Address], _ isRight: @escaping @Sendable (UnsafeRawBufferPointer) -> Bool
  ) async throws {
    let next = AtomicCounter()
    let right = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<parallel {
        group.addTask {
          let count = AtomicCounter()
          while let address = next.take(from: addresses) {
            try await client.load(address) { if isRight($0) { count.step() } }
          }
          return count.value
        }
      }
      return try await group.reduce(0, +)
    }
    guard right == addresses.count else {
      throw BenchmarkFailure("\(addresses.count - right) of \(addresses.count) bodies differ from the origin's")
    }
  }
}
#endif
