import CacheCore
import CacheManager
import CacheTelemetry
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Load records", .timeLimit(.minutes(30)))
struct LoadRecordTests {
  private let records = Received<LoadRecord>()

  private func fixture(_ change: (inout ResourceManager.Configuration) -> Void = { _ in }) throws -> TelemetryFixture {
    try TelemetryFixture({ _ in [.records { [records] in records.append($0) }] }, change)
  }

  private func phases(_ record: LoadRecord) -> [String] {
    record.phases.map { phase in
      let work: String =
        switch phase.work {
        case .transfer(let transfer):
          "\(transfer.isConditional ? "revalidation" : "transfer") \(transfer.status ?? 0) \(transfer.error?.code.rawValue ?? "")"
        case .transform(let origin): "\(origin.rawValue)"
        case .store(let bytes): "store \(bytes)"
        }
      return "\(phase.start / .seconds(1)) \(phase.duration / .seconds(1)) \(work)"
    }
  }

  @Test("the record of a network load contains the transfer, the commit and the value, with their times")
  func network() async throws {
    let fixture = try fixture()
    let before = fixture.clock.now
    try await fixture.loadSlowly()
    await fixture.telemetry.idle()

    let record = try #require(records.all.first)
    #expect(records.all.count == 1)
    #expect(phases(record) == ["0.0 3.0 transfer 200 ", "3.0 0.0 store 5", "3.0 3.0 transformed"])
    #expect(record.startedAt == before)
    #expect(record.duration == .seconds(6))
    #expect(record.source == .network)
    #expect(record.bytesOnWire == 5)
    #expect(record.transfers.map(\.metrics.timeToHead) == [.seconds(2)])
    #expect(!record.isHit && record.error == nil)
  }

  @Test("a hit has no phases")
  func hit() async throws {
    let fixture = try fixture()
    try await fixture.loadSlowly()
    await fixture.telemetry.idle()
    _ = try await fixture.manager.load(fixture.url, as: fixture.slow)
    let record = try #require(records.all.last)
    #expect(records.all.count == 2)
    #expect(record.isHit && record.phases.isEmpty && record.source == .memory && record.duration == .zero)
  }

  @Test("records contain the requests of a 304, an error and a redirect")
  func requests() async throws {
    let fixture = try fixture()
    fixture.network.respond(to: fixture.url, with: .ok("bytes", etag: "\"1\""), .notModified(), .failure(.connectionLost))
    for _ in 1...3 {
      _ = try await fixture.manager.load(fixture.url)
      await fixture.telemetry.idle()
    }
    let moved = try #require(URL(string: "https://example.com/moved"))
    fixture.network.respond(to: moved, with: .redirect(to: "/target"))
    fixture.network.respond(to: try #require(URL(string: "https://example.com/target")), with: .response(.notFound))
    await #expect(throws: CacheError.self) { try await fixture.manager.load(moved) }
    await fixture.telemetry.idle()

    let told = records.all.map { record in
      "\(record.source?.rawValue ?? "-") \((record.error ?? record.fallbackReason)?.code.rawValue ?? "-"): "
        + record.transfers.map { "\($0.isConditional) \($0.status ?? 0) \($0.error?.code.rawValue ?? "-")" }.joined(
          separator: ", ")
    }
    #expect(
      told == [
        "network -: false 200 -", "revalidated -: true 304 -", "memory connectionLost: true 0 connectionLost",
        "- unacceptableStatus: false 302 -, false 404 -",
      ])
  }

  @Test("the record of a joined load names the other load and has no transfer")
  func joined() async throws {
    let joins = Received<LoadID>()
    let fixture = try fixture { configuration in
      configuration.observer = JoinObserver(joins, next: configuration.observer)
    }
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("bytes").held(by: gate))
    async let first = fixture.manager.load(fixture.url)
    await gate.arrived()
    async let second = fixture.manager.load(fixture.url)
    try await Polling.until { joins.all.count == 1 }
    gate.open()
    _ = try await (first, second)
    await fixture.telemetry.idle()

