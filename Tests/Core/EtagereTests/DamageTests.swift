#if Origin
import Etagere
import Foundation
import LoopbackOrigin
import Testing

@Suite("Faults of the network and the disk", .timeLimit(.minutes(30)))
struct DamageTests {
  @Test(
    "a broken response is an error and stores nothing, and the next load succeeds",
    arguments: [
      OriginFault.cut(afterBodyBytes: 40_000), .cut(afterBodyBytes: 0), .reset(afterBodyBytes: 40_000), .resetBeforeHead,
      .closeBeforeHead, .garbage,
    ])
  func brokenResponse(_ fault: OriginFault) async throws {
    try await OriginFixture.run { fixture in
      // Given
      let url = fixture.origin.url("/a")
      let fields: HTTPFields = [.cacheControl: "max-age=3600"]
      fixture.origin.setRoute("/a", Route(pattern(100_000), etag: "v1", fields: fields, delivery: .fault(fault)))
      let manager = try fixture.manager { $0.downloader = SessionDownloader.patient() }

      // When
      let error = await failure { _ = try await manager.load(url) }

      // Then
      #expect(error?.isUnreachable == true)
      #expect(error?.url == url.absoluteString)
      #expect(try await manager.lookup(url) == .miss)
      #expect(fixture.folder.entries.isEmpty)

      fixture.origin.setRoute("/a", Route(pattern(100_000), etag: "v1", fields: fields))
      #expect(try await manager.load(url).data == pattern(100_000))
      #expect(try await fixture.manager().load(url).source == .disk)
    }
  }

  @Test("a broken response leaves the stored one, which is served instead")
  func brokenRevalidation() async throws {
    try await OriginFixture.run { fixture in
      let url = fixture.origin.url("/a")
      let fields: HTTPFields = [.cacheControl: "max-age=0"]
      fixture.origin.setRoute("/a", Route(pattern(1_000), etag: "v1", fields: fields))
      let manager = try fixture.manager { $0.downloader = SessionDownloader.patient() }
      _ = try await manager.load(url)

      let broken = Route(pattern(90_000, seed: 3), etag: "v2", fields: fields, delivery: .fault(.cut(afterBodyBytes: 50_000)))
      fixture.origin.setRoute("/a", broken)
      let shown = try await manager.load(url)
      #expect(shown.data == pattern(1_000))
      #expect(shown.validation == .failed)

      fixture.origin.setRoute("/a", Route(pattern(90_000, seed: 3), etag: "v2", fields: fields))
      #expect(try await manager.load(url).data == pattern(90_000, seed: 3))
    }
  }

  @Test("a damaged file is a miss, and one request replaces it", arguments: [200, 5_000, 300_000])
  func damagedFile(_ size: Int) async throws {
    try await OriginFixture.run { fixture in
      // Given
      let url = fixture.origin.url("/a")
      fixture.origin.setRoute("/a", Route(pattern(size), etag: "v1", fields: [.cacheControl: "max-age=3600"]))
      _ = try await fixture.manager().load(url)
      #expect(fixture.folder.entries.count == 1)

      // When a bit of the body flips on the disk
      for file in fixture.folder.entries {
        var bytes = try Data(contentsOf: file)
        let body = try #require(bytes.range(of: pattern(size).prefix(150)))
        bytes[body.lowerBound + 100] ^= 1
        let handle = try FileHandle(forWritingTo: file)
        try handle.write(contentsOf: bytes)
        try handle.close()
      }

      // Then
      let healed = try await fixture.manager().load(url)
      #expect(healed.data == pattern(size))
      #expect(healed.source == .network)
      #expect(fixture.requests("/a") == 2)
      #expect(try await fixture.manager().load(url).source == .disk)
      #expect(fixture.requests("/a") == 2)
    }
  }

  @Test("a file that is damaged in the middle costs at most one request, and never returns a wrong byte")
  func rottenFolder() async throws {
    try await OriginFixture.run { fixture in
      let paths = (0..<20).map { "/\($0)" }
      for (index, path) in paths.enumerated() {
        fixture.origin.setRoute(
          path, Route(pattern(7_000 * index, seed: index), etag: "v1", fields: [.cacheControl: "max-age=3600"]))
      }
      let first = try fixture.manager()
      for path in paths { _ = try await first.load(fixture.origin.url(path)) }

      for file in fixture.folder.entries {
        var bytes = try Data(contentsOf: file)
        bytes[bytes.count / 2] ^= 0x40
        try bytes.write(to: file)
      }

      let second = try fixture.manager()
      for (index, path) in paths.enumerated() {
        #expect(try await second.load(fixture.origin.url(path)).data == pattern(7_000 * index, seed: index))
        #expect(fixture.requests(path) <= 2)
      }
      // The larger files are damaged in their bodies, so most of them must be requested again.
      #expect(fixture.origin.counters.requests >= 30)
      let third = try fixture.manager()
      for path in paths { #expect(try await third.load(fixture.origin.url(path)).source == .disk) }
    }
  }

  @Test(
    "a status that is not a success is an error with that status, and the response is not stored",
    arguments: [404, 410, 500, 503])
  func statuses(_ status: Int) async throws {
    try await OriginFixture.run { fixture in
      let url = fixture.origin.url("/a")
      fixture.origin.setRoute("/a", Route(OriginResponse(text: "no", status: .init(code: status))))
      let manager = try fixture.manager()
      let error = await failure { _ = try await manager.load(url) }
      #expect(error?.code == .unacceptableStatus)
      #expect(error?.status == status)
      #expect(error?.url == url.absoluteString)

      fixture.origin.setRoute("/a", Route(Data("yes".utf8), etag: "v1"))
      #expect(try await manager.load(url).data == Data("yes".utf8))
    }
  }
}
#endif
