#if canImport(Combine) || OpenCombine
import CacheCombine
import CacheCore
import CacheTesting
import Foundation
import Testing

@Suite("Cancelling subscriptions")
struct CancellationTests {
  private let fixture: PublisherFixture
  private typealias BytesSubscriber = RecordingSubscriber<Resource<Data>>

  init() throws { fixture = try PublisherFixture() }

  @Test("cancelling before the demand prevents the load")
  func beforeDemand() async throws {
    let subscriber = BytesSubscriber()
    fixture.manager.publisher(for: fixture.url).subscribe(subscriber)
    subscriber.cancel()
    subscriber.request(.unlimited)
    await fixture.manager.close()
    #expect(fixture.network.requests.isEmpty && fixture.observer.events.isEmpty)
    #expect(subscriber.values.isEmpty && subscriber.ends.isEmpty)
  }

  @Test("cancelling before the response cancels the request and delivers nothing", .timeLimit(.minutes(30)))
  func beforeResponse() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("late").held(by: gate))
    let subscriber = BytesSubscriber(demand: .unlimited)
    fixture.manager.publisher(for: fixture.url).subscribe(subscriber)
    await gate.arrived()
    subscriber.cancel()
    // The gate is closed, so only the cancellation releases the request from it.
    await gate.emptied()
    await fixture.manager.close()
    subscriber.request(.unlimited)
    #expect(subscriber.values.isEmpty && subscriber.ends.isEmpty)
  }

  @Test("cancelling during the body cancels the transfer and delivers nothing", arguments: [true, false])
  func duringBody(ofEvents: Bool) async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("late").chunked(by: 1).bodyHeld(by: gate))
    let bytes = BytesSubscriber(demand: .unlimited)
    let events = RecordingSubscriber<ResourceEvent<Data>>(demand: .max(1))
    if ofEvents {
      fixture.manager.eventsPublisher(for: fixture.url).subscribe(events)
    } else {
      fixture.manager.publisher(for: fixture.url).subscribe(bytes)
    }
    gate.letThrough(2)
    await gate.arrived(3)
    if ofEvents {
      // The event is delivered on another thread than the one that waits for the next chunk.
      await events.received(1)
      events.cancel()
    } else {
      bytes.cancel()
    }
    try await Polling.until { fixture.network.cancelledBodies == 1 }
    await fixture.manager.close()
    events.request(.unlimited)
    #expect(bytes.values.isEmpty && bytes.ends.isEmpty)
    #expect(events.values.count == (ofEvents ? 1 : 0) && events.ends.isEmpty)
  }

  @Test("releasing the cancellable cancels the transfer", arguments: [true, false])
  func release(ofEvents: Bool) async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("late").bodyHeld(by: gate))
    let completions = Lock(0)
    var cancellable: AnyCancellable? =
      ofEvents
      ? fixture.manager.eventsPublisher(for: fixture.url)
        .sink { _ in
          completions.withLock { $0 += 1 }
        } receiveValue: { _ in
        }
      : fixture.manager.publisher(for: fixture.url)
        .sink { _ in
          completions.withLock { $0 += 1 }
        } receiveValue: { _ in
        }
    await gate.arrived()
    #expect(fixture.network.cancelledBodies == 0 && cancellable != nil)
    cancellable = nil
    try await Polling.until { fixture.network.cancelledBodies == 1 }
    await fixture.manager.close()
    #expect(completions.withLock { $0 } == 0)
  }

  @Test("cancelling one of two subscribers does not affect the other")
  func oneOfTwo() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("hello").bodyHeld(by: gate))
    let publisher = fixture.manager.publisher(for: fixture.url)
    let (leaving, staying) = (BytesSubscriber(demand: .unlimited), BytesSubscriber(demand: .unlimited))
    publisher.subscribe(leaving)
    publisher.subscribe(staying)
    await gate.arrived()
    leaving.cancel()
    gate.open()
    await staying.ended()
    #expect(leaving.values.isEmpty && leaving.ends.isEmpty)
    #expect(staying.values.map(\.text) == ["hello"] && fixture.network.cancelledBodies == 0)
    #expect(fixture.network.requests.count == 1)
  }

  @Test("cancelling inside receive delivers nothing more, not even a completion", arguments: [true, false])
  func reentrant(ofEvents: Bool) async throws {
    fixture.network.respond(to: fixture.url, with: .ok("hello").chunked(by: 1))
    let bytes = BytesSubscriber(demand: .unlimited) { subscriber, _ in
      subscriber.cancel()
      subscriber.request(.unlimited)
      return .unlimited
    }
    let events = RecordingSubscriber<ResourceEvent<Data>>(demand: .unlimited) { subscriber, _ in
      subscriber.cancel()
      subscriber.request(.unlimited)
      return .unlimited
    }
    if ofEvents {
      fixture.manager.eventsPublisher(for: fixture.url).subscribe(events)
      await events.received(1)
    } else {
      fixture.manager.publisher(for: fixture.url).subscribe(bytes)
      await bytes.received(1)
    }
    await fixture.manager.close()
    #expect(bytes.values.count + events.values.count == 1 && bytes.ends.isEmpty && events.ends.isEmpty)
  }

  @Test("cancelling inside the closures of sink delivers nothing more")
  func sink() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("hello", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)
    let calls = Lock<[String]>([])
    // The operator cancels upstream inside `receive(_:)`, when it has its value.
    let cancellable = fixture.manager.eventsPublisher(for: fixture.url).first()
      .sink { _ in
        calls.withLock { $0.append("completion") }
      } receiveValue: { event in
        calls.withLock { $0.append(event.summary) }
      }
    #expect(calls.withLock { $0 } == ["final hello", "completion"])
    cancellable.cancel()
  }

  @Test("cancelling after the completion has no effect")
  func afterCompletion() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("hello"))
    let subscriber = BytesSubscriber(demand: .unlimited)
    fixture.manager.publisher(for: fixture.url).subscribe(subscriber)
    await subscriber.ended()
    for _ in 0..<2 { subscriber.cancel() }
    subscriber.request(.unlimited)
    await fixture.manager.close()
    #expect(subscriber.values.count == 1 && subscriber.ends == [nil] && !subscriber.isLate)
    #expect(!fixture.observer.events.contains { if case .finished(_, _, _, .some, _) = $0 { true } else { false } })
  }

  // MARK: Memory

  @Test("an ended subscription that is still retained releases its subscriber", arguments: ["completed", "cancelled"])
  func subscriberIsReleased(_ end: String) async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("hello").held(by: gate))
    let holder = SubscriptionHolder()
    weak var released: BytesSubscriber?
    do {
      let subscriber = BytesSubscriber(demand: .unlimited)
      fixture.manager.publisher(for: fixture.url)
        .handleEvents(receiveSubscription: { holder.hold($0) }).subscribe(subscriber)
      released = subscriber
      await gate.arrived()
      if end == "cancelled" { subscriber.cancel() }
      gate.open()
      if end == "completed" { await subscriber.ended() }
      subscriber.forget()
    }
    await fixture.manager.close()
    // The load releases its closures on its thread, soon after the manager has counted it as ended.
    try await Polling.until { released == nil }
    #expect(released == nil && holder.isHolding)
  }

  @Test("a released subscription that was not cancelled finishes its load and is then deallocated")
  func dropped() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("hello").chunked(by: 1).bodyHeld(by: gate))
    weak var released: RecordingSubscriber<ResourceEvent<Data>>?
    do {
      let subscriber = RecordingSubscriber<ResourceEvent<Data>>(demand: .max(1))
      fixture.manager.eventsPublisher(for: fixture.url).subscribe(subscriber)
      subscriber.forget()
      released = subscriber
    }
    await gate.arrived()
    // The running load retains the subscription, because a subscriber need not.
    #expect(released != nil)
    gate.open()
    await fixture.manager.close()
    try await Polling.until { released == nil }
    #expect(released == nil)
  }
}

/// An object that retains a subscription, as some subscribers do after the completion.
private final class SubscriptionHolder: Sendable {
  private let subscription = Lock<(any Subscription)?>(nil)

  var isHolding: Bool { subscription.withLock { $0 != nil } }

  func hold(_ subscription: any Subscription) { self.subscription.withLock { $0 = subscription } }
}
#endif