    let leader = try #require(records.all.first { $0.joined == nil })
    let follower = try #require(records.all.first { $0.joined != nil })
    #expect(follower.joined == leader.load)
    #expect(leader.transfers.count == 1 && follower.transfers.isEmpty)
    #expect(follower.source == .network)
  }

  @Test("a revalidation that continues after the result is in the record of its load, with its commit")
  func background() async throws {
    let fixture = try fixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=60"),
      .ok("new", cacheControl: "max-age=60").bodyHeld(by: gate))
    _ = try await fixture.manager.load(fixture.url)
    await fixture.telemetry.idle()
    fixture.clock.advance(by: .seconds(61))
    let stale = try await fixture.manager.load(fixture.url, options: RequestOptions { $0.policy = .staleWhileRevalidate })
    await gate.arrived()
    #expect(records.all.count == 1)
    fixture.clock.advance(by: .seconds(4))
    gate.open()
    await fixture.telemetry.idle()

    #expect(stale.isStale)
    let record = try #require(records.all.last)
    #expect(records.all.count == 2)
    #expect(phases(record) == ["0.0 4.0 revalidation 200 ", "4.0 0.0 store 3"])
    #expect(record.source == .memory && record.duration == .zero)
  }

  @Test("a redirect to the same URL has separate requests, in the order in which they were sent")
  func sameURL() async throws {
    let fixture = try fixture()
    let gate = Gate()
    // The body of the redirect is read after the load and ends last.
    fixture.network.respond(
      to: fixture.url,
      with: .response(.found, fields: [.location: "/image.png?token=secret"], body: Data("moved".utf8)).bodyHeld(by: gate),
      .ok("bytes")
    )
    _ = try await fixture.manager.load(fixture.url)
    gate.open()
    await fixture.telemetry.idle()
    #expect(records.all.first?.transfers.map(\.status) == [302, 200])
    #expect(records.all.first?.transfers.last?.metrics.bytesOnWire == 5)
  }

  @Test("the record of an HTTP request contains the body and the commit of the response")
  func response() async throws {
    let fixture = try fixture()
    fixture.network.respond(to: fixture.url, with: .ok("bytes", cacheControl: "max-age=60").withoutLength())
    let request = try HTTPRequest(resource: fixture.url)
    for _ in 1...2 { _ = try await fixture.manager.respond(to: request).body.collect() }
    await fixture.telemetry.idle()
    let record = try #require(records.all.first { !$0.isHit })
    #expect(phases(record) == ["0.0 0.0 transfer 200 ", "0.0 0.0 store 5"])
    #expect(records.all.contains { $0.isHit && $0.source == .memory })
  }

  @Test("the record of a cancelled load contains its cancelled transfer, and no state remains")
  func cancelled() async throws {
    let fixture = try fixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("bytes").bodyHeld(by: gate))
    let load = Task { try await fixture.manager.load(fixture.url) }
    await gate.arrived()
    load.cancel()
    _ = await load.result
    gate.open()
    await fixture.telemetry.idle()

    #expect(records.all.map { $0.error?.isCancellation } == [true])
    #expect(records.all.flatMap(\.transfers).map { $0.error?.isCancellation } == [true])
  }

  @Test("concurrent loads produce one record each, and no state remains")
  func many() async throws {
    let fixture = try fixture { $0.store = nil }
    for index in 0..<50 {
      let url = try #require(URL(string: "https://example.com/\(index)"))
      fixture.network.serve(url) { _ in .ok("bytes", cacheControl: "max-age=60").chunked(by: 1) }
    }
    await withTaskGroup(of: Void.self) { group in
      for index in 0..<500 {
        group.addTask {
          guard let url = URL(string: "https://example.com/\(index % 50)") else { return }
          _ = try? await fixture.manager.load(url)
        }
      }
    }
    await fixture.telemetry.idle()
    #expect(records.all.count == 500)
    #expect(records.all.flatMap(\.transfers).count == fixture.network.requests.count)
    #expect(Set(records.all.map(\.load)).count == 500)
  }

  @Test("telemetry without a receiver is nil")
  func empty() {
    #expect(Telemetry([]) == nil)
  }
}

