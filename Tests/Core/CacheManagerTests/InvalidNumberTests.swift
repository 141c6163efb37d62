import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("Numbers out of range in a manager and in options")
struct InvalidNumberTests {
  struct Example<Root>: CustomTestStringConvertible, Sendable {
    let setting: String
    let value: String
    let change: @Sendable (inout Root) -> Void

    init(_ setting: String, _ value: String, _ change: @escaping @Sendable (inout Root) -> Void) {
      (self.setting, self.value, self.change) = (setting, value, change)
    }

    var testDescription: String { "\(setting) \(value)" }

    func expectNames(_ error: CacheError?, _ call: String, _ location: SourceLocation = #_sourceLocation) {
      #expect(error?.code == .invalidConfiguration, "\(call)", sourceLocation: location)
      let reason = error?.reason ?? ""
      #expect(reason.contains("'\(setting)'") && reason.hasSuffix("not \(value)"), "\(call): \(reason)", sourceLocation: location)
    }
  }

  static let configurations: [Example<ResourceManager.Configuration>] = [
    Example("maximumConcurrentTransforms", "0") { $0.maximumConcurrentTransforms = 0 },
    Example("timeout", "-1.0 seconds") { $0.timeout = .seconds(-1) },
    Example("timeout", "0.0 seconds") { $0.timeout = .zero },
    Example("storeWriteTimeout", "-1.0 seconds") { $0.storeWriteTimeout = .seconds(-1) },
    Example("storeReadTimeout", "-1.0 seconds") { $0.storeReadTimeout = .seconds(-1) },
    Example("redirectLimit", "-1") { $0.redirectLimit = -1 },
    Example("maximumBodySize", "-1") { $0.maximumBodySize = -1 },
    Example("memoryBudget", "-1") { $0.memoryBudget = -1 },
    Example("memoryBudget", "\(Int.min)") { $0.memoryBudget = .min },
    Example("maximumBodyInMemory", "-1") { $0.maximumBodyInMemory = -1 },
    Example("collapseTimeout", "-1.0 seconds") { $0.collapseTimeout = .seconds(-1) },
    Example("atMostEvery", "-1.0 seconds") { $0.policy = .revalidate(atMostEvery: .seconds(-1)) },
    Example("showCachedAfter", "-1.0 seconds") { $0.policy = .revalidate(showCachedAfter: .seconds(-1)) },
    Example("cost", "-1") { $0.memory = MemoryCache(limits: .init(cost: -1)) },
    Example("count", "-1") { $0.memory = MemoryCache(limits: .init(count: -1)) },
    Example("entryCost", "-1") { $0.memory = MemoryCache(limits: .init(entryCost: -1)) },
    Example("shards", "0") { $0.memory = MemoryCache(shards: 0) },
    Example("defaultLifetime", "-1.0 seconds") { $0.validator = ETagValidator(defaultLifetime: .seconds(-1)) },
    Example("variantLimit", "0") { $0.validator = ETagValidator(variantLimit: 0) },
    Example("percent", "101") { $0.validator = ETagValidator(heuristics: Heuristics(percent: 101)) },
    Example("longest", "-1.0 seconds") { $0.validator = ETagValidator(heuristics: Heuristics(longest: .seconds(-1))) },
    Example("width", "0") { $0.executor = ProcessingExecutor(width: 0) },
  ]

  @Test("a manager with a number out of range fails each load, and the error names the setting", arguments: configurations)
  func configuration(_ example: Example<ResourceManager.Configuration>) async throws {
    let fixture = try ManagerFixture(example.change)
    for _ in 0..<2 { example.expectNames(try await fixture.failure(fixture.url), "load") }
    await expectFailures(fixture, example, RequestOptions())
    #expect(fixture.network.requests.isEmpty)
  }

