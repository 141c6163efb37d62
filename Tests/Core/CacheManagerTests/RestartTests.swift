import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("Repeated requests after an interruption")
struct RestartTests {
  private static func broken(_ attempt: Int? = nil) -> CacheError {
    CacheError(.bodyInterrupted, reason: "broken off", attempt: attempt)
  }

  @Test("an interrupted body is requested again, stored once and completely, and progress starts over", arguments: [nil, 3])
  func restart(_ told: Int?) async throws {
    let network = ClosureDownloader { seen throws(CacheError) in
      seen.attempt == 1
        ? .streaming(["old ", "bytes"], then: Self.broken(told), metrics: TransferMetrics(bytesOnWire: 9))
        : .streaming(["new"], fields: [.cacheControl: "max-age=60"], metrics: TransferMetrics(bytesOnWire: 3))
    }
    let fixture = try ManagerFixture { $0.downloader = network }

    var progress: [Int64] = []
    var final: Resource<Data>?
    for try await event in fixture.manager.events(for: fixture.url) {
      switch event {
      case .progress(let report): progress.append(report.received)
      case .stale: break
      case .final(let resource): final = resource
      }
    }

    let resource = try #require(final)
    #expect(resource.text == "new" && progress.last == 3)
    #expect(network.seen.map(\.attempt) == [1, (told ?? 1) + 1])
    #expect(resource.metrics.attempts == 2 && resource.bytesOnWire == 12)
    #expect(fixture.disk.keys.count == 1)
    fixture.restart()
    #expect(try await fixture.manager.load(fixture.url).text == "new")
  }

  @Test("a load ends even if the engine always interrupts the body")
  func bound() async throws {
    let network = ClosureDownloader { _ throws(CacheError) in .streaming(["x"], then: Self.broken()) }
    let fixture = try ManagerFixture { $0.downloader = network }

    let error = try await fixture.failure(fixture.url)

    #expect(error.code == .bodyInterrupted && error.attempt == 11)
    #expect(network.seen.map(\.attempt) == Array(1...11))
    #expect(fixture.disk.keys.isEmpty && fixture.memory.count == 0)
  }

  @Test("a cancellation ends the load between two attempts")
  func cancelling() async throws {
    let gate = Gate()
    let network = ClosureDownloader { seen throws(CacheError) in
      if seen.attempt == 2 { await gate.pass() }
      if Task.isCancelled { throw .cancelled }
      return .streaming(["x"], then: Self.broken())
    }
    let fixture = try ManagerFixture { $0.downloader = network }
    let load = Task { try await fixture.manager.load(fixture.url).text }
    await gate.arrived()

    load.cancel()

    #expect((await load.result).isCancellation)
    gate.open()
    await fixture.manager.close()
    #expect(network.seen.count == 2)
  }

  @Test("a request that may have changed something is not sent again", arguments: [HTTPRequest.Method.post, .patch])
  func unsafe(_ method: HTTPRequest.Method) async throws {
    let network = ClosureDownloader { _ throws(CacheError) in .streaming(["x"], then: Self.broken()) }
    let fixture = try ManagerFixture { $0.downloader = network }

    let error = await #expect(throws: CacheError.self) {
      try await fixture.manager.load(ResourceRequest(fixture.url, method: method))
    }

    #expect(error?.code == .bodyInterrupted && network.seen.count == 1)
  }

  @Test("a stored response may be served if the body never arrives completely")
  func standIn() async throws {
    let isBroken = Lock(false)
    let network = ClosureDownloader { _ throws(CacheError) in
      isBroken.withLock { $0 }
        ? .streaming(["x"], then: Self.broken()) : .streaming(["old"], fields: [.eTag: "\"1\""])
    }
    let fixture = try ManagerFixture { $0.downloader = network }
    _ = try await fixture.manager.load(fixture.url)
    isBroken.withLock { $0 = true }

    let shown = try await fixture.manager.load(fixture.url)

    #expect(shown.text == "old" && shown.validation == .failed)
  }
}

@Suite("Deadlines")
struct DeadlineTests {
  @Test(
    "the deadline of a load ends a stalled body, and an engine that waits before its next attempt", arguments: [true, false])
  func deadline(inBody: Bool) async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    let response = ScriptedResponse.ok(Data(count: 100))
    fixture.network.respond(to: fixture.url, with: inBody ? response.bodyHeld(by: gate) : response.after(.seconds(3_600)))

    async let failure = fixture.failure(fixture.url, RequestOptions { $0.timeout = .seconds(5) })
    await fixture.clock.sleepers(inBody ? 1 : 2)
    if inBody { await gate.arrived() }
    fixture.clock.advance(by: .seconds(5))

    let error = try await failure
    #expect(error.code == .timedOut && error.url == fixture.url.absoluteString)
    gate.open()
    await fixture.manager.close()
    #expect(fixture.clock.pendingSleeps == 0 && fixture.disk.keys.isEmpty)
    #expect(fixture.network.cancelledBodies == (inBody ? 1 : 0))
  }
}
