#if Tool
import Etagere
import Foundation
import LoopbackOrigin
import Testing

@Suite("etagere prefetch", .timeLimit(.minutes(30)))
struct PrefetchTests {
  private struct Document: Decodable {
    var loaded: Int
    var skipped: Int
    var failed: [LoadDocument.Failure]
  }

  @Test("a list brings its URLs into the cache, and what is there already is left alone", arguments: [false, true])
  func list(fromStandardInput: Bool) async throws {
    try await withOrigin { origin in
      // Given
      let place = try Workplace()
      origin.setFallback { _ in OriginAnswer(bytes(100), etag: "v1", fields: [.cacheControl: "max-age=3600"]) }
      let (first, second) = (origin.url("/1").absoluteString, origin.url("/2").absoluteString)
      let text = "# two pictures\n\n  \(first)  \r\n\t# and\n\(second)"
      try place.write(text, "list")
      func prefetch() async throws -> ToolRun {
        fromStandardInput ? try await place.etagere("prefetch", "-", input: text) : try await place.etagere("prefetch", "list")
      }

      // When
      let cold = try await prefetch()
      let warm = try await prefetch()

      // Then
      #expect(cold.status == 0)
      #expect(cold.complaints.isEmpty)
      #expect(cold.lines == ["2 loaded, 0 in the cache already, 0 failed"])
      #expect(warm.lines == ["0 loaded, 2 in the cache already, 0 failed"])
      #expect(origin.counters.requests == 2)
      #expect(try await place.etagere("get", "--policy", "cache-only", first, second).status == 0)
    }
  }

  @Test("a bad line is told with its number, the others are loaded, and the status is that of the first in the list")
  func badLine() async throws {
    try await withOrigin { origin in
      // Given
      let place = try Workplace()
      origin.setRoute("/good", Route(bytes(100), fields: [.cacheControl: "max-age=3600"]))
      let (good, missing) = (origin.url("/good").absoluteString, origin.url("/missing").absoluteString)
      try place.write("# a list\n\(missing)\nno url\n\(good)\n", "list")

      // When
      let plain = try await place.etagere("prefetch", "list")
      let json = try await place.etagere("prefetch", "list", "--json")

      // Then
      let complaints = [
        "etagere: list, line 3: no url: not an absolute URL (no scheme, such as https://)",
        "etagere: \(missing): the server answered 404 Not Found",
      ]
      #expect(plain.status == 22)
      #expect(plain.complaints == complaints)
      #expect(plain.lines == ["1 loaded, 0 in the cache already, 2 failed"])
      #expect(json.status == 22)
      #expect(json.complaints == complaints)
      let document = try #require(try json.documents(Document.self).first)
      #expect(json.lines.count == 1)
      #expect(document.loaded == 0 && document.skipped == 1)
      #expect(document.failed.map(\.exitStatus) == [3, 22])
      #expect(document.failed.map { "etagere: \($0.message)" } == complaints)
    }
  }

  @Test("a list that can't be read")
  func unreadable() async throws {
    let place = try Workplace()
    let run = try await place.etagere("prefetch", "nowhere.txt")
    #expect(run.status == 37)
    #expect(run.lines.isEmpty)
    #expect(run.complaints == ["etagere: nowhere.txt: the list can't be read: No such file or directory"])
  }
}
#endif
