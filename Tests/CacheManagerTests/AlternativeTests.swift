import CacheCore
import CacheManager
import CacheTesting
import CacheTransport
import Foundation
import HTTPTypes
import Testing

@Suite("Alternative sources")
struct AlternativeTests {
  let house: House
  let mirror: URL
  let second: URL

  init() throws {
    house = try House()
    mirror = try #require(URL(string: "https://mirror.example/picture.png"))
    second = try #require(URL(string: "https://second.example/picture.png"))
  }

  private func options(
    _ sources: [AlternativeSource]? = nil, _ change: (inout RequestOptions) -> Void = { _ in }
  ) -> RequestOptions {
    RequestOptions {
      $0.alternatives = sources ?? [.mirror(mirror), .mirror(second)]
      change(&$0)
    }
  }

  @Test("are not asked while the original can be had")
  func original() async throws {
    house.network.answer(house.url, .ok("original"))

    #expect(try await house.manager.load(house.url, options: options()).text == "original")
    #expect(house.network.requests.count == 1)
  }

  @Test(
    "are asked in order when it can't",
    arguments: [
      CacheError.Code.connectionRefused, .connectionLost, .hostNotFound, .timedOut, .tlsFailure, .malformedResponse,
      .networkRestricted,
    ])
  func order(_ code: CacheError.Code) async throws {
    house.network.answer(house.url, .failure(code))
    house.network.answer(mirror, .response(.serviceUnavailable))
    house.network.answer(second, .ok("second"))

    let resource = try await house.manager.load(house.url, options: options())

    #expect(resource.text == "second" && resource.url == second && resource.source == .network)
    #expect(house.network.requests.map(\.authority) == ["example.com", "mirror.example", "second.example"])
  }

  @Test("are asked when the original's status is none that is accepted, or its body is cut short")
  func badAnswers() async throws {
    house.network.answer(house.url, .response(.notFound), .ok(Data(count: 1_000)).cut(after: 10))
    house.network.answer(mirror, .ok("first"), .ok("second"))
    let options = options { $0.policy = .reload }

    #expect(try await house.manager.load(house.url, options: options).text == "first")
    #expect(try await house.manager.load(house.url, options: options).text == "second")
  }

  @Test("when none can be had, the error is the original's, and tells all of them")
  func failures() async throws {
    house.network.answer(house.url, .response(.notFound))
    house.network.answer(mirror, .failure(.connectionRefused))
    house.network.answer(second, .failure(.timedOut))

    let error = try await house.failure(house.url, options())

    let failures = try #require(error.underlying as? SourceFailures).failures
    #expect(error.code == .unacceptableStatus && error.status == 404 && error.url == house.url.absoluteString)
    #expect(error.reason.contains("2 alternatives"))
    #expect(failures.map(\.code) == [.unacceptableStatus, .connectionRefused, .timedOut])
    #expect(failures.map(\.url) == [house.url, mirror, second].map(\.absoluteString))
  }

  @Test(
    "are not asked when somebody has decided that there is no answer",
    arguments: [CacheError.Code.refused, .addressRefused, .cancelled])
  func decisions(_ code: CacheError.Code) async throws {
    house.network.answer(house.url, .failure(code))

    #expect(try await house.failure(house.url, options()).code == code)
    #expect(house.network.requests.count == 1)
  }

  @Test("are not asked when it is the caller's file that can't be written")
  func fullDisk() async throws {
    let folder = try DownloadFolder()
    house.network.answer(house.url, .ok("original"))
    house.network.answer(mirror, .ok("mirrored"))
    var calls = DraftCalls.system
    calls.write = { _, _, _ in .failure(.init(number: 28)) }  // ENOSPC

    let error = await #expect(throws: CacheError.self) {
      try await house.manager.load(ResourceRequest(house.url, options: options()), to: folder.file(), calls: calls)
    }

