import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import CacheManager

/// Stored responses and other sources in place of a response that failed.
extension FileContinuingTests {
  /// A reason why a load uses the stored response.
  enum Failure: CaseIterable {
    case offline, status, anyStored, staleWhileRevalidate, alternative, broken
  }

  @Test(
    "a part stays if a stored response replaces the one that failed, and the next load continues it",
    arguments: Failure.allCases)
  func fallback(_ failure: Failure) async throws {
    let origin = Origin(fields: [.eTag: "\"2\""])
    let fixture = try ManagerFixture()
    let directive = failure == .anyStored ? "must-revalidate" : "stale-if-error=600"
    try await fixture.storeStale(cacheControl: "max-age=60, \(directive)")
    var options = RequestOptions()
    if failure == .broken {
      origin.gate.open()
      fixture.network.serve(fixture.url) { origin.respond($0).cut(after: 350_000) }
    } else {
      fixture.network.serve(fixture.url) { origin.respond($0) }
      try await cancelHalfway(origin, fixture)
      fixture.network.serve(fixture.url) { _ in failure == .status ? .response(.serviceUnavailable) : .failure(.offline) }
    }
    switch failure {
    case .offline, .status, .broken: break
    case .anyStored: options.staleFallback = .anyStored
    case .staleWhileRevalidate: options.policy = .staleWhileRevalidate
    case .alternative:
      let mirror = try fixture.url("/mirror")
      fixture.network.serve(mirror) { _ in ScriptedResponse.ok(Self.bytes).chunked(by: 70_000).cut(after: 200_000) }
      options.alternatives = [.mirror(mirror)]
    }

    let film = try await fixture.manager.load(fixture.url, to: folder.file(), options: options)

    #expect((film.fallbackReason == nil) == (failure == .staleWhileRevalidate))
    #expect(folder.content() == Data("old".utf8))
    #expect(folder.names == [".film.mp4.etagere-part", ".film.mp4.etagere-record", "film.mp4"])
    fixture.network.serve(fixture.url) { origin.respond($0) }
    _ = try await fixture.manager.load(fixture.url, to: folder.file())
    #expect(ranges(fixture).last == "bytes=350000-")
    #expect(folder.content() == Self.bytes && folder.names == ["film.mp4"])
  }

  @Test("a part stays if a stored response is used at the deadline")
  func deadline() async throws {
    let origin = Origin(fields: [.eTag: "\"2\""])
    let fixture = try ManagerFixture { $0.waitForStores() }
    try await fixture.storeStale()
    fixture.network.serve(fixture.url) { origin.respond($0) }
    let options = RequestOptions { $0.timeout = .seconds(5) }

    async let late = fixture.manager.load(fixture.url, to: folder.file(), options: options)
    await origin.gate.arrived()
    origin.gate.letThrough(5)
    await origin.gate.arrived(6)
    await fixture.clock.advance(pastSleepOf: .seconds(5))

    #expect(try await late.fallbackReason?.code == .timedOut)
    #expect(folder.content() == Data("old".utf8))
    _ = try await fixture.manager.load(fixture.url, to: folder.file())
    #expect(ranges(fixture).last == "bytes=350000-" && folder.content() == Self.bytes && folder.names == ["film.mp4"])
  }

  @Test("a mirror replaces the bytes of a body that breaks off")
  func mirror() async throws {
    let origin = Origin()
    origin.gate.open()
    let fixture = try ManagerFixture()
    let mirror = try fixture.url("/mirror")
    fixture.network.serve(fixture.url) { origin.respond($0).cut(after: 350_000) }
    let other = Data(filePattern(500_000).reversed())
    fixture.network.serve(mirror) { _ in ScriptedResponse.ok(other, etag: "\"3\"").chunked(by: 70_000) }

    _ = try await fixture.manager.load(
      fixture.url, to: folder.file(), options: RequestOptions { $0.alternatives = [.mirror(mirror)] })

    #expect(folder.content() == other && folder.names == ["film.mp4"])
  }
}