/// An observer that records joined loads and passes on all events.
private struct JoinObserver: LoadObserver {
  let id = ComponentID.unique(JoinObserver.self)
  let joins: Received<LoadID>
  let next: (any LoadObserver)?

  init(_ joins: Received<LoadID>, next: (any LoadObserver)?) { (self.joins, self.next) = (joins, next) }

  func observe(_ event: CacheEvent, of load: LoadID) {
    if case .joined = event { joins.append(load) }
    next?.observe(event, of: load)
  }
}

@Suite("Intervals for Instruments")
struct IntervalTableTests {
  private let told = Received<String>()

  private func table(isEnabled: @escaping @Sendable () -> Bool = { true }) -> IntervalTable<Int> {
    let count = Lock(0)
    return IntervalTable(
      begin: { [told] kind, url in
        guard isEnabled() else { return nil }
        let number = count.withLock { count in
          count += 1
          return count
        }
        told.append("\(kind) \(number) begins")
        return number
      },
      end: { [told] kind, number, outcome in told.append("\(kind) \(number) ends: \(outcome)") })
  }

  private let first = LoadID()
  private let second = LoadID()

  @Test("each interval of a load and of its transfers for one URL ends once, with its outcome")
  func pairs() throws {
    let url = LoadURL(try #require(URL(string: "https://example.com/")))
    let table = table()
    for event: CacheEvent in [
      .started(url: url), .requestSent(url: url, reason: .uriMiss, conditional: false, transfer: 1),
      .requestSent(url: url, reason: .uriMiss, conditional: false, transfer: 2),
      .transferEnded(url: url, metrics: TransferMetrics(), error: .cancelled, transfer: 2),
      .transferEnded(url: url, metrics: TransferMetrics(bytesOnWire: 5), error: nil, transfer: 1),
      .finished(url: url, source: .network, fallbackReason: nil, error: nil, duration: .zero),
      .finished(url: url, source: .network, fallbackReason: nil, error: nil, duration: .zero),
    ] { table.receive(event, first) }
    table.receive(.hit(url: url, source: .memory, duration: .zero), second)
    table.receive(.transferEnded(url: url, metrics: TransferMetrics(), error: nil, transfer: 3), second)
    #expect(
      told.all == [
        "load 1 begins", "transfer 2 begins", "transfer 3 begins", "transfer 3 ends: cancelled", "transfer 2 ends: 5 bytes",
        "load 1 ends: network",
      ])
    #expect(table.count == 0)
  }

  @Test("an interval of a view ends with the source or the error, and those of two views are separate")
  func views() throws {
    let url = LoadURL(try #require(URL(string: "https://example.com/")))
    let table = table()
    table.receive(first, url, nil)
    table.receive(second, url, nil)
    table.receive(second, url, .failure(.cancelled))
    table.receive(first, url, .success(.disk))
    #expect(told.all == ["view 1 begins", "view 2 begins", "view 2 ends: cancelled", "view 1 ends: disk"])
    #expect(table.count == 0)
  }

  @Test("the outcome of a stale response is its reason")
  func stale() throws {
    let url = LoadURL(try #require(URL(string: "https://example.com/")))
    let (table, reason) = (table(), CacheError(.offline, reason: "no network"))
    table.receive(.started(url: url), first)
    table.receive(.finished(url: url, source: .memory, fallbackReason: reason, error: nil, duration: .zero), first)
    #expect(told.all == ["load 1 begins", "load 1 ends: stale: offline"])
  }

  @Test("a system that does not record has no open intervals")
  func disabled() throws {
    let url = LoadURL(try #require(URL(string: "https://example.com/")))
    let table = table { false }
    table.receive(.started(url: url), first)
    #expect(table.count == 0)
    table.receive(.finished(url: url, source: .network, fallbackReason: nil, error: nil, duration: .zero), first)
    #expect(told.all.isEmpty)
  }
}
