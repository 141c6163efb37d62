import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Load identifiers")
struct LoadIdentifierTests {
  private let fixture: ManagerFixture

  init() throws { fixture = try ManagerFixture() }

  private var observer: RecordingObserver { fixture.observer }

  private func requests(of load: LoadID) -> Int {
    observer.events(of: load).filter { if case .requestSent = $0 { true } else { false } }.count
  }

  private func ends(of load: LoadID) -> Int {
    observer.events(of: load).filter { if case .finished = $0 { true } else { false } }.count
  }

  @Test("two loads of one URL have different identifiers, and each has its own request and end")
  func loads() async throws {
    fixture.network.serve(fixture.url) { _ in .ok("bytes") }

    for _ in 1...2 { _ = try await fixture.manager.load(fixture.url, options: .policy(.reload)) }

    #expect(observer.loads.count == 2)
    for load in observer.loads { #expect(requests(of: load) == 1 && ends(of: load) == 1) }
  }

  @Test("a load that joins another one names it, and the request belongs to the load that sent it")
  func joined() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("bytes").held(by: gate))

    async let first = fixture.manager.load(fixture.url)
    await gate.arrived()
    async let second = fixture.manager.load(fixture.url)
    await observer.joined()
    gate.open()
    _ = try await (first, second)

    let (leader, follower) = (try #require(observer.loads.first), try #require(observer.loads.last))
    #expect(observer.loads.count == 2)
    #expect(requests(of: leader) == 1 && requests(of: follower) == 0)
    #expect(ends(of: leader) == 1 && ends(of: follower) == 1)
    guard case .joined(_, to: leader) = observer.events(of: follower).dropFirst().first else {
      Issue.record("\(observer.events(of: follower))")
      return
    }
  }

  @Test("redirects, alternatives and the stores' events belong to the load that causes them")
  func stages() async throws {
    let mirror = try #require(URL(string: "https://mirror.example/x"))
    fixture.network.respond(to: fixture.url, with: .redirect(to: "/second"))
    fixture.network.respond(to: try fixture.url("/second"), with: .failure(.connectionLost))
    fixture.network.respond(to: mirror, with: .ok("bytes", etag: "\"1\""))

    _ = try await fixture.manager.load(fixture.url, options: RequestOptions { $0.alternatives = [.mirror(mirror)] })

    let load = try #require(observer.loads.first)
    #expect(observer.loads == [load] && requests(of: load) == 3 && ends(of: load) == 1)
  }

  @Test("a background revalidation belongs to the load that started it")
  func background() async throws {
    fixture.network.respond(
      to: fixture.url, with: .ok("bytes", etag: "\"1\"", cacheControl: "max-age=1, stale-while-revalidate=60"),
      .notModified(etag: "\"1\""))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(10))

    _ = try await fixture.manager.load(fixture.url)
    await observer.first { if case .revalidated = $0 { true } else { false } }

    let load = try #require(observer.loads.last)
    #expect(observer.loads.count == 2 && requests(of: load) == 1 && ends(of: load) == 1)
  }

  @Test("a task has the identifier of its load's events, from the network and from memory")
  func task() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("bytes", cacheControl: "max-age=60"))
    var tasks: [LoadTask] = []
    for _ in 1...2 {
      await withCheckedContinuation { continuation in
        tasks.append(fixture.manager.load(fixture.url) { _ in continuation.resume() })
      }
    }

    #expect(observer.loads == tasks.map(\.id))
  }

  @Test("the task of a load into a file has the identifier of its load's events")
  func fileTask() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("bytes"))
    let folder = try DownloadFolder()
    let ended = Gate()

    let task = fixture.manager.load(fixture.url, to: folder.file()) { _ in ended.open() }
    await ended.pass()

    #expect(observer.loads == [task.id])
  }

  @Test("an HTTP request that joins another one names it")
  func responses() async throws {
    let gate = Gate()
    fixture.network.serve(fixture.url) { _ in .ok("bytes", cacheControl: "max-age=60").held(by: gate) }

    let both = fixture.send(times: 2)
    await observer.joined()
    gate.open()
    #expect(try await both.value.map(\.text) == ["bytes", "bytes"])

    let leader = try #require(observer.loads.first { requests(of: $0) == 1 })
    let follower = try #require(observer.loads.first { $0 != leader })
    guard case .joined(_, to: leader) = observer.events(of: follower).dropFirst().first else {
      Issue.record("\(observer.events(of: follower))")
      return
    }
  }
}
