#if canImport(Combine) || OpenCombine
@testable import CacheCombine
import CacheCore
import CacheManager
import CacheTesting
import Dispatch
import Foundation
import Testing

@Suite("Publishers of events")
struct EventsPublisherTests {
  private let fixture: PublisherFixture
  private typealias EventsSubscriber = RecordingSubscriber<ResourceEvent<Data>>

  init() throws { fixture = try PublisherFixture() }

  /// Scripts a body of five chunks of one byte, each of which waits at the gate.
  private func script(_ gate: Gate) {
    fixture.network.respond(to: fixture.url, with: .ok("hello").chunked(by: 1).bodyHeld(by: gate))
  }

  @Test("a subscriber receives progress, the final response and the completion")
  func allEvents() async throws {
    let gate = Gate()
    script(gate)
    let subscriber = EventsSubscriber(demand: .unlimited)
    fixture.manager.eventsPublisher(for: fixture.url).subscribe(subscriber)
    for count in 1...5 {
      gate.letThrough()
      await subscriber.received(count)
    }
    gate.open()
    await subscriber.ended()
    #expect(subscriber.values.map(\.summary) == ["1", "2", "3", "4", "5", "final hello"] && subscriber.ends == [nil])
    #expect(!subscriber.isLate && !subscriber.hasOverlap)
  }

  @Test("a stale response is delivered before the final one", arguments: [LoadPolicy.staleWhileRevalidate, .standard])
  func stale(policy: LoadPolicy) async throws {
    try await fixture.cacheStale("old")
    fixture.network.respond(to: fixture.url, with: .notModified(etag: "\"old\"", cacheControl: "max-age=60"))
    let subscriber = EventsSubscriber(demand: .unlimited)
    fixture.manager.eventsPublisher(for: fixture.url, options: .policy(policy)).subscribe(subscriber)
    await subscriber.ended()
    #expect(subscriber.values.map(\.summary) == ["stale old", "final old"] && subscriber.ends == [nil])
  }

