import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("The time limits of one request for the durable store", .timeLimit(.minutes(30)))
struct StoreTimeoutOptionTests {
  private func fixture(write: Duration?, read: Duration?) throws -> (fixture: ManagerFixture, store: HeldStore) {
    let parts = try ManagerFixture.held { ($0.storeWriteTimeout, $0.storeReadTimeout) = (write, read) }
    parts.fixture.network.serve(parts.fixture.url) { _ in .ok("body", cacheControl: "max-age=60") }
    return parts
  }

  private func write(_ limit: Override<Duration>) -> RequestOptions { RequestOptions { $0.storeWriteTimeout = limit } }

  private func read(_ limit: Override<Duration>) -> RequestOptions { RequestOptions { $0.storeReadTimeout = limit } }

  @Test("without a limit for writes, a load waits until its response is stored")
  func unlimitedWrite() async throws {
    let (fixture, store) = try fixture(write: .milliseconds(100), read: nil)
    let commit = store.hold(.commit)
    let stored = Task {
      _ = try await fixture.manager.load(fixture.url, options: write(.disabled))
      return store.base.keys.count
    }
    await commit.arrived()
    for _ in 0..<100 { await Task.yield() }
    #expect(fixture.clock.pendingSleeps == 0)
    fixture.clock.advance(by: .seconds(3_600))
    commit.open()
    #expect(try await stored.value == 1)
  }

  @Test("a request has a limit for writes where its manager has none, and closing waits for the late write")
  func limitedWrite() async throws {
    let (fixture, store) = try fixture(write: nil, read: nil)
    let commit = store.hold(.commit)
    let options = write(.use(.milliseconds(100)))
    #expect(try await fixture.whileTimePasses { try await fixture.manager.load(fixture.url, options: options).text } == "body")
    #expect(store.base.keys.isEmpty)
    let closing = Task { await fixture.manager.close() }
    await fixture.clock.sleepers(1)
    commit.open()
    await closing.value
    #expect(store.base.keys.count == 1)
  }

  @Test("closing waits a hundred times the limit of a request, if its manager has none")
  func closing() async throws {
    let (fixture, store) = try fixture(write: nil, read: nil)
    let commit = store.hold(.commit)
    let options = write(.use(.milliseconds(100)))
    _ = try await fixture.whileTimePasses { try await fixture.manager.load(fixture.url, options: options) }
    let start = fixture.clock.uptime
    try await fixture.whileTimePasses { await fixture.manager.close() }
    #expect(fixture.clock.uptime - start >= .seconds(10))
    commit.open()
  }

  @Test("each load has its own limit, and an adapted one comes from that of the manager")
  func limits() async throws {
    let (fixture, store) = try fixture(write: .milliseconds(200), read: nil)
    let commit = store.hold(.commit, all: true)
    let options = [RequestOptions(), write(.adapted { $0 * 10 })]
    var loads: [Task<Duration, any Error>] = []
    for (number, options) in options.enumerated() {
      let url = try fixture.url("/\(number)")
      fixture.network.respond(to: url, with: .ok("body", cacheControl: "max-age=60"))
      loads.append(
        Task {
          _ = try await fixture.manager.load(url, options: options)
          return fixture.clock.uptime
        })
      await commit.arrived(number + 1)
    }
    let start = fixture.clock.uptime
    for _ in 0..<2 {
      await fixture.clock.sleepers(2)
      fixture.clock.advance(by: .milliseconds(100))
    }
    #expect(try await loads[0].value == start + .milliseconds(200))
    let last = loads[1]
    #expect(try await fixture.whileTimePasses { try await last.value } >= start + .seconds(2))
    commit.open()
    await fixture.manager.close()
    #expect(fixture.clock.pendingSleeps == 0)
  }

  @Test("a negative limit that an adapted one results in counts as zero")
  func negative() async throws {
    let (fixture, store) = try fixture(write: .seconds(3_600), read: .seconds(3_600))
    let (look, commit) = (store.hold(.look), store.hold(.commit))
    let options = RequestOptions {
      $0.storeReadTimeout = .adapted { _ in .seconds(-1) }
      $0.storeWriteTimeout = .adapted { _ in .seconds(-1) }
    }
    let start = fixture.clock.uptime
    #expect(try await fixture.whileTimePasses { try await fixture.manager.load(fixture.url, options: options).text } == "body")
    #expect(fixture.clock.uptime - start < .seconds(3_600))
    look.open()
    commit.open()
  }

