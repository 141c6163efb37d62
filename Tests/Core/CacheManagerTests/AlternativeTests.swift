import CacheCore
import CacheManager
import CacheTesting
import CacheTransport
import Foundation
import HTTPTypes
import Testing

@Suite("Alternative sources")
struct AlternativeTests {
  let fixture: ManagerFixture
  let mirror: URL
  let second: URL

  init() throws {
    fixture = try ManagerFixture()
    mirror = try #require(URL(string: "https://mirror.example/image.png"))
    second = try #require(URL(string: "https://second.example/image.png"))
  }

  private func options(
    _ sources: [AlternativeSource]? = nil, _ change: (inout RequestOptions) -> Void = { _ in }
  ) -> RequestOptions {
    RequestOptions {
      $0.alternatives = sources ?? [.mirror(mirror), .mirror(second)]
      change(&$0)
    }
  }

  @Test("alternative sources receive no request while the original is available")
  func original() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("original"))

    #expect(try await fixture.manager.load(fixture.url, options: options()).text == "original")
    #expect(fixture.network.requests.count == 1)
  }

  @Test(
    "alternative sources receive requests in order when the original fails",
    arguments: [
      CacheError.Code.connectionRefused, .connectionLost, .hostNotFound, .timedOut, .tlsFailure, .malformedResponse,
      .networkRestricted,
    ])
  func order(_ code: CacheError.Code) async throws {
    fixture.network.respond(to: fixture.url, with: .failure(code))
    fixture.network.respond(to: mirror, with: .response(.serviceUnavailable))
    fixture.network.respond(to: second, with: .ok("second"))

    let resource = try await fixture.manager.load(fixture.url, options: options())

    #expect(resource.text == "second" && resource.url == second && resource.source == .network)
    #expect(fixture.network.requests.map(\.authority) == ["example.com", "mirror.example", "second.example"])
  }

  @Test("an alternative is loaded if the original's status is not accepted, or its body is cut short")
  func badResponses() async throws {
    fixture.network.respond(to: fixture.url, with: .response(.notFound), .ok(Data(count: 1_000)).cut(after: 10))
    fixture.network.respond(to: mirror, with: .ok("first"), .ok("second"))
    let options = options { $0.policy = .reload }

    #expect(try await fixture.manager.load(fixture.url, options: options).text == "first")
    #expect(try await fixture.manager.load(fixture.url, options: options).text == "second")
  }

  @Test("if all sources fail, the error is the original's and lists all failures")
  func failures() async throws {
    fixture.network.respond(to: fixture.url, with: .response(.notFound))
    fixture.network.respond(to: mirror, with: .failure(.connectionRefused))
    fixture.network.respond(to: second, with: .failure(.timedOut))

    let error = try await fixture.failure(fixture.url, options())

    let failures = try #require(error.underlying as? FailureHistory).failures
    #expect(error.code == .unacceptableStatus && error.status == 404 && error.url == fixture.url.absoluteString)
    #expect(error.reason.contains("2 alternatives"))
    #expect(failures.map(\.code) == [.unacceptableStatus, .connectionRefused, .timedOut])
    #expect(failures.map(\.url) == [fixture.url, mirror, second].map(\.absoluteString))
  }

  @Test(
    "alternative sources receive no request after a refusal or a cancellation",
    arguments: [CacheError.Code.refused, .addressRefused, .cancelled])
  func decisions(_ code: CacheError.Code) async throws {
    fixture.network.respond(to: fixture.url, with: .failure(code))

    #expect(try await fixture.failure(fixture.url, options()).code == code)
    #expect(fixture.network.requests.count == 1)
  }

  @Test("alternative sources receive no request if the caller's file cannot be written")
  func fullDisk() async throws {
    let folder = try DownloadFolder()
    fixture.network.respond(to: fixture.url, with: .ok("original"))
    fixture.network.respond(to: mirror, with: .ok("mirrored"))
    var calls = FileSystemCalls.system
    calls.write = { _, _, _ in .failure(.init(number: 28)) }  // ENOSPC

    let error = await #expect(throws: CacheError.self) {
      try await fixture.manager.load(ResourceRequest(fixture.url, options: options()), to: folder.file(), calls: calls)
    }

    #expect(error?.code == .diskFull && error?.path == folder.file().path)
    #expect(fixture.network.requests.count == 1)
  }

  @Test("alternative sources receive no request with the policy cacheOnly")
  func cacheOnly() async throws {
    #expect(try await fixture.failure(fixture.url, options { $0.policy = .cacheOnly }).code == .notCached)
    #expect(fixture.network.requests.isEmpty)
  }

  @Test("alternative sources receive no request after an unsafe method")
  func unsafe() async throws {
    fixture.network.respond(to: fixture.url, with: .failure(.connectionLost))

    await #expect(throws: CacheError.self) {
      try await fixture.manager.load(ResourceRequest(fixture.url, method: .post, options: options()))
    }
    #expect(fixture.network.requests.count == 1)
  }

  @Test("a cancellation stops the alternative sources at once")
  func cancelling() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .failure(.connectionLost))
    fixture.network.respond(to: mirror, with: .ok("late").held(by: gate))
    let load = Task { try await fixture.manager.load(fixture.url, options: options()).text }
    await gate.arrived()

    load.cancel()

    #expect((await load.result).isCancellation)
    gate.open()
    await fixture.manager.close()
    #expect(fixture.network.requests(for: second).isEmpty && fixture.disk.keys.isEmpty)
  }

  @Test("a mirror's response is stored under the original's URL, and every lookup states its source", arguments: [false, true])
  func stored(fromDisk: Bool) async throws {
    fixture.network.respond(to: fixture.url, with: .failure(.connectionRefused))
    fixture.network.respond(to: mirror, with: .ok("bytes", etag: "\"m\"", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url, options: options())
    if fromDisk { fixture.restart() }

    let again = try await fixture.manager.load(fixture.url)

    #expect(again.text == "bytes" && again.source == (fromDisk ? .disk : .memory) && again.url == mirror)
    #expect(again.key.resource == fixture.url.absoluteString)
    #expect(try await fixture.manager.lookup(mirror) == .miss)
  }

  @Test("validators of a mirror are never sent to the original, nor those of the original to a mirror")
  func validators() async throws {
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"o\""), .failure(.connectionLost), .ok("new", etag: "\"o2\""))
    fixture.network.respond(
      to: mirror, with: .ok("mirrored", etag: "\"m\"", fields: [.lastModified: "Thu, 01 Jan 2026 00:00:00 GMT"]))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(1))

    let mirrored = try await fixture.manager.load(fixture.url, options: options())
    fixture.clock.advance(by: .seconds(1))
    let new = try await fixture.manager.load(fixture.url, options: options())

    #expect(mirrored.text == "mirrored" && mirrored.validation == .modified)
    #expect(new.text == "new" && new.url == fixture.url)
    #expect(fixture.network.requests.map { $0.headerFields[.ifNoneMatch] } == [nil, "\"o\"", nil, nil])
    #expect(fixture.network.requests.allSatisfy { $0.headerFields[.ifModifiedSince] == nil })
  }

  @Test("a stored response that cannot be confirmed is shown only if all alternatives fail")
  func staleLast() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("old", etag: "\"1\""), .failure(.offline), .failure(.offline))
    fixture.network.respond(to: mirror, with: .failure(.offline), .ok("mirrored"))
    fixture.network.respond(to: second, with: .failure(.offline))
    _ = try await fixture.manager.load(fixture.url)

    let stale = try await fixture.manager.load(fixture.url, options: options())
    let mirrored = try await fixture.manager.load(fixture.url, options: options())

    #expect(stale.text == "old" && stale.validation == .failed)
    #expect(mirrored.text == "mirrored")
  }

  @Test("a stored response replaces the remains of an interrupted alternative in the caller's file", arguments: [10, 400_000])
  func staleInFile(_ cut: Int) async throws {
    let folder = try DownloadFolder()
    let old = Data(repeating: 1, count: 300_000)
    fixture.network.respond(to: fixture.url, with: .ok(old, etag: "\"1\""), .failure(.offline))
    fixture.network.respond(to: mirror, with: .ok(Data(repeating: 2, count: 500_000)).cut(after: cut))
    _ = try await fixture.manager.load(fixture.url)

    let request = ResourceRequest(fixture.url, options: options([.mirror(mirror)]))
    let film = try await fixture.manager.load(request, to: folder.file())

    #expect(film.validation == .failed && folder.content() == old)
  }

  @Test("an alternative's error or redirect is not stored as the original's")
  func otherResponses() async throws {
    fixture.network.serve(fixture.url) { _ in .failure(.connectionLost) }
    fixture.network.respond(to: mirror, with: .response(.notFound, fields: [.cacheControl: "max-age=600"]))
    fixture.network.respond(
      to: second, with: .response(.movedPermanently, fields: [.location: "/there", .cacheControl: "max-age=600"]))
    let there = try #require(URL(string: "https://second.example/there"))
    fixture.network.respond(to: there, with: .ok("there", cacheControl: "max-age=600"))

    let resource = try await fixture.manager.load(fixture.url, options: options())

    #expect(resource.text == "there" && resource.url == there && resource.redirects == [second])
    #expect(fixture.disk.keys.map(\.resource) == [fixture.url.absoluteString])
    #expect(try await fixture.manager.load(fixture.url).text == "there")
  }

  @Test("the caller's credentials, cookies and conditions are sent only to the original")
  func credentials() async throws {
    let sibling = try fixture.url("/sibling.png")
    fixture.network.respond(to: fixture.url, with: .failure(.connectionLost))
    fixture.network.respond(to: sibling, with: .failure(.connectionLost))
    fixture.network.respond(to: mirror, with: .ok("bytes"))
    let fields: HTTPFields = [.authorization: "secret", .cookie: "a=b", .ifNoneMatch: "\"1\"", .accept: "image/*"]

    _ = try await fixture.manager.load(
      ResourceRequest(fixture.url, headerFields: fields, options: options([.mirror(sibling), .mirror(mirror)])))

    let asked = fixture.network.requests.map(\.headerFields)
    #expect(asked.map { $0[.authorization] } == ["secret", "secret", nil])
    #expect(asked.map { $0[.ifNoneMatch] } == ["\"1\"", nil, nil])
    #expect(asked.allSatisfy { $0[.accept] == "image/*" } && asked[2][.cookie] == nil)
  }

  @Test("an alternative source may use a scheme handler")
  func provider() async throws {
    let fixture = try ManagerFixture { $0.schemeHandlers = ["data": DataURLDownloader()] }
    fixture.network.respond(to: fixture.url, with: .failure(.offline))
    let options = RequestOptions { $0.alternatives = [.mirror(URL(string: "data:,placeholder") ?? fixture.url)] }

    let resource = try await fixture.manager.load(fixture.url, options: options)

    #expect(resource.text == "placeholder" && resource.source == .schemeHandler)
  }

  // MARK: Low data

  private func lowDataFixture(_ thumbnail: URL) throws -> (ManagerFixture, ClosureDownloader) {
    let network = ClosureDownloader { seen throws(CacheError) in
      if seen.head.path == thumbnail.path() {
        return .streaming(["small"], fields: [.cacheControl: "max-age=60", .eTag: "\"s\""])
      }
      guard seen.networkAccess.contains(.constrained) else {
        throw CacheError(.networkRestricted, reason: "low-data mode")
      }
      return .streaming(["large"], fields: [.cacheControl: "max-age=60"])
    }
    return (try ManagerFixture { $0.downloader = network }, network)
  }

  @Test("a low-data alternative is loaded if the network is restricted, and is not stored as the original")
  func lowData() async throws {
    let thumbnail = try fixture.url("/thumbnail.png")
    let (fixture, network) = try lowDataFixture(thumbnail)

    let small = try await fixture.manager.load(fixture.url, options: options([.lowData(thumbnail)]))
    let again = try await fixture.manager.load(fixture.url, options: options([.lowData(thumbnail)]))
    let large = try await fixture.manager.load(fixture.url)

    #expect(small.text == "small" && small.url == thumbnail && small.key.resource == thumbnail.absoluteString)
    #expect(again.source == .memory && again.text == "small")
    #expect(large.text == "large" && large.source == .network)
    #expect(network.seen.map(\.networkAccess) == [[.cellular, .expensive], .all, [.cellular, .expensive], .all])
  }

  @Test("a low-data alternative is not loaded after any other failure")
  func lowDataUnused() async throws {
    let thumbnail = try fixture.url("/thumbnail.png")
    fixture.network.respond(to: fixture.url, with: .failure(.connectionLost))

    let error = try await fixture.failure(fixture.url, options([.lowData(thumbnail)]))

    #expect(error.code == .connectionLost && error.underlying == nil)
    #expect(fixture.network.requests.count == 1)
  }

  @Test("the downloader receives the networks that a load may use")
  func networkAccess() async throws {
    let (fixture, network) = try lowDataFixture(fixture.url("/thumbnail.png"))

    _ = try await fixture.failure(fixture.url, RequestOptions { $0.networkAccess = [.cellular] })

    #expect(network.seen.map(\.networkAccess) == [.cellular])
  }
}
