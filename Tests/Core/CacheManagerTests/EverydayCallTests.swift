import CacheCore
import CacheManager
import CacheTesting
import CacheTransport
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("Everyday calls", .timeLimit(.minutes(30)))
struct EverydayCallTests {
  private static let upper = ResourceTransform<String>(id: "upper", cost: { $0.utf8.count }) { body, _ throws(CacheError) in
    String(decoding: try await body.collect(), as: UTF8.self).uppercased()
  }

  // MARK: Overloads

  @Test("a transform is loaded from a URL in every form in which it is loaded from a request")
  func transformOfURL() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("chair", etag: "\"1\"", cacheControl: "max-age=60") }
    let (values, continuation) = AsyncStream<String?>.makeStream()
    fixture.manager.load(fixture.url, as: Self.upper) { continuation.yield(try? $0.get().value) }
    var iterator = values.makeAsyncIterator()
    #expect(await iterator.next() == "CHAIR")

    fixture.manager.load(ResourceRequest(fixture.url)) { continuation.yield(try? $0.get().text) }
    #expect(await iterator.next() == "chair")

    #expect(try await fixture.manager.events(for: fixture.url, as: Self.upper).finals.map(\.value) == ["CHAIR"])
    #expect(try await fixture.manager.events(for: ResourceRequest(fixture.url)).finals.map(\.text) == ["chair"])
    #expect(try await fixture.manager.lookup(fixture.url, as: Self.upper) == .memory(isFresh: true))
    #expect(fixture.network.requests.count == 1)
  }

  @Test("a URL is loaded into a file in every form in which a request is")
  func fileOfURL() async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    fixture.network.serve(fixture.url) { _ in .ok("chair", etag: "\"1\"", cacheControl: "max-age=60") }
    let options = RequestOptions { $0.writes = [] }

    let loaded = await withCheckedContinuation { continuation in
      fixture.manager.load(fixture.url, to: folder.file(), sizeLimit: 5, options: options) { continuation.resume(returning: $0) }
    }
    #expect(try loaded.get().file == folder.file())
    #expect(folder.content() == Data("chair".utf8))

    let events = fixture.manager.events(for: fixture.url, to: folder.file(), options: options)
    #expect(try await events.finals.map(\.file) == [folder.file()])
    let refused = await withCheckedContinuation { continuation in
      fixture.manager.load(fixture.url, to: folder.file(), sizeLimit: 4, options: options) { continuation.resume(returning: $0) }
    }
    #expect(throws: CacheError.self) { try refused.get() }
    #expect(fixture.network.requests.count == 3)
  }

  @Test("a load with a transform reports progress to its callback")
  func progress() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("0123456789").chunked(by: 5) }
    let received = Lock<[Int64]>([])
    await withCheckedContinuation { continuation in
      fixture.manager.load(fixture.url, as: Self.upper) { progress in
        received.withLock { $0.append(progress.received) }
      } completion: { result in
        #expect(throws: Never.self) { try result.get() }
        continuation.resume()
      }
    }
    #expect(received.withLock { $0.last } == 10)
  }

  @Test("only a value in memory is returned at once")
  func cachedInMemory() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("chair", etag: "\"1\"", cacheControl: "max-age=60") }
    #expect(fixture.manager.cachedInMemory(fixture.url) == nil)
    _ = try await fixture.manager.load(fixture.url, as: Self.upper)
    #expect(fixture.manager.cachedInMemory(fixture.url)?.text == "chair")
    #expect(fixture.manager.cachedInMemory(fixture.url, as: Self.upper)?.value == "CHAIR")
    #expect(fixture.manager.cachedInMemory(try #require(URL(string: "relative"))) == nil)
    fixture.clock.advance(by: .seconds(61))
    #expect(fixture.manager.cachedInMemory(fixture.url) == nil)
    #expect(fixture.network.requests.count == 1)
  }

  // MARK: Storing bytes

  @Test("stored bytes are the response of their URL until they are stale, also after a restart")
  func store() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("the origin's", etag: "\"2\"") }
    try await fixture.manager.store(Data("own".utf8), for: fixture.url, headerFields: [.contentType: "image/png"])

    let shown = try await fixture.manager.load(fixture.url)
    #expect(shown.text == "own" && shown.source == .memory && shown.response.headerFields[.contentType] == "image/png")
    fixture.restart()
    #expect(try await fixture.manager.load(fixture.url).source == .disk)
    #expect(fixture.network.requests.isEmpty)

    fixture.clock.advance(by: .seconds(300))
    let later = try await fixture.manager.load(fixture.url)
    #expect(later.text == "the origin's" && later.source == .network)
  }

  @Test("bytes are stored for the URL of a file too", arguments: [CacheLayers.all, .memory, .disk])
  func storedForFile(_ layers: CacheLayers) async throws {
    let fixture = try ManagerFixture()
    let file = URL(filePath: "/pictures/a.png")

    try await fixture.manager.store(Data("own".utf8), for: file, options: RequestOptions { $0.writes = layers })

    #expect(try await fixture.manager.load(file).text == "own")
  }

  @Test("the origin confirms stored bytes with an entity tag")
  func storedWithTag() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { request in
      request.headerFields[.ifNoneMatch] == "\"7\"" ? .notModified(etag: "\"7\"") : .ok("other", etag: "\"8\"")
    }
    try await fixture.manager.store(Data("own".utf8), for: fixture.url, freshFor: .zero, headerFields: [.eTag: "\"7\""])
    let confirmed = try await fixture.manager.load(fixture.url)
    #expect(confirmed.text == "own" && confirmed.validation == .notModified)
  }

  @Test("stored bytes replace the cached response of the URL, and its transformed values")
  func storedReplaces() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("old", etag: "\"1\"", cacheControl: "max-age=60") }
    #expect(try await fixture.manager.load(fixture.url, as: Self.upper).value == "OLD")
    try await fixture.manager.store(Data("new".utf8), for: fixture.url)
    #expect(try await fixture.manager.load(fixture.url, as: Self.upper).value == "NEW")
    #expect(fixture.network.requests.count == 1)
  }

  @Test("storing bytes that cannot be stored is an error", arguments: [true, false])
  func storeFails(isForbidden: Bool) async throws {
    let fixture = try ManagerFixture()
    if !isForbidden { fixture.disk.failure = CacheError(.diskFull, reason: "no space left") }
    let fields: HTTPFields = isForbidden ? [.cacheControl: "no-store"] : [:]
    let error = await #expect(throws: CacheError.self) {
      try await fixture.manager.store(Data("own".utf8), for: fixture.url, headerFields: fields)
    }
    #expect(error?.code == (isForbidden ? .notCached : .diskFull))
  }

  @Test("storing bytes that memory alone does not accept is an error")
  func storeFailsInMemory() async throws {
    let fixture = try ManagerFixture { $0.store = nil }
    let error = await #expect(throws: CacheError.self) {
      try await fixture.manager.store(Data("own".utf8), for: fixture.url, headerFields: [.cacheControl: "no-store"])
    }
    #expect(error?.code == .notCached)
  }

  @Test("a response that was requested before does not replace stored bytes")
  func lateResponse() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.serve(fixture.url) { _ in
      ScriptedResponse.ok("old", etag: "\"1\"", cacheControl: "max-age=600").held(by: gate)
    }
    let late = Task { try await fixture.manager.load(fixture.url).text }
    await gate.arrived()
    try await fixture.manager.store(Data("own".utf8), for: fixture.url)
    gate.open()
    #expect(try await late.value == "old")
    #expect(try await fixture.manager.load(fixture.url).text == "own")
    fixture.restart()
    #expect(try await fixture.manager.load(fixture.url).text == "own")
  }

  @Test("a response that is requested while bytes are being stored does not replace them")
  func responseInBetween() async throws {
    let (fixture, store) = try ManagerFixture.held()
    let (commit, response) = (store.hold(.commit), Gate())
    let storing = Task { try await fixture.manager.store(Data("own".utf8), for: fixture.url) }
    await commit.arrived()
    fixture.network.serve(fixture.url) { _ in .ok("old", etag: "\"1\"", cacheControl: "max-age=600").held(by: response) }
    let late = Task { try await fixture.manager.load(fixture.url).text }
    await response.arrived()
    commit.open()
    try await storing.value
    response.open()
    #expect(try await late.value == "old")
    #expect(try await fixture.manager.load(fixture.url).text == "own")
    fixture.restart()
    #expect(try await fixture.manager.load(fixture.url).text == "own")
    #expect(fixture.network.requests.count == 1)
  }

  @Test("stored bytes replace a response that another load stores in the meantime", arguments: [false, true])
  func storedInBetween(varies: Bool) async throws {
    let (fixture, store) = try ManagerFixture.held()
    let commit = store.hold(.commit)
    let storing = Task { try await fixture.manager.store(Data("own".utf8), for: fixture.url) }
    await commit.arrived()
    let fields: HTTPFields = varies ? [.vary: "Accept-Language"] : [:]
    fixture.network.serve(fixture.url) { _ in .ok("old", etag: "\"1\"", cacheControl: "max-age=600", fields: fields) }
    let german = ResourceRequest(fixture.url, headerFields: [.acceptLanguage: "de"])
    #expect(try await fixture.manager.load(german).text == "old")
    commit.open()
    try await storing.value
    for request in [german, ResourceRequest(fixture.url)] {
      #expect(try await fixture.manager.load(request).text == "own")
      fixture.restart()
      #expect(try await fixture.manager.load(request).text == "own")
    }
    #expect(fixture.network.requests.count == 1)
    #expect(try await store.base.variants(of: ResourceID.make(uri: fixture.url.absoluteString)).count == 1)
  }

  @Test("without a validator, stored bytes live as long as the caller specifies", arguments: [true, false])
  func storedWithoutValidator(isInMemoryAlone: Bool) async throws {
    let fixture = try ManagerFixture {
      $0.validator = nil
      if isInMemoryAlone { $0.store = nil }
    }
    fixture.network.serve(fixture.url) { _ in .ok("the origin's") }
    try await fixture.manager.store(Data("own".utf8), for: fixture.url, freshFor: .seconds(10))
    fixture.clock.advance(by: .seconds(9))
    #expect(try await fixture.manager.load(fixture.url).text == "own")
    fixture.clock.advance(by: .seconds(1))
    #expect(try await fixture.manager.load(fixture.url).text == "the origin's")
  }

  @Test("stored bytes replace every variant")
  func storedVariants() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in
      .ok("german", etag: "\"1\"", cacheControl: "max-age=600", fields: [.vary: "Accept-Language"])
    }
    let german = ResourceRequest(fixture.url, headerFields: [.acceptLanguage: "de"])
    _ = try await fixture.manager.load(german)
    try await fixture.manager.store(Data("own".utf8), for: fixture.url)
    #expect(try await fixture.manager.load(german).text == "own")
    #expect(fixture.network.requests.count == 1)
  }

  @Test("bytes are stored in memory alone if there is no durable store")
  func storeInMemory() async throws {
    let fixture = try ManagerFixture { $0.store = nil }
    try await fixture.manager.store(Data("own".utf8), for: fixture.url)
    #expect(try await fixture.manager.load(fixture.url).source == .memory)
  }

  // MARK: Usage

  @Test("the usage counts the responses, values and bytes of both stores")
  func usage() async throws {
    let fixture = try ManagerFixture()
    try await fixture.manager.store(Data(count: 1_000), for: fixture.url)
    let usage = try await fixture.manager.usage()
    let memory = try #require(usage.memory)
    #expect(memory.entries == 1 && memory.bytes >= 1_000 && memory.limit == 10 << 20)
    #expect(memory.bytes == Int64(fixture.memory.totalCost))
    #expect(usage.disk == StoreUsage(entries: 1, bytes: 1_000))

    let others = try (0..<9).map { try fixture.url("/\($0)") }
    for url in others {
      fixture.network.respond(to: url, with: .ok("a body", cacheControl: "max-age=60"))
      _ = try await fixture.manager.load(url)
    }
    #expect(try await fixture.manager.usage().memory?.entries == 10)
    #expect(try await fixture.manager.usage().disk?.entries == 10)
    _ = try await fixture.manager.load(others[0], as: TextTransformFixture().short())
    #expect(try await fixture.manager.usage().memory?.entries == 11)
  }

  @Test("a manager without stores has no usage, and the caller receives the error of a store")
  func usageWithoutStores() async throws {
    let usage = try await ResourceManager(ResourceManager.Configuration()).usage()
    #expect(usage.memory == nil && usage.disk == nil)
    let fixture = try ManagerFixture()
    fixture.disk.failure = CacheError(.fileSystem, reason: "input/output error")
    let error = await #expect(throws: CacheError.self) { try await fixture.manager.usage() }
    #expect(error?.code == .fileSystem)
  }

  // MARK: Interceptors

  @Test("an event stream calls the interceptor only when it is iterated")
  func eventsAreLazy() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("chair") }
    let calls = Lock(0)
    let options = RequestOptions { $0.interceptor = .use(RequestInterceptor(willLookUp: { _ in calls.withLock { $0 += 1 } })) }
    let folder = try DownloadFolder()
    let events = fixture.manager.events(for: fixture.url, to: folder.file(), options: options)
    #expect(calls.withLock { $0 } == 0)
    #expect(try await events.finals.count == 1)
    #expect(calls.withLock { $0 } == 1)
  }

  // MARK: Retries of one request

  @Test("only the request with a retrying downloader is retried")
  func adaptedDownloader() async throws {
    let fixture = try ManagerFixture()
    let clock = fixture.clock
    fixture.network.respond(to: fixture.url, with: .failure(.connectionLost), .ok("second"))
    let options = RequestOptions { $0.downloader = .adapted { $0.retrying(.brief, clock: clock) } }
    let load = Task { try await fixture.manager.load(fixture.url, options: options) }
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .seconds(60))
    #expect(try await load.value.text == "second")

    fixture.network.respond(to: fixture.url, with: .failure(.connectionLost), .ok("second"))
    #expect(try await fixture.failure(fixture.url, .policy(.reload)).code == .connectionLost)
  }

  // MARK: Closing within a time

  @Test("closing with a time limit ends the loads that take longer, and reports that")
  func closeWithin() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.serve(fixture.url) { _ in ScriptedResponse.ok("late").held(by: gate) }
    let load = Task { () -> CacheError? in
      do throws(CacheError) {
        _ = try await fixture.manager.load(fixture.url)
        return nil
      } catch {
        return error
      }
    }
    await gate.arrived()
    let closing = Task { await fixture.manager.close(within: .seconds(5)) }
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .seconds(5))
    #expect(await closing.value == false)
    #expect(await load.value?.code == .closed)
    gate.open()
    await fixture.manager.close()
  }

  @Test("closing with a time limit returns as soon as all loads have ended")
  func closeEarly() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("chair") }
    _ = try await fixture.manager.load(fixture.url)
    #expect(await fixture.manager.close(within: .seconds(5)))
    #expect(try await fixture.failure(fixture.url, .policy(.reload)).code == .closed)
  }
}

extension ResourceEvents {
  /// The resources of the final events.
  fileprivate var finals: [Resource<Value>] {
    get async throws {
      var finals: [Resource<Value>] = []
      for try await event in self {
        if case .final(let resource) = event { finals.append(resource) }
      }
      return finals
    }
  }
}