  static let requestOptions: [Example<RequestOptions>] = [
    Example("timeout", "-1.0 seconds") { $0.timeout = .seconds(-1) },
    Example("timeout", "0.0 seconds") { $0.timeout = .zero },
    Example("idleTimeout", "-1.0 seconds") { $0.idleTimeout = .seconds(-1) },
    Example("redirectLimit", "-1") { $0.redirectLimit = -1 },
    Example("maximumBodySize", "-1") { $0.maximumBodySize = -1 },
    Example("storeWriteTimeout", "-1.0 seconds") { $0.storeWriteTimeout = .use(.seconds(-1)) },
    Example("storeReadTimeout", "-1.0 seconds") { $0.storeReadTimeout = .use(.seconds(-1)) },
    Example("atMostEvery", "-1.0 seconds") { $0.policy = .revalidate(atMostEvery: .seconds(-1)) },
    Example("cost", "-1") { $0.memory = .use(MemoryCache(limits: .init(cost: -1))) },
    Example("variantLimit", "0") { $0.validator = .use(ETagValidator(variantLimit: 0)) },
    Example("width", "0") { $0.executor = ProcessingExecutor(width: 0) },
  ]

  @Test("a request with a number out of range fails, even if its response is in memory", arguments: requestOptions)
  func options(_ example: Example<RequestOptions>) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("a", cacheControl: "max-age=60"))
    let options = RequestOptions(example.change)
    example.expectNames(try await fixture.failure(fixture.url, options), "empty cache")
    #expect(try await fixture.manager.load(fixture.url).text == "a")
    example.expectNames(try await fixture.failure(fixture.url, options), "full cache")
    await expectFailures(fixture, example, options)
    #expect(fixture.network.requests.count == 1)
  }

  private func failure(_ work: () async throws -> Void) async -> CacheError? {
    do {
      try await work()
      return nil
    } catch {
      return error as? CacheError
    }
  }

  private func expectFailures<Root>(_ fixture: ManagerFixture, _ example: Example<Root>, _ options: RequestOptions) async {
    let (manager, url) = (fixture.manager, fixture.url)
    let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    example.expectNames(
      await failure { _ = try await manager.respond(to: HTTPRequest(resource: url), options: options) }, "respond")
    example.expectNames(await failure { _ = try await manager.load(url, to: file, options: options) }, "file")
    example.expectNames(await failure { for try await _ in manager.events(for: url, options: options) {} }, "events")
    example.expectNames(await manager.prefetch([url], options: options).failed.first?.error, "prefetch")
    let (results, continuation) = AsyncStream.makeStream(of: CacheError?.self)
    manager.load(url, options: options) { result in
      if case .failure(let error) = result { continuation.yield(error) } else { continuation.yield(nil) }
      continuation.finish()
    }
    for await error in results { example.expectNames(error, "callback") }
    #expect(manager.cachedInMemory(url, options: options) == nil)
  }

  @Test("a number out of range in a call fails the call", arguments: [-1, 0])
  func calls(_ concurrency: Int) async throws {
    let fixture = try ManagerFixture()
    let (manager, url) = (fixture.manager, fixture.url)
    let report = await manager.prefetch([url, try fixture.url("/b")], concurrency: concurrency)
    #expect(report.failed.map(\.error.code) == [.invalidConfiguration, .invalidConfiguration])
    #expect(report.failed.first?.error.reason == "the setting 'concurrency' must be at least 1, not \(concurrency)")
    let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    let large = await failure { _ = try await manager.load(url, to: file, sizeLimit: -1) }
    #expect(large?.reason == "the setting 'sizeLimit' must be at least 0, not -1")
    let old = await failure { try await manager.store(Data(), for: url, freshFor: .seconds(-1)) }
    #expect(old?.reason == "the setting 'freshFor' must be at least 0.0 seconds, not -1.0 seconds")
    #expect(fixture.network.requests.isEmpty)
  }

  @Test("zero is valid where it has a meaning")
  func zero() async throws {
    let fixture = try ManagerFixture {
      $0.redirectLimit = 0
      $0.maximumBodySize = 0
      $0.maximumBodyInMemory = 0
      ($0.storeWriteTimeout, $0.storeReadTimeout, $0.collapseTimeout) = (.zero, .zero, .zero)
      $0.policy = .revalidate(atMostEvery: .zero, showCachedAfter: .zero)
      $0.memory = MemoryCache(limits: .init(cost: 0))
      $0.validator = ETagValidator(heuristics: Heuristics(percent: 0, longest: .zero), defaultLifetime: .zero)
    }
    fixture.network.respond(to: fixture.url, with: .ok(""))
    #expect(try await fixture.manager.load(fixture.url).data.isEmpty)
  }
}