  @Test("loads with different limits share no work, and equal ones do")
  func coalescing() async throws {
    let (fixture, _) = try fixture(write: .milliseconds(100), read: nil)
    let gate = Gate()
    fixture.network.serve(fixture.url) { _ in .ok("body", cacheControl: "max-age=60").held(by: gate) }
    let options = [RequestOptions(), write(.disabled), write(.disabled), read(.use(.seconds(1)))]
    let loads = options.map { options in Task { try await fixture.manager.load(fixture.url, options: options).text } }
    await gate.arrived(3)
    await fixture.observer.joined()
    gate.open()
    for load in loads { #expect(try await load.value == "body") }
    #expect(fixture.network.requests.count == 3)
  }

  @Test("a load without a limit stores its response while too many writes continue without a load")
  func overloaded() async throws {
    let (fixture, store) = try fixture(write: .milliseconds(100), read: nil)
    let commit = store.hold(.commit, all: true)
    let urls = try (0..<256).map { try fixture.url("/\($0)") }
    for url in urls { fixture.network.respond(to: url, with: .ok("body", cacheControl: "max-age=60")) }
    let loads = urls.map { url in Task { try await fixture.manager.load(url) } }
    await commit.arrived(256)
    for load in loads { _ = try await fixture.whileTimePasses { try await load.value } }

    _ = try await fixture.manager.load(fixture.url)
    #expect(commit.arrivals == 256)
    let patient = Task { try await fixture.manager.load(fixture.url, options: write(.disabled) { $0.policy = .reload }) }
    await commit.arrived(257)
    commit.open()
    _ = try await patient.value
    #expect(store.base.keys.contains { $0.resource == fixture.url.absoluteString })
    await fixture.manager.close()
  }

  private func write(_ limit: Override<Duration>, _ change: (inout RequestOptions) -> Void) -> RequestOptions {
    var options = write(limit)
    change(&options)
    return options
  }

  @Test("without a limit for reads, a load waits for the store")
  func unlimitedRead() async throws {
    let (fixture, store) = try fixture(write: nil, read: .milliseconds(100))
    _ = try await fixture.manager.load(fixture.url)
    fixture.restart()
    let look = store.hold(.look)
    let load = Task { try await fixture.manager.load(fixture.url, options: read(.disabled)).source }
    await look.arrived()
    for _ in 0..<100 { await Task.yield() }
    #expect(fixture.clock.pendingSleeps == 0)
    look.open()
    #expect(try await load.value == .disk)
    #expect(fixture.network.requests.count == 1)
  }

  @Test("a request has a limit for reads where its manager has none")
  func limitedRead() async throws {
    let (fixture, store) = try fixture(write: nil, read: nil)
    let look = store.hold(.look, all: true)
    let options = read(.use(.milliseconds(100)))
    let resource = try await fixture.whileTimePasses { try await fixture.manager.load(fixture.url, options: options) }
    #expect(resource.source == .network)
    #expect(
      fixture.observer.events.contains { event in
        if case .readFailed(_, let error) = event { error.code == .overloaded } else { false }
      })
    look.open()
  }

  @Test("a load does not wait for a prefetch whose commit has no limit")
  func unlimitedPrefetch() async throws {
    let (fixture, store) = try fixture(write: .milliseconds(100), read: nil)
    let commit = store.hold(.commit, all: true)
    let prefetcher = fixture.manager.prefetcher(into: .disk)
    prefetcher.append([fixture.url], options: write(.disabled))
    await commit.arrived()
    #expect(try await fixture.whileTimePasses { try await fixture.manager.load(fixture.url).text } == "body")
    commit.open()
    #expect(await prefetcher.report().failed.isEmpty)
    await fixture.manager.close()
  }

  @Test("a load does not wait for a revalidation whose commit has no limit")
  func unlimitedRevalidation() async throws {
    let (fixture, store) = try fixture(write: .milliseconds(100), read: nil)
    fixture.network.serve(fixture.url) { request in
      request.headerFields[.ifNoneMatch] == nil
        ? .ok("old", etag: "\"1\"", cacheControl: "max-age=1, stale-while-revalidate=60") : .ok("new", cacheControl: "max-age=60")
    }
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(2))
    let commit = store.hold(.commit, all: true)
    @Sendable func texts(_ options: RequestOptions) async throws -> [String] {
      var texts: [String] = []
      for try await event in fixture.manager.events(for: fixture.url, options: options) {
        switch event {
        case .progress: break
        case .stale(let old): texts.append(old.text)
        case .final(let new): texts.append(new.text)
        }
      }
      return texts
    }
    let leader = Task { try await texts(write(.disabled)) }
    await commit.arrived()
    #expect(try await fixture.whileTimePasses { try await texts(RequestOptions()) } == ["old", "new"])
    commit.open()
    #expect(try await leader.value == ["old", "new"])
    #expect(fixture.network.requests.count == 3)
    await fixture.manager.close()
  }

  @Test("a load without a limit does not wait for the write of another load, whose response is in memory")
  func writeOfAnother() async throws {
    let (fixture, store) = try fixture(write: .milliseconds(100), read: nil)
    let commit = store.hold(.commit)
    _ = try await fixture.whileTimePasses { try await fixture.manager.load(fixture.url) }
    #expect(try await fixture.manager.load(fixture.url, options: write(.disabled)).source == .memory)
    #expect(store.base.keys.isEmpty)
    commit.open()
    await fixture.manager.close()
    #expect(store.base.keys.count == 1)
  }

  @Test("closing waits for the write of a load without a limit, and closing within a limit does not")
  func closingUnlimited() async throws {
    let (fixture, store) = try fixture(write: .milliseconds(100), read: nil)
    let commit = store.hold(.commit)
    let load = Task { try await fixture.manager.load(fixture.url, options: write(.disabled)).text }
    await commit.arrived()
    let closing = Task {
      await fixture.manager.close()
      return store.base.keys.count
    }
    #expect(await fixture.manager.close(within: .zero) == false)
    #expect((await load.result.failure as? CacheError)?.code == .closed)
    commit.open()
    #expect(await closing.value == 1)
  }
}
