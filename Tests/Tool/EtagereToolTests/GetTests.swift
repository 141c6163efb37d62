#if Tool
import Etagere
import Foundation
import LoopbackOrigin
import Testing

@testable import EtagereTool

@Suite("etagere-cli get", .timeLimit(.minutes(30)))
struct GetTests {
  @Test("the network serves a resource once, and disk serves it in the next process")
  func freshAnswer() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      let body = bytes(5_000)
      origin.setRoute("/a.png", Route(body, etag: "v1", fields: [.cacheControl: "max-age=3600"]))
      let url = origin.url("/a.png").absoluteString

      // When
      let first = try await fixture.etagere("get", url)
      let second = try await fixture.etagere("get", url)

      // Then
      #expect(first.status == 0)
      #expect(first.errors.isEmpty)
      #expect(first.lines.count == 1)
      let line = try #require(first.lines.first)
      #expect(line.hasPrefix("network         200     4.9 KiB"))
      #expect(line.hasSuffix(" ms  \(url)"))
      #expect(second.status == 0)
      #expect(second.lines.count == 1)
      #expect(second.lines[0].hasPrefix("disk            200         0 B"))
      #expect(origin.counters.requests == 1)
    }
  }

  @Test("a stale response is revalidated: 304 if it is unchanged, 200 if it has changed")
  func staleAnswer() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      let url = origin.url("/a").absoluteString
      func publish(_ body: Data, _ etag: OriginETag) {
        origin.setRoute("/a", Route(body, etag: etag, fields: [.cacheControl: "max-age=0"]))
      }
      func get(_ file: String) async throws -> LoadDocument {
        let run = try await fixture.etagere("get", url, "--json", "-o", file)
        #expect(run.status == 0)
        #expect(run.errors.isEmpty)
        return try #require(try run.documents(LoadDocument.self).first)
      }

      // When
      publish(bytes(2_000), "v1")
      let first = try await get("1")
      let unchanged = try await get("2")
      publish(bytes(3_000, seed: 9), "v2")
      let changed = try await get("3")

      // Then
      #expect([first.source, unchanged.source, changed.source] == ["network", "revalidated", "network"])
      #expect([first.validation, unchanged.validation, changed.validation] == ["not-attempted", "not-modified", "modified"])
      #expect([first.status, unchanged.status, changed.status] == [200, 304, 200])
      #expect([first.bytesOnWire, unchanged.bytesOnWire, changed.bytesOnWire] == [2_000, 0, 3_000])
      #expect(
        try [fixture.read("1"), fixture.read("2"), fixture.read("3")] == [bytes(2_000), bytes(2_000), bytes(3_000, seed: 9)])
      #expect(origin.counters.notModified == 1)
    }
  }

  @Test("a stale response is served if the origin is unreachable, and the line says so")
  func offline() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      origin.setRoute("/a", Route(bytes(100), etag: "v1", fields: [.cacheControl: "max-age=0"]))
      let url = origin.url("/a").absoluteString
      #expect(try await fixture.etagere("get", url).status == 0)
      await origin.setLink(.offline)

      // When
      let run = try await fixture.etagere("get", url)

      // Then
      #expect(run.status == 0)
      #expect(run.lines.count == 1)
      #expect(run.lines.first?.firstMatch(of: /\(stale, \d+ s old: .+\)$/) != nil)
    }
  }

  @Test("--policy cache-only serves a stored resource, and has the status 1 for another one")
  func cacheOnly() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      origin.setFallback { _ in OriginResponse(bytes(10), fields: [.cacheControl: "max-age=3600"]) }
      let (stored, missing) = (origin.url("/stored").absoluteString, origin.url("/missing").absoluteString)
      #expect(try await fixture.etagere("get", stored).status == 0)

      // When
      let hit = try await fixture.etagere("get", "--policy", "cache-only", stored)
      let miss = try await fixture.etagere("get", "--policy", "cache-only", missing)

      // Then
      #expect(hit.status == 0)
      #expect(hit.lines.first?.hasPrefix("disk ") == true)
      #expect(miss.status == 1)
      #expect(miss.lines.isEmpty)
      #expect(miss.errors.count == 1)
      #expect(miss.errors.first?.hasPrefix("etagere-cli: \(missing): not in the cache") == true)
      #expect(origin.counters.requests == 1)
    }
  }

  @Test("--policy reload requests a resource that is stored and fresh")
  func reload() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      origin.setRoute("/a", Route(bytes(10), etag: "v1", fields: [.cacheControl: "max-age=3600"]))
      let url = origin.url("/a").absoluteString
      #expect(try await fixture.etagere("get", url).status == 0)

      // When
      let run = try await fixture.etagere("get", "--policy", "reload", url)

      // Then
      #expect(run.status == 0)
      #expect(run.lines.first?.hasPrefix("network         200 ") == true)
      #expect(origin.counters.requests == 2)
    }
  }

  @Test("--header sends each field, without the white space around its value")
  func headers() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      origin.setRoute("/a", Route(bytes(10)))

      // When
      let run = try await fixture.etagere(
        "get", "--header", "Accept-Language:  de ", "--header", "X-Colour: red: dark", origin.url("/a").absoluteString)

      // Then
      #expect(run.status == 0)
      let request = try #require(origin.requests.first)
      #expect(request.fields.first { $0.name.canonicalName == "accept-language" }?.value == "de")
      #expect(request.fields.first { $0.name.canonicalName == "x-colour" }?.value == "red: dark")
      #expect(request.fields.first { $0.name.canonicalName == "user-agent" }?.value == "etagere/\(EtagereCommand.version)")
    }
  }

  @Test("file and data URLs are loaded without the network and are not stored")
  func otherSchemes() async throws {
    // Given
    let fixture = try ToolFixture()
    let file = try fixture.write("a file", "a.txt")

    // When
    let run = try await fixture.etagere("get", "--json", "file://\(file)", "data:,some%20data", "-o", "out/")

    // Then
    #expect(run.status == 0)
    #expect(run.errors.isEmpty)
    let documents = try run.documents(LoadDocument.self)
    #expect(documents.count == 2)
    #expect(documents.allSatisfy { $0.source == "scheme-handler" && $0.status == 200 && $0.bytesOnWire == 0 })
    #expect(try fixture.read("out/a.txt") == Data("a file".utf8))
    #expect(try fixture.read("out/resource-2") == Data("some data".utf8))
    #expect(fixture.entryFiles.isEmpty)
  }
}
#endif
