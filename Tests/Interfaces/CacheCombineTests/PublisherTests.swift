#if canImport(Combine) || OpenCombine
import CacheCombine
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Publishers of values")
struct PublisherTests {
  private let fixture: PublisherFixture
  private typealias BytesSubscriber = RecordingSubscriber<Resource<Data>>

  init() throws { fixture = try PublisherFixture() }

  // MARK: Values

  @Test("the value is delivered, then the completion")
  func value() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("hello"))
    let subscriber = BytesSubscriber(demand: .unlimited)
    fixture.manager.publisher(for: fixture.url).subscribe(subscriber)
    await subscriber.ended()
    #expect(subscriber.values.map(\.text) == ["hello"] && subscriber.ends == [nil])
    #expect(subscriber.values.first?.source == .network && !subscriber.isLate && !subscriber.hasOverlap)
    try fixture.network.verify()
  }

  @Test("the value of a transform is delivered")
  func transform() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("hello"))
    let transform = ResourceTransform(id: "count", cost: { (_: Int) in 8 }) { body, _ throws(CacheError) in
      try await body.collect().count
    }
    let subscriber = RecordingSubscriber<Resource<Int>>(demand: .max(1))
    fixture.manager.publisher(for: fixture.url, as: transform).subscribe(subscriber)
    await subscriber.ended()
    #expect(subscriber.values.map(\.value) == [5] && subscriber.ends == [nil])
  }

  @Test("the error of a failed load is delivered as the only completion")
  func failure() async throws {
    fixture.network.respond(to: fixture.url, with: .failure(.connectionLost, reason: "reset by peer"))
    let subscriber = BytesSubscriber(demand: .unlimited)
    fixture.manager.publisher(for: fixture.url).subscribe(subscriber)
    await subscriber.ended()
    #expect(subscriber.values.isEmpty && subscriber.ends == [.connectionLost])
    #expect(subscriber.error?.url == fixture.url.absoluteString)
  }

  @Test(
    "a URL that cannot be loaded is a failure",
    arguments: [("https://", CacheError.Code.invalidURL), ("ftp://example.com/a", .unsupportedScheme)])
  func brokenURL(text: String, code: CacheError.Code) async throws {
    let url: URL = try #require(URL(string: text))
    let subscriber = BytesSubscriber(demand: .unlimited)
    fixture.manager.publisher(for: url).subscribe(subscriber)
    await subscriber.ended()
    #expect(subscriber.values.isEmpty && subscriber.ends == [code])
  }

  @Test("a memory hit is delivered before sink returns")
  func memoryHit() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("hello", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)
    var calls: [String] = []
    let cancellable = fixture.manager.publisher(for: fixture.url)
      .sink { _ in
        calls.append("completion")
      } receiveValue: {
        calls.append($0.text)
      }
    #expect(calls == ["hello", "completion"])
    cancellable.cancel()
  }

  @Test("staleWhileRevalidate delivers only the stale value and revalidates the response")
  func stale() async throws {
    try await fixture.cacheStale("old")
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("new", etag: "\"new\"", cacheControl: "max-age=60").held(by: gate))
    let subscriber = BytesSubscriber(demand: .unlimited)
    fixture.manager.publisher(for: fixture.url, options: .policy(.staleWhileRevalidate)).subscribe(subscriber)
    await subscriber.ended()
    await gate.arrived()
    gate.open()
    try await Polling.until { fixture.manager.cachedInMemory(fixture.url)?.text == "new" }
    #expect(subscriber.values.map(\.text) == ["old"] && subscriber.values.first?.isStale == true && subscriber.ends == [nil])
  }

  @Test("a publisher can be mapped to AnyPublisher<Data?, any Error>")
  func mapped() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("hello", cacheControl: "no-store"), .failure(.offline))
    let publisher: AnyPublisher<Data?, any Error> = fixture.manager.publisher(for: fixture.url)
      .map { Optional($0.data) }.mapError { $0 as any Error }.eraseToAnyPublisher()
    let first = MappedSubscriber()
    publisher.subscribe(first)
    #expect(try await first.result() == Data("hello".utf8))
    let second = MappedSubscriber()
    publisher.subscribe(second)
    let error = await #expect(throws: CacheError.self) { try await second.result() }
    #expect(error?.code == .offline)
  }

  // MARK: Demand

  @Test("no load starts before the first demand")
  func noDemand() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("hello"))
    let subscriber = BytesSubscriber()
    fixture.manager.publisher(for: fixture.url).subscribe(subscriber)
    subscriber.request(.none)
    await fixture.manager.close(within: .zero)
    #expect(fixture.network.requests.isEmpty && fixture.observer.events.isEmpty)
    #expect(subscriber.values.isEmpty && subscriber.ends.isEmpty)
  }

  @Test("repeated demand starts the load once")
  func repeatedDemand() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("hello").held(by: gate))
    let subscriber = BytesSubscriber(demand: .max(1)) { subscriber, _ in
      subscriber.request(.max(1))
      return .unlimited
    }
    fixture.manager.publisher(for: fixture.url).subscribe(subscriber)
    await gate.arrived()
    subscriber.request(.unlimited)
    gate.open()
    await subscriber.ended()
    subscriber.request(.unlimited)
    await fixture.manager.close()
    #expect(subscriber.values.count == 1 && subscriber.ends == [nil] && !subscriber.isLate)
    #expect(fixture.observer.loads.count == 1)
    try fixture.network.verify()
  }

  // MARK: Subscriptions

  @Test("two subscriptions are two loads that share one request")
  func shared() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("hello").held(by: gate))
    let publisher = fixture.manager.publisher(for: fixture.url)
    let subscribers = [BytesSubscriber(demand: .unlimited), BytesSubscriber(demand: .unlimited)]
    for subscriber in subscribers { publisher.subscribe(subscriber) }
    await gate.arrived()
    gate.open()
    for subscriber in subscribers {
      await subscriber.ended()
      #expect(subscriber.values.map(\.text) == ["hello"] && subscriber.ends == [nil])
    }
    #expect(fixture.network.requests.count == 1 && fixture.observer.loads.count == 2)
  }

  @Test("a later subscription loads again")
  func cold() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("one"), .ok("two"))
    let publisher = fixture.manager.publisher(for: fixture.url, options: .policy(.reload))
    for text in ["one", "two"] {
      let subscriber = BytesSubscriber(demand: .unlimited)
      publisher.subscribe(subscriber)
      await subscriber.ended()
      #expect(subscriber.values.map(\.text) == [text])
    }
    try fixture.network.verify()
  }

  // MARK: The manager

  @Test("a value is delivered after the manager is released")
  func released() async throws {
    let network = ScriptedDownloader()
    let gate = Gate()
    network.respond(to: fixture.url, with: .ok("one").held(by: gate), .ok("two"))
    let publisher = ResourceManager(.init { $0.downloader = network }).publisher(for: fixture.url)
    let subscriber = BytesSubscriber(demand: .unlimited)
    publisher.subscribe(subscriber)
    await gate.arrived()
    gate.open()
    await subscriber.ended()
    let second = BytesSubscriber(demand: .unlimited)
    publisher.subscribe(second)
    await second.ended()
    #expect(subscriber.values.map(\.text) == ["one"] && second.values.map(\.text) == ["two"])
  }

  @Test("a manager that is closed before the demand is a failure")
  func closed() async throws {
    let subscriber = BytesSubscriber()
    fixture.manager.publisher(for: fixture.url).subscribe(subscriber)
    await fixture.manager.close()
    subscriber.request(.unlimited)
    await subscriber.ended()
    #expect(subscriber.values.isEmpty && subscriber.ends == [.closed])
  }

  @Test("a manager that is closed during the load is a failure")
  func closedMeanwhile() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("late").held(by: gate))
    let subscriber = BytesSubscriber(demand: .unlimited)
    fixture.manager.publisher(for: fixture.url).subscribe(subscriber)
    await gate.arrived()
    #expect(await fixture.manager.close(within: .zero) == false)
    await subscriber.ended()
    gate.open()
    await fixture.manager.close()
    #expect(subscriber.values.isEmpty && subscriber.ends == [.closed])
  }
}

/// A subscriber to the mapped publisher.
private final class MappedSubscriber: Subscriber, Sendable {
  private struct Record: Sendable {
    var values: [Data?] = []
    var end: Result<Void, any Error>?
  }

  private let record = WatchedState(Record())

  func receive(subscription: any Subscription) { subscription.request(.unlimited) }

  func receive(_ input: Data?) -> Subscribers.Demand {
    record.update { $0.values.append(input) }
    return .none
  }

  func receive(completion: Subscribers.Completion<any Error>) {
    record.update { record in
      if case .failure(let error) = completion { record.end = .failure(error) } else { record.end = .success(()) }
    }
  }

  /// Returns the only value, after the completion.
  func result() async throws -> Data? {
    await record.wait { $0.end != nil }
    try record.read { $0.end }?.get()
    let values = record.read { $0.values }
    #expect(values.count == 1)
    return values.first ?? nil
  }
}
#endif
