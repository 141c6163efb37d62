import CacheCore
import CacheTesting
import Dispatch
import Foundation
import Testing

@testable import CacheManager

@Suite("Memory of values between two steps")
struct StepMemoryTests {
  /// An executor apart from the cooperative pool, because steps that are held block a thread.
  private let place = ProcessingExecutor(queue: DispatchQueue(label: "steps", attributes: .concurrent))

  @Test("few values exist between two steps, even if many loads have begun", arguments: [1, 2])
  func bounded(limit: Int) async throws {
    let fixture = try ManagerFixture {
      $0.maximumConcurrentTransforms = limit
      $0.executor = place
    }
    let (gate, alive) = (Gate(), ValueCounter())
    let transform = ResourceTransform(decoder: HeldPieces(gate: gate, alive: alive, memory: 0)).map("used") { _ in Piece(nil) }
    let loads = try (0..<200).map { number in
      let url = try fixture.url("/\(number)")
      fixture.network.respond(to: url, with: .ok("abcdefgh"))
      return Task { _ = try await fixture.load(transform, at: url) }
    }
    try await Polling.until { gate.held == limit && fixture.manager.core.environment.budget.slots.waiting == 200 - limit }
    gate.open()
    for load in loads { try await load.value }

    // The limit includes the steps that run, and those that have left their slot but not yet requested the next one: at most one
    // on each of the 64 threads that dispatch has.
    #expect(alive.most <= 2 * limit + 64)
    #expect(alive.now == 0)
  }

  @Test(
    "the budget counts the input and the result of a step until the step ends, and the result until it is delivered"
  )
  func counted() async throws {
    let fixture = try ManagerFixture {
      $0.memoryBudget = 400_000
      $0.maximumConcurrentTransforms = 4
      $0.executor = place
    }
    let (steps, other, encoding) = (Gate(), Gate(), Gate())
    let stepped = ResourceTransform(decoder: HeldPieces(gate: Gate(isOpen: true), alive: ValueCounter(), memory: 90_000))
      .map("held") { piece in
        steps.hold()
        return piece
      }
      .stored(as: "none") { _ in
        encoding.hold()
        return Data()
      } decode: { _ in
        Piece(nil)
      }
    let large = ResourceTransform(decoder: HeldPieces(gate: other, alive: ValueCounter(), memory: 300_000))
    for path in ["/stepped", "/large"] {
      fixture.network.respond(to: try fixture.url(path), with: .ok(Data(count: 1_000), cacheControl: "max-age=60"))
    }
    let first = Task { _ = try await fixture.load(stepped, .keeping(.all), at: fixture.url("/stepped")) }
    await steps.arrived()
    #expect(fixture.manager.memoryUse.inUse == 1_000 + 50_000 + 50_000)

    let second = Task { _ = try await fixture.load(large, at: fixture.url("/large")) }
    try await Polling.until { fixture.manager.memoryUse.waiting == 1 }
    #expect(other.arrivals == 0)

    // The encoding does not count as work, and one piece of work is always granted, so the other one runs beside it.
    steps.open()
    await encoding.arrived()
    await other.arrived()
    try await Polling.until { fixture.manager.memoryUse.inUse == 1_000 + 50_000 + 1_000 + 300_000 }

    encoding.open()
    try await first.value
    try await Polling.until { fixture.manager.memoryUse.inUse == 1_000 + 300_000 }
    other.open()
    try await second.value
    try await Polling.until { fixture.manager.memoryUse.inUse == 0 && fixture.manager.memoryUse.waiting == 0 }
  }

  @Test("a step that fails returns its memory")
  func failed() async throws {
    let fixture = try ManagerFixture { $0.executor = place }
    let transform = ResourceTransform(decoder: HeldPieces(gate: Gate(isOpen: true), alive: ValueCounter(), memory: 90_000))
      .map("fails") { _ throws(CacheError) in throw CacheError(.decodingFailed, reason: "not an image") }
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh"))
    await #expect(throws: CacheError.self) { try await fixture.load(transform) }
    try await Polling.until { fixture.manager.memoryUse.inUse == 0 }
  }
}

/// The current and the largest number of values.
private final class ValueCounter: Sendable {
  private let state = Lock((now: 0, most: 0))
  var now: Int { state.withLock { $0.now } }
  var most: Int { state.withLock { $0.most } }

  func change(by count: Int) {
    state.withLock { state in
      state.now += count
      state.most = max(state.most, state.now)
    }
  }
}

private final class Piece: Sendable {
  private let alive: ValueCounter?

  init(_ alive: ValueCounter?) {
    self.alive = alive
    alive?.change(by: 1)
  }

  deinit { alive?.change(by: -1) }
}

/// A decoder that makes pieces of 50,000 bytes once its gate is open.
private struct HeldPieces: ResourceDecoder {
  let gate: Gate
  let alive: ValueCounter
  let memory: Int
  var id: ComponentID { ComponentID(Self.self, parameters: "\(memory)") }

  func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> Piece {
    gate.hold()
    return Piece(alive)
  }

  func cost(of value: Piece) -> Int { 50_000 }

  func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int { memory }
}
