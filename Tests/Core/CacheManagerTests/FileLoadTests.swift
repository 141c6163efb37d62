import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import Foundation
import HTTPTypes
import MemoryStore
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite("Loads into a file")
struct FileLoadTests {
  private let bytes = filePattern(700_000)

  @Test("a load into a file stores the bytes in the file and on disk, but not in memory")
  func cold() async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    fixture.network.respond(to: fixture.url, with: .ok(bytes, etag: "\"1\"", cacheControl: "max-age=60").chunked(by: 10_000))

    let film = try await fixture.manager.load(fixture.url, to: folder.file())

    #expect(film.file == folder.file() && film.source == .network && film.bytesOnWire == 700_000)
    #expect(folder.content() == bytes)
    #expect(folder.names == ["film.mp4"])
    #expect(fixture.disk.keys.count == 1)
    #expect(fixture.memory.counters.insertions == 0)
  }

  @Test("a fresh stored response is copied without a request", arguments: [false, true])
  func fresh(fromMemory: Bool) async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    fixture.network.respond(to: fixture.url, with: .ok(bytes, cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)
    if !fromMemory { fixture.restart() }

    let film = try await fixture.manager.load(fixture.url, to: folder.file())

    #expect(film.source == (fromMemory ? .memory : .disk))
    #expect(folder.content() == bytes)
    try fixture.network.verify()
  }

  @Test("a 304 confirms the stored response, which is then copied into the file")
  func notModified() async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    fixture.network.respond(
      to: fixture.url, with: .ok(bytes, etag: "\"1\""), .notModified(cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)

    let film = try await fixture.manager.load(fixture.url, to: folder.file())

    #expect(film.source == .revalidated && film.validation == .notModified)
    #expect(folder.content() == bytes)
    // The metadata in memory became fresh, and its bytes are still there.
    #expect(try await fixture.manager.load(fixture.url).source == .memory)
    try fixture.network.verify()
  }

  @Test("a new response replaces the old one in every layer, and memory no longer serves the old one")
  func replaced() async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\""), .ok("new", etag: "\"2\"", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)

    _ = try await fixture.manager.load(fixture.url, to: folder.file())
    let again = try await fixture.manager.load(fixture.url)

    #expect(folder.content() == Data("new".utf8))
    #expect(again.text == "new" && again.source == .disk)
    try fixture.network.verify()
  }

  @Test("a response that may not be stored is written to the file alone")
  func notStorable() async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    fixture.network.respond(to: fixture.url, with: .ok(bytes, cacheControl: "no-store"))

    _ = try await fixture.manager.load(fixture.url, to: folder.file())

    #expect(folder.content() == bytes)
    #expect(fixture.disk.keys.isEmpty)
  }

  @Test("the body of a redirect is not written to the file")
  func redirect() async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    let target = try fixture.url("/elsewhere")
    fixture.network.respond(
      to: fixture.url,
      with: .response(
        .movedPermanently, fields: [.location: target.absoluteString, .cacheControl: "max-age=60"], body: filePattern(400_000)))
    fixture.network.respond(to: target, with: .ok("short"))

    let film = try await fixture.manager.load(fixture.url, to: folder.file())

    #expect(film.url == target && film.redirects == [fixture.url])
    #expect(folder.content() == Data("short".utf8))
  }

  @Test(
    "a file has its own size limit, for an announced or a counted length, and maximumBodySize does not apply",
    arguments: [true, false])
  func limits(lengthIsTold: Bool) async throws {
    let fixture = try ManagerFixture { $0.maximumBodySize = 1_000 }
    let folder = try DownloadFolder()
    fixture.network.serve(fixture.url) { [bytes] _ in
      let response = ScriptedResponse.ok(bytes)
      return lengthIsTold ? response : response.withoutLength()
    }

    _ = try await fixture.manager.load(fixture.url, to: folder.file())
    let error = await #expect(throws: CacheError.self) {
      try await fixture.manager.load(fixture.url, to: folder.file("limited"), sizeLimit: 699_999)
    }

    #expect(error?.code == .bodyTooLarge)
    #expect(folder.names == ["film.mp4"])
    #expect(folder.content() == bytes)
  }

  @Test("the old file stays unchanged until the new one replaces it, and after a failure", arguments: [true, false])
  func oldFileStays(isCut: Bool) async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    try Data("old".utf8).write(to: folder.file())
    let gate = Gate()
    let response = ScriptedResponse.ok(bytes).chunked(by: 100_000).bodyHeld(by: gate)
    fixture.network.respond(to: fixture.url, with: isCut ? response.cut(after: 500_000) : response)

    let load = Task { try await fixture.manager.load(fixture.url, to: folder.file()) }
    await gate.arrived()
    gate.letThrough(4)
    await gate.arrived(5)
    #expect(folder.content() == Data("old".utf8))
    #expect(folder.names.contains(".film.mp4.etagere-part"))
    gate.open()
    let result = await load.result

    #expect(folder.content() == (isCut ? Data("old".utf8) : bytes))
    #expect(folder.names == ["film.mp4"])
    if isCut { #expect(throws: CacheError.self) { try result.get() } }
    #expect(fixture.disk.keys.isEmpty == isCut)
  }

  @Test("a cancelled load leaves no file behind")
  func cancelled() async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok(bytes).chunked(by: 300_000).bodyHeld(by: gate))

    let load = Task { try await fixture.manager.load(fixture.url, to: folder.file()) }
    await gate.arrived()
    gate.letThrough()
    await gate.arrived(2)
    load.cancel()
    let result = await load.result
    gate.open()
    await fixture.manager.close()

    #expect(result.isCancellation)
    #expect(folder.names.isEmpty)
    #expect(fixture.disk.keys.isEmpty && fixture.network.cancelledBodies == 1)
  }

  @Test("an entry whose damage is found during the copy is a miss, and the file contains only the new bytes")
  func damaged() async throws {
    let folder = try DownloadFolder()
    let disk = try DiskCache(folder: folder.url.appending(path: "cache"))
    let fixture = try ManagerFixture { $0.store = disk }
    fixture.network.respond(to: fixture.url, with: .ok(bytes, cacheControl: "max-age=60"), .ok("new", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url, to: folder.file())
    let entry = try #require(
      FileManager.default.subpaths(atPath: folder.url.path)?.first { $0.hasSuffix(".e") }.map { folder.url.appending(path: $0) })
    var content = try Data(contentsOf: entry)
    content[600_000] ^= 1
    try content.write(to: entry)

    let film = try await fixture.manager.load(fixture.url, to: folder.file())

    #expect(film.source == .network)
    #expect(folder.content() == Data("new".utf8))
    await disk.close()
  }

  @Test("a store that fails, or is too small, does not fail the load", arguments: [true, false])
  func storeFails(isTooSmall: Bool) async throws {
    let folder = try DownloadFolder()
    let small = try DiskCache(folder: folder.url.appending(path: "cache"), configuration: .init(sizeLimit: 100_000))
    let fixture = try ManagerFixture { if isTooSmall { $0.store = small } }
    fixture.disk.refusesWrites = true
    fixture.network.respond(to: fixture.url, with: .ok(bytes))

    let film = try await fixture.manager.load(fixture.url, to: folder.file())

    #expect(film.source == .network && folder.content() == bytes)
    #expect(fixture.observer.events.contains { if case .storeFailed = $0 { true } else { false } })
    await small.close()
  }

  @Test("with staleWhileRevalidate, the file gets the stored response, and the store the fresh one")
  func staleWhileRevalidate() async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\""), .ok("newer", etag: "\"2\"", cacheControl: "max-age=60").held(by: gate))
    _ = try await fixture.manager.load(fixture.url)
    fixture.restart()

    let film = try await fixture.manager.load(fixture.url, to: folder.file(), options: .policy(.staleWhileRevalidate))
    gate.open()
    await fixture.observer.first { if case .stored(_, .disk, 5, _) = $0 { true } else { false } }

    #expect(film.source == .disk && film.isStale)
    #expect(folder.content() == Data("old".utf8) && folder.names == ["film.mp4"])
    let key = try #require(fixture.disk.keys.first)
    #expect(try await fixture.disk.entry(for: key)?.body.collect() == Data("newer".utf8))
  }

  @Test("a small file is replaced by rename, with the permissions of the old one")
  func permissions() async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    try Data("old".utf8).write(to: folder.file())
    #expect(chmod(folder.file().path, 0o640) == 0)
    fixture.network.respond(to: fixture.url, with: .ok("new"))

    _ = try await fixture.manager.load(fixture.url, to: folder.file(), isDurable: true)

    var status = stat()
    #expect(stat(folder.file().path, &status) == 0 && status.st_mode & 0o777 == 0o640)
    #expect(folder.content() == Data("new".utf8))
  }

  @Test("events and callbacks report the progress and the result of a load into a file")
  func otherTransforms() async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    fixture.network.serve(fixture.url) { [bytes] _ in .ok(bytes, cacheControl: "no-store").chunked(by: 100_000) }
    let request = ResourceRequest(fixture.url)

    var received: [Int64] = []
    var final: Resource<URL>?
    for try await event in fixture.manager.events(for: request, to: folder.file("a")) {
      switch event {
      case .progress(let progress): received.append(progress.received)
      case .stale: Issue.record("a file is written once")
      case .final(let film): final = film
      }
    }
    let film = try await withCheckedThrowingContinuation { continuation in
      fixture.manager.load(request, to: folder.file("b")) { continuation.resume(with: $0) }
    }

    #expect(received.last == 700_000 && received == received.sorted())
    #expect(final?.file == folder.file("a") && film.file == folder.file("b"))
    #expect(folder.content("a") == bytes && folder.content("b") == bytes)
  }
}
