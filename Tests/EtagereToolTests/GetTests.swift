#if Tool
import Etagere
import Foundation
import LoopbackOrigin
import Testing

@Suite("etagere get: where an answer comes from", .timeLimit(.minutes(30)))
struct GetTests {
  @Test("a fresh answer comes from the network once, and from disk in the next process")
  func freshAnswer() async throws {
    try await withOrigin { origin in
      // Given
      let place = try Workplace()
      let body = bytes(5_000)
      origin.setRoute("/a.png", Route(body, etag: "v1", fields: [.cacheControl: "max-age=3600"]))
      let url = origin.url("/a.png").absoluteString

      // When
      let first = try await place.etagere("get", url)
      let second = try await place.etagere("get", url)

      // Then
      #expect(first.status == 0)
      #expect(first.complaints.isEmpty)
      #expect(first.lines.count == 1)
      let line = try #require(first.lines.first)
      #expect(line.hasPrefix("network        200     5.0 kB"))
      #expect(line.hasSuffix(" ms  \(url)"))
      #expect(second.status == 0)
      #expect(second.lines.count == 1)
      #expect(second.lines[0].hasPrefix("disk           200        0 B"))
      #expect(origin.counters.requests == 1)
    }
  }

  @Test("a stale answer is asked for again: 304 while it is unchanged, 200 when it has changed")
  func staleAnswer() async throws {
    try await withOrigin { origin in
      // Given
      let place = try Workplace()
      let url = origin.url("/a").absoluteString
      func publish(_ body: Data, _ etag: OriginETag) {
        origin.setRoute("/a", Route(body, etag: etag, fields: [.cacheControl: "max-age=0"]))
      }
      func get(_ file: String) async throws -> LoadDocument {
        let run = try await place.etagere("get", url, "--json", "-o", file)
        #expect(run.status == 0)
        #expect(run.complaints.isEmpty)
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
      #expect([first.validation, unchanged.validation, changed.validation] == ["notAttempted", "notModified", "modified"])
      #expect([first.status, unchanged.status, changed.status] == [200, 304, 200])
      #expect([first.bytesOnWire, unchanged.bytesOnWire, changed.bytesOnWire] == [2_000, 0, 3_000])
      #expect(try [place.read("1"), place.read("2"), place.read("3")] == [bytes(2_000), bytes(2_000), bytes(3_000, seed: 9)])
      #expect(origin.counters.notModified == 1)
    }
  }

  @Test("a stale answer stands in when nobody answers, and the line says so")
  func offline() async throws {
    try await withOrigin { origin in
      // Given
      let place = try Workplace()
      origin.setRoute("/a", Route(bytes(100), etag: "v1", fields: [.cacheControl: "max-age=0"]))
      let url = origin.url("/a").absoluteString
      #expect(try await place.etagere("get", url).status == 0)
      await origin.setLink(.offline)

      // When
      let run = try await place.etagere("get", url)

      // Then
      #expect(run.status == 0)
      #expect(run.lines.count == 1)
      #expect(run.lines.first?.contains("(not validated: nobody answered; ") == true)
    }
  }

  @Test("--policy cache-only answers what is stored, and never asks for what is not")
  func cacheOnly() async throws {
    try await withOrigin { origin in
      // Given
      let place = try Workplace()
      origin.setFallback { _ in OriginAnswer(bytes(10), fields: [.cacheControl: "max-age=3600"]) }
      let (stored, missing) = (origin.url("/stored").absoluteString, origin.url("/missing").absoluteString)
      #expect(try await place.etagere("get", stored).status == 0)

      // When
      let hit = try await place.etagere("get", "--policy", "cache-only", stored)
      let miss = try await place.etagere("get", "--policy", "cache-only", missing)

      // Then
      #expect(hit.status == 0)
      #expect(hit.lines.first?.hasPrefix("disk ") == true)
      #expect(miss.status == 80)
      #expect(miss.lines.isEmpty)
      #expect(miss.complaints == ["etagere: \(missing): not in the cache, and only the cache may be asked"])
      #expect(origin.counters.requests == 1)
    }
  }

  @Test("--policy reload asks for what is stored and fresh")
  func reload() async throws {
    try await withOrigin { origin in
      // Given
      let place = try Workplace()
      origin.setRoute("/a", Route(bytes(10), etag: "v1", fields: [.cacheControl: "max-age=3600"]))
      let url = origin.url("/a").absoluteString
      #expect(try await place.etagere("get", url).status == 0)

      // When
      let run = try await place.etagere("get", "--policy", "reload", url)

      // Then
      #expect(run.status == 0)
      #expect(run.lines.first?.hasPrefix("network        200 ") == true)
      #expect(origin.counters.requests == 2)
    }
  }

  @Test("--header sends its fields, repeated ones too, with the blanks around the value gone")
  func headers() async throws {
    try await withOrigin { origin in
      // Given
      let place = try Workplace()
      origin.setRoute("/a", Route(bytes(10)))

      // When
      let run = try await place.etagere(
        "get", "--header", "Accept-Language:  de ", "--header", "X-Colour: red: dark", origin.url("/a").absoluteString)

      // Then
      #expect(run.status == 0)
      let request = try #require(origin.requests.first)
      #expect(request.fields.first { $0.name.canonicalName == "accept-language" }?.value == "de")
      #expect(request.fields.first { $0.name.canonicalName == "x-colour" }?.value == "red: dark")
    }
  }

  @Test("file and data URLs are answered without a network and without an entry in the cache")
  func otherSchemes() async throws {
    // Given
    let place = try Workplace()
    let file = try place.write("a file", "a.txt")

    // When
    let run = try await place.etagere("get", "--json", "file://\(file)", "data:,some%20data", "-o", "out/")

    // Then
    #expect(run.status == 0)
    #expect(run.complaints.isEmpty)
    let documents = try run.documents(LoadDocument.self)
    #expect(documents.count == 2)
    #expect(documents.allSatisfy { $0.source == "schemeHandler" && $0.status == 200 && $0.bytesOnWire == 0 })
    #expect(try place.read("out/a.txt") == Data("a file".utf8))
    #expect(try place.read("out/resource-2") == Data("some data".utf8))
    #expect(place.entryFiles.isEmpty)
  }
}
#endif