    #expect(error?.code == .diskFull && error?.path == folder.file().path)
    #expect(house.network.requests.count == 1)
  }

  @Test("are not asked when only the cache may be")
  func cacheOnly() async throws {
    #expect(try await house.failure(house.url, options { $0.policy = .cacheOnly }).code == .notCached)
    #expect(house.network.requests.isEmpty)
  }

  @Test("are not asked for what may have changed something")
  func unsafe() async throws {
    house.network.answer(house.url, .failure(.connectionLost))

    await #expect(throws: CacheError.self) {
      try await house.manager.load(ResourceRequest(house.url, method: .post, options: options()))
    }
    #expect(house.network.requests.count == 1)
  }

  @Test("a cancel stops them at once")
  func cancelling() async throws {
    let gate = Gate()
    house.network.answer(house.url, .failure(.connectionLost))
    house.network.answer(mirror, .ok("late").held(by: gate))
    let load = Task { try await house.manager.load(house.url, options: options()).text }
    await gate.arrived()

    load.cancel()

    #expect((await load.result).isCancellation)
    gate.open()
    await house.manager.close()
    #expect(house.network.requests(for: second).isEmpty && house.disk.keys.isEmpty)
  }

  @Test("an answer is stored under what was asked for, and every look there says where it came from", arguments: [false, true])
  func stored(fromDisk: Bool) async throws {
    house.network.answer(house.url, .failure(.connectionRefused))
    house.network.answer(mirror, .ok("bytes", etag: "\"m\"", cacheControl: "max-age=60"))
    _ = try await house.manager.load(house.url, options: options())
    if fromDisk { house.restart() }

    let again = try await house.manager.load(house.url)

    #expect(again.text == "bytes" && again.source == (fromDisk ? .disk : .memory) && again.url == mirror)
    #expect(again.key.resource == house.url.absoluteString)
    #expect(try await house.manager.lookup(mirror) == .miss)
  }

  @Test("the original is never asked about a mirror's validators, nor a mirror about the original's")
  func validators() async throws {
    house.network.answer(
      house.url, .ok("old", etag: "\"o\""), .failure(.connectionLost), .ok("new", etag: "\"o2\""))
    house.network.answer(
      mirror, .ok("mirrored", etag: "\"m\"", fields: [.lastModified: "Thu, 01 Jan 2026 00:00:00 GMT"]))
    _ = try await house.manager.load(house.url)
    house.clock.advance(by: .seconds(1))

    let mirrored = try await house.manager.load(house.url, options: options())
    house.clock.advance(by: .seconds(1))
    let new = try await house.manager.load(house.url, options: options())

    #expect(mirrored.text == "mirrored" && mirrored.validation == .modified)
    #expect(new.text == "new" && new.url == house.url)
    #expect(house.network.requests.map { $0.headerFields[.ifNoneMatch] } == [nil, "\"o\"", nil, nil])
    #expect(house.network.requests.allSatisfy { $0.headerFields[.ifModifiedSince] == nil })
  }

  @Test("what is stored and can't be confirmed is shown only when no alternative can be had")
  func staleLast() async throws {
    house.network.answer(house.url, .ok("old", etag: "\"1\""), .failure(.offline), .failure(.offline))
    house.network.answer(mirror, .failure(.offline), .ok("mirrored"))
    house.network.answer(second, .failure(.offline))
    _ = try await house.manager.load(house.url)

    let stale = try await house.manager.load(house.url, options: options())
    let mirrored = try await house.manager.load(house.url, options: options())

    #expect(stale.text == "old" && stale.validation == .failed)
    #expect(mirrored.text == "mirrored")
  }

  @Test("in a file, too, what stands in is whole, whatever an alternative that broke off has left", arguments: [10, 400_000])
  func staleInFile(_ cut: Int) async throws {
    let folder = try DownloadFolder()
    let old = Data(repeating: 1, count: 300_000)
    house.network.answer(house.url, .ok(old, etag: "\"1\""), .failure(.offline))
    house.network.answer(mirror, .ok(Data(repeating: 2, count: 500_000)).cut(after: cut))
    _ = try await house.manager.load(house.url)

    let request = ResourceRequest(house.url, options: options([.mirror(mirror)]))
    let film = try await house.manager.load(request, to: folder.file())

    #expect(film.validation == .failed && folder.content() == old)
  }

  @Test("an alternative's error or redirect is not stored as the original's")
  func otherAnswers() async throws {
    house.network.serve(house.url) { _ in .failure(.connectionLost) }
    house.network.answer(mirror, .response(.notFound, fields: [.cacheControl: "max-age=600"]))
    house.network.answer(
      second, .response(.movedPermanently, fields: [.location: "/there", .cacheControl: "max-age=600"]))
    let there = try #require(URL(string: "https://second.example/there"))
    house.network.answer(there, .ok("there", cacheControl: "max-age=600"))

    let resource = try await house.manager.load(house.url, options: options())

    #expect(resource.text == "there" && resource.url == there && resource.redirects == [second])
    #expect(house.disk.keys.map(\.resource) == [house.url.absoluteString])
    #expect(try await house.manager.load(house.url).text == "there")
  }

  @Test("credentials, cookies and conditions of the caller's stay with the original")
  func credentials() async throws {
    let sibling = try house.url("/sibling.png")
    house.network.answer(house.url, .failure(.connectionLost))
    house.network.answer(sibling, .failure(.connectionLost))
    house.network.answer(mirror, .ok("bytes"))
    let fields: HTTPFields = [.authorization: "secret", .cookie: "a=b", .ifNoneMatch: "\"1\"", .accept: "image/*"]

    _ = try await house.manager.load(
      ResourceRequest(house.url, headerFields: fields, options: options([.mirror(sibling), .mirror(mirror)])))

    let asked = house.network.requests.map(\.headerFields)
    #expect(asked.map { $0[.authorization] } == ["secret", "secret", nil])
    #expect(asked.map { $0[.ifNoneMatch] } == ["\"1\"", nil, nil])
    #expect(asked.allSatisfy { $0[.accept] == "image/*" } && asked[2][.cookie] == nil)
  }

  @Test("may be something that is no network")
  func provider() async throws {
    let house = try House { $0.schemeHandlers = ["data": DataURLDownloader()] }
    house.network.answer(house.url, .failure(.offline))
    let options = RequestOptions { $0.alternatives = [.mirror(URL(string: "data:,placeholder") ?? house.url)] }

    let resource = try await house.manager.load(house.url, options: options)

    #expect(resource.text == "placeholder" && resource.source == .schemeHandler)
  }

  // MARK: Low data

  private func lowDataHouse(_ thumbnail: URL) throws -> (House, ClosureDownloader) {
    let network = ClosureDownloader { seen throws(CacheError) in
      if seen.head.path == thumbnail.path() {
        return .streaming(["small"], fields: [.cacheControl: "max-age=60", .eTag: "\"s\""])
      }
      guard seen.networkAccess.contains(.constrained) else {
        throw CacheError(.networkRestricted, reason: "low-data mode")
      }
      return .streaming(["large"], fields: [.cacheControl: "max-age=60"])
    }
    return (try House { $0.downloader = network }, network)
  }

  @Test("low data: the smaller resource comes where the original may not be loaded, and is not kept as the original")
  func lowData() async throws {
    let thumbnail = try house.url("/thumbnail.png")
    let (house, network) = try lowDataHouse(thumbnail)

    let small = try await house.manager.load(house.url, options: options([.lowData(thumbnail)]))
    let again = try await house.manager.load(house.url, options: options([.lowData(thumbnail)]))
    let large = try await house.manager.load(house.url)

    #expect(small.text == "small" && small.url == thumbnail && small.key.resource == thumbnail.absoluteString)
    #expect(again.source == .memory && again.text == "small")
    #expect(large.text == "large" && large.source == .network)
    #expect(network.seen.map(\.networkAccess) == [[.cellular, .expensive], .all, [.cellular, .expensive], .all])
  }

  @Test("low data: not for any other failure")
  func lowDataUnused() async throws {
    let thumbnail = try house.url("/thumbnail.png")
    house.network.answer(house.url, .failure(.connectionLost))

    let error = try await house.failure(house.url, options([.lowData(thumbnail)]))

    #expect(error.code == .connectionLost && error.underlying == nil)
    #expect(house.network.requests.count == 1)
  }

  @Test("the networks that a load may use reach the engine")
  func networkAccess() async throws {
    let (house, network) = try lowDataHouse(house.url("/thumbnail.png"))

    _ = try await house.failure(house.url, RequestOptions { $0.networkAccess = [.cellular] })

    #expect(network.seen.map(\.networkAccess) == [.cellular])
  }
}
