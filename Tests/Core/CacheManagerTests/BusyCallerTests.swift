import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import CacheManager

@Suite("Loads of callers whose executor is busy")
struct BusyCallerTests {
  private let fixture: ManagerFixture
  private let executor = SteppedExecutor()
  private let gate = Gate()

  init() throws { fixture = try ManagerFixture { $0.waitForStores() } }

  /// Starts a load in a task of the executor, and runs the executor until the load has sent its request.
  private func load(
    _ options: RequestOptions = RequestOptions()
  ) async throws -> Task<Result<Resource<Data>, CacheError>, Never> {
    let (manager, url) = (fixture.manager, fixture.url)
    let task = Task(executorPreference: executor) { () async -> Result<Resource<Data>, CacheError> in
      do throws(CacheError) {
        return .success(try await manager.load(url, options: options))
      } catch {
        return .failure(error)
      }
    }
    try await Polling.until {
      executor.run()
      return gate.arrivals > 0
    }
    return task
  }

  private func finish<Value: Sendable>(_ task: Task<Value, Never>) async throws -> Value {
    let hasEnded = Counter()
    async let value = {
      defer { hasEnded.increment() }
      return await task.value
    }()
    try await Polling.until {
      executor.run()
      return hasEnded.value > 0
    }
    return await value
  }

  @Test("close() does not wait until the executor of a caller resumes its load", .timeLimit(.minutes(30)))
  func closing() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("text").held(by: gate))
    let task = try await load()

    gate.open()
    await fixture.manager.close()

    #expect(try await finish(task).get().text == "text")
  }

  @Test("the time for a stored response begins when the caller can use it", .timeLimit(.minutes(30)))
  func grace() async throws {
    try await fixture.storeStale(inMemory: true)
    fixture.network.respond(to: fixture.url, with: .ok("late").held(by: gate))
    let task = try await load(RequestOptions { $0.timeout = .seconds(5) })

    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .seconds(5))
    try await Polling.until { executor.jobs > 0 }
    // The executor is busy for longer than the time that the load has to read the stored response.
    fixture.clock.advance(by: .seconds(60))

    let resource = try await finish(task).get()
    #expect(resource.text == "old" && resource.fallbackReason?.code == .timedOut)
    gate.open()
    await fixture.manager.close()
  }
}

@Suite("A waiter")
struct WaiterTests {
  @Test("a slow consumer gets the latest progress only")
  func progress() async throws {
    let flights = Flights(InvalidationLog())
    let fixture = try ManagerFixture()
    let load = try ResolvedRequest(ResourceRequest(fixture.url), fixture.manager.core)
    let (waiter, _) = try #require(flights.join(nil, load, WaiterNeeds<Exchange>(wantsProgress: true)))

    for count in 1...1_000 { waiter.flight.report(.progress(LoadProgress(received: Int64(count)))) }
    waiter.flight.end(.failure(.cancelled))

    guard case .progress(let progress) = await waiter.next(), case .ended = await waiter.next() else {
      Issue.record("the waiter gets one report and the end")
      return
    }
    #expect(progress.received == 1_000)
  }

  @Test("a waiter that joins its second flight gets what that flight has reported before")
  func secondFlight() async throws {
    let flights = Flights(InvalidationLog())
    let fixture = try ManagerFixture()
    let load = try ResolvedRequest(ResourceRequest(fixture.url), fixture.manager.core)
    let needs = WaiterNeeds<Exchange>(wantsProgress: true)
    let (first, _) = try #require(flights.join(nil, load, needs))
    let key = FlightKey.bytes(CoalescingKey(load))
    let (second, _) = try #require(flights.join(key, load, WaiterNeeds<Exchange>()))
    first.flight.report(.progress(LoadProgress(received: 1)))
    second.flight.report(.progress(LoadProgress(received: 2)))
    first.flight.end(.failure(.cancelled))
    while case .progress = await first.next() {}

    let (waiter, isNew) = try #require(flights.join(key, load, needs))
    #expect(!isNew)

    guard case .progress(let progress) = await waiter.next() else {
      Issue.record("the waiter gets the progress of its flight")
      return
    }
    #expect(progress.received == 2)
    second.flight.end(.failure(.cancelled))
  }
}