  @Test("the events of a transform are delivered")
  func transform() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("hello"))
    let transform = ResourceTransform(id: "count", cost: { (_: Int) in 8 }) { body, _ throws(CacheError) in
      try await body.collect().count
    }
    let subscriber = RecordingSubscriber<ResourceEvent<Int>>(demand: .unlimited)
    fixture.manager.eventsPublisher(for: fixture.url, as: transform).subscribe(subscriber)
    await subscriber.ended()
    #expect(subscriber.ends == [nil])
    guard case .final(let resource)? = subscriber.values.last else {
      Issue.record("the last event is not the final one")
      return
    }
    #expect(resource.value == 5)
  }

  // MARK: Demand

  @Test("events are delivered on demand, and undelivered progress is merged into the latest report")
  func demand() async throws {
    let gate = Gate()
    script(gate)
    let subscriber = EventsSubscriber(demand: .max(1))
    fixture.manager.eventsPublisher(for: fixture.url).subscribe(subscriber)
    gate.letThrough()
    await subscriber.received(1)
    // A demand that precedes its event.
    subscriber.request(.max(1))
    #expect(subscriber.values.count == 1)
    gate.letThrough()
    await subscriber.received(2)
    // The other events wait. Closing returns when the load has sent all of them.
    gate.open()
    await fixture.manager.close()
    #expect(subscriber.values.map(\.summary) == ["1", "2"] && subscriber.ends.isEmpty)
    subscriber.request(.max(1))
    #expect(subscriber.values.map(\.summary) == ["1", "2", "5"] && subscriber.ends.isEmpty)
    subscriber.request(.max(1))
    #expect(subscriber.values.map(\.summary) == ["1", "2", "5", "final hello"] && subscriber.ends == [nil])
  }

  @Test("a stale response is not merged with progress")
  func staleWaits() async throws {
    try await fixture.cacheStale("old")
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("hello", etag: "\"new\"").chunked(by: 1).bodyHeld(by: gate))
    // The first demand is for the stale response. The subscriber then demands no more, so all other events wait.
    let subscriber = EventsSubscriber(demand: .max(1))
    fixture.manager.eventsPublisher(for: fixture.url, options: .policy(.staleWhileRevalidate)).subscribe(subscriber)
    await subscriber.received(1)
    gate.open()
    await fixture.manager.close()
    #expect(subscriber.values.map(\.summary) == ["stale old"] && subscriber.ends.isEmpty)
    subscriber.request(.unlimited)
    #expect(subscriber.values.map(\.summary) == ["stale old", "5", "final hello"] && subscriber.ends == [nil])
  }

  @Test("no load starts without demand")
  func noDemand() async throws {
    let subscriber = EventsSubscriber()
    fixture.manager.eventsPublisher(for: fixture.url).subscribe(subscriber)
    subscriber.request(.none)
    await fixture.manager.close()
    #expect(fixture.network.requests.isEmpty && subscriber.values.isEmpty && subscriber.ends.isEmpty)
  }

  @Test("events demanded inside receive are delivered", arguments: [true, false])
  func reentrantDemand(byReturning: Bool) async throws {
    let gate = Gate()
    script(gate)
    let subscriber = EventsSubscriber(demand: .max(1)) { subscriber, _ in
      if byReturning { return .max(1) }
      subscriber.request(.max(1))
      return .none
    }
    fixture.manager.eventsPublisher(for: fixture.url).subscribe(subscriber)
    gate.open()
    await subscriber.ended()
    #expect(subscriber.values.last?.summary == "final hello" && subscriber.ends == [nil])
    #expect(!subscriber.hasOverlap && !subscriber.isLate)
  }

  @Test("an error needs no demand, and follows all undelivered events", arguments: [true, false])
  func failure(isWaiting: Bool) async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("hello").chunked(by: 1).bodyHeld(by: gate).cut(after: isWaiting ? 3 : 1))
    let subscriber = EventsSubscriber(demand: .max(1))
    fixture.manager.eventsPublisher(for: fixture.url).subscribe(subscriber)
    gate.letThrough()
    await subscriber.received(1)
    gate.open()
    await fixture.manager.close()
    if isWaiting {
      #expect(subscriber.ends.isEmpty)
      subscriber.request(.max(1))
      #expect(subscriber.values.map(\.summary) == ["1", "3"])
    }
    await subscriber.ended()
    subscriber.request(.unlimited)
    #expect(subscriber.values.count == (isWaiting ? 2 : 1) && subscriber.ends == [.truncatedBody])
  }

  @Test("an operator that needs only the first event cancels the transfer")
  func first() async throws {
    let gate = Gate()
    script(gate)
    let subscriber = EventsSubscriber(demand: .unlimited)
    fixture.manager.eventsPublisher(for: fixture.url).first().subscribe(subscriber)
    gate.letThrough()
    await subscriber.ended()
    #expect(subscriber.values.map(\.summary) == ["1"] && subscriber.ends == [nil])
    try await Polling.until { fixture.network.cancelledBodies == 1 }
  }

  // MARK: Queues and threads

  @Test("the subscriber is called on the queue of the options, and waiting progress is merged")
  func queue() async throws {
    let gate = Gate()
    script(gate)
    let queue = SuspendedQueue()
    let isElsewhere = Lock(false)
    let subscriber = EventsSubscriber(demand: .unlimited) { _, _ in
      if !queue.isCurrent { isElsewhere.withLock { $0 = true } }
      return .none
    }
    let options = RequestOptions { $0.callbackQueue = .dispatch(queue.queue) }
    fixture.manager.eventsPublisher(for: fixture.url, options: options).subscribe(subscriber)
    gate.open()
    await fixture.manager.close()
    #expect(subscriber.values.isEmpty && subscriber.ends.isEmpty)
    queue.resume()
    await subscriber.ended()
    #expect(subscriber.values.map(\.summary) == ["5", "final hello"] && subscriber.ends == [nil])
    #expect(!isElsewhere.withLock { $0 })
  }

  @Test("events that wait for the queue are not delivered after a cancellation", arguments: [true, false])
  func queueAfterCancellation(ofEvents: Bool) async throws {
    let gate = Gate()
    script(gate)
    let queue = SuspendedQueue()
    let options = RequestOptions { $0.callbackQueue = .dispatch(queue.queue) }
    let events = EventsSubscriber(demand: .unlimited)
    let bytes = RecordingSubscriber<Resource<Data>>(demand: .unlimited)
    if ofEvents {
      fixture.manager.eventsPublisher(for: fixture.url, options: options).subscribe(events)
    } else {
      fixture.manager.publisher(for: fixture.url, options: options).subscribe(bytes)
    }
    gate.open()
    await fixture.manager.close()
    events.cancel()
    bytes.cancel()
    queue.resume()
    await queue.emptied()
    #expect(events.values.isEmpty && events.ends.isEmpty && bytes.values.isEmpty && bytes.ends.isEmpty)
  }

  @Test("the demand of many threads is delivered exactly, in order and one at a time")
  func manyThreads() {
    let sent = 2_000
    let publisher = LoadPublisher<Int>(queue: .immediate, merge: { _, _ in nil }) { channel in
      for number in 0..<sent { channel.send(number) }
    }
    let subscriber = RecordingSubscriber<Int>()
    publisher.subscribe(subscriber)
    DispatchQueue.concurrentPerform(iterations: 8) { _ in for _ in 0..<100 { subscriber.request(.max(2)) } }
    #expect(subscriber.values == Array(0..<1_600) && subscriber.ends.isEmpty && !subscriber.hasOverlap)
  }

  @Test("each event is delivered once while some threads demand and another one sends")
  func sendingThread() {
    let channels = Lock<EventChannel<Int>?>(nil)
    let publisher = LoadPublisher<Int>(queue: .immediate, merge: { _, _ in nil }) { channel in channels.withLock { $0 = channel }
    }
    let subscriber = RecordingSubscriber<Int>(demand: .max(1))
    publisher.subscribe(subscriber)
    let channel = channels.withLock { $0 }
    DispatchQueue.concurrentPerform(iterations: 8) { thread in
      if thread == 0 {
        for number in 0..<699 { channel?.send(number) }
        channel?.finish(with: 699)
      } else {
        for _ in 0..<100 { subscriber.request(.max(1)) }
      }
    }
    #expect(subscriber.values == Array(0..<700) && subscriber.ends == [nil] && !subscriber.hasOverlap && !subscriber.isLate)
  }

  @Test("nothing is delivered after many threads have cancelled and demanded", arguments: 0..<20)
  func cancellingThreads(_: Int) {
    let channels = Lock<EventChannel<Int>?>(nil)
    let abandoned = Lock(0)
    let publisher = LoadPublisher<Int>(queue: .immediate, merge: { _, _ in nil }) { channel in
      channel.onAbandon { abandoned.withLock { $0 += 1 } }
      channels.withLock { $0 = channel }
    }
    let subscriber = RecordingSubscriber<Int>(demand: .max(1))
    publisher.subscribe(subscriber)
    let channel = channels.withLock { $0 }
    DispatchQueue.concurrentPerform(iterations: 8) { thread in
      switch thread {
      case 0: for number in 0..<100 { channel?.send(number) }
      case 1, 2: subscriber.cancel()
      default: for _ in 0..<20 { subscriber.request(.max(1)) }
      }
    }
    let count = subscriber.values.count
    channel?.finish(with: 100)
    subscriber.request(.unlimited)
    #expect(subscriber.values == Array(0..<count) && subscriber.ends.isEmpty && abandoned.withLock { $0 } == 1)
  }
}

/// A serial queue that runs nothing until it is resumed.
private final class SuspendedQueue: Sendable {
  let queue = DispatchQueue(label: "callbacks")
  private let key = DispatchSpecificKey<Bool>()

  init() {
    queue.setSpecific(key: key, value: true)
    queue.suspend()
  }

  /// Whether the caller runs on the queue.
  var isCurrent: Bool { DispatchQueue.getSpecific(key: key) == true }

  func resume() { queue.resume() }

  /// Returns when all work on the queue has run.
  func emptied() async {
    await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
  }
}
#endif
