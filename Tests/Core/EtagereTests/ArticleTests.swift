import CacheTesting
import Etagere
import Foundation
import Testing

@Suite("Statements of the articles")
struct ArticleTests {
  private let clock = ManualClock()
  private let network: ScriptedDownloader
  private let url: URL

  init() throws {
    network = ScriptedDownloader(clock: clock)
    url = try #require(URL(string: "https://example.com/film"))
  }

  @Test("each module of the library that reads the status of files has a privacy manifest, which the package names")
  func privacyManifests() throws {
    let root = URL(filePath: #filePath).appending(path: "../../../..").standardized
    let package = try String(contentsOf: root.appending(path: "Package.swift"), encoding: .utf8)
    var found: Set<String> = []
    for group in ["Core", "Stores", "Networking", "Images", "Interfaces"] {
      let folder = root.appending(path: "Modules/\(group)")
      for module in try FileManager.default.contentsOfDirectory(atPath: folder.path(percentEncoded: false)) {
        let files = try FileManager.default.subpathsOfDirectory(
          atPath: folder.appending(path: module).path(percentEncoded: false))
        let readsStatus = try files.contains { file in
          let source = folder.appending(path: "\(module)/\(file)")
          return try file.hasSuffix(".swift") && String(contentsOf: source, encoding: .utf8).contains("= stat()")
        }
        #expect(readsStatus == files.contains("PrivacyInfo.xcprivacy"), "\(module)")
        if readsStatus { found.insert(module) }
      }
    }
    #expect(found == ["CacheCore", "CacheManager", "CacheTransport", "DiskStore", "SQLiteStore", "StoreComposition"])
    #expect(package.ranges(of: "readsFileStatus: true").count == found.count)
  }

  @Test("a scripted body that breaks off is resumed with a range, and the file is complete")
  func resumed() async throws {
    let bytes = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    let film = ScriptedResponse.ok(bytes, etag: "\"1\"")
    network.respond(to: url, with: film.cut(after: 60_000), film.part(from: 60_000).cut(after: 30_000), film.part(from: 90_000))
    var policy = RetryPolicy.standard
    policy.backoff = Backoff(base: .zero, cap: .zero)
    let manager = ResourceManager(
      try .standard(folder: nil, downloader: network.resuming(policy, clock: clock), clock: clock))

    #expect(try await manager.load(url).data == bytes)
    #expect(network.requests.map { $0.headerFields[.range] } == [nil, "bytes=60000-", "bytes=90000-"])
    #expect(network.requests.dropFirst().allSatisfy { $0.headerFields[.ifRange] == "\"1\"" })
    try network.verify()
  }

  @Test("a load ends at its timeout, although its response takes longer")
  func timeout() async throws {
    network.respond(to: url, with: .ok("late").after(.seconds(10)))
    let manager = ResourceManager(try .standard(folder: nil, downloader: network, clock: clock))

    let load = Task { [url] in try await manager.load(url, options: RequestOptions { $0.timeout = .seconds(5) }) }
    await clock.advance(pastSleepOf: .seconds(5))
    await #expect { try await load.value } throws: { ($0 as? CacheError)?.code == .timedOut }
  }

  @Test("a response that arrives before the timeout is the result")
  func inTime() async throws {
    network.respond(to: url, with: .ok("in time").after(.seconds(4)))
    let manager = ResourceManager(try .standard(folder: nil, downloader: network, clock: clock))

    let load = Task { [url] in try await manager.load(url, options: RequestOptions { $0.timeout = .seconds(5) }) }
    await clock.advance(pastSleepOf: .seconds(4))
    #expect(try await load.value.data == Data("in time".utf8))
  }

  @Test("a retry waits for its delay, which a policy without chance makes exact")
  func retry() async throws {
    network.respond(to: url, with: .response(.serviceUnavailable), .ok("again"))
    var policy = RetryPolicy.brief
    policy.random = { 1 }
    let manager = ResourceManager(
      try .standard(folder: nil, downloader: network.retrying(policy, clock: clock), clock: clock))

    let load = Task { [url] in try await manager.load(url) }
    await clock.advance(pastSleepOf: policy.backoff.base)
    #expect(try await load.value.data == Data("again".utf8))
  }

  @Test(
    "a sign-out reaches a second manager on the folder only if the user's responses are not in its memory",
    arguments: [true, false])
  func signOut(usesMemory: Bool) async throws {
    let folder = try TemporaryFolder()
    network.serve(url) { _ in .ok("for alice", cacheControl: "max-age=3600") }
    let managers = try (0..<2).map { _ in
      ResourceManager(try .standard(folder: folder.url, downloader: network, clock: clock))
    }
    let options = RequestOptions {
      $0.partition = "alice"
      if !usesMemory { $0.memory = .disabled }
    }
    for manager in managers { #expect(try await manager.load(url, options: options).data == Data("for alice".utf8)) }

    try await managers[0].purge(.everything, in: .partition("alice"))
    #expect(try await managers[0].lookup(url, options: options) == .miss)
    #expect(try await managers[1].lookup(url, options: options) == (usesMemory ? .memory(isFresh: true) : .miss))
    for manager in managers { await manager.close() }
  }

  @Test("a negative limit of the standard configuration is refused, with or without a folder")
  func negativeLimits() throws {
    let disk = #expect(throws: CacheError.self) { try ResourceManager.Configuration.standard(folder: nil, diskLimit: -1) }
    #expect(disk?.code == .invalidConfiguration)
    #expect(disk?.reason == "the setting 'diskLimit' must be at least 0, not -1")
    let memory = #expect(throws: CacheError.self) { try ResourceManager.Configuration.standard(folder: nil, memoryLimit: -1) }
    #expect(memory?.reason == "the setting 'memoryLimit' must be at least 0, not -1")
  }
}
