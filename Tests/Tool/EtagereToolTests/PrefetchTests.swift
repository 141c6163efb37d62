#if Tool
import Etagere
import Foundation
import LoopbackOrigin
import Testing

@Suite("etagere-cli prefetch", .timeLimit(.minutes(30)))
struct PrefetchTests {
  private struct Document: Decodable {
    var loaded: Int
    var skipped: Int
    var failed: [LoadDocument.Failure]
  }

  @Test("the URLs of a list are loaded once, from a file or from standard input", arguments: [false, true])
  func list(fromStandardInput: Bool) async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      origin.setFallback { _ in OriginResponse(bytes(100), etag: "v1", fields: [.cacheControl: "max-age=3600"]) }
      let (first, second) = (origin.url("/1").absoluteString, origin.url("/2").absoluteString)
      let text = "# two images\n\n  \(first)  \r\n\t# and\n\(second)"
      try fixture.write(text, "list")
      func prefetch() async throws -> ToolRun {
        fromStandardInput
          ? try await fixture.etagere("prefetch", "-", input: text) : try await fixture.etagere("prefetch", "list")
      }

      // When
      let cold = try await prefetch()
      let warm = try await prefetch()

      // Then
      #expect(cold.status == 0)
      #expect(cold.errors.isEmpty)
      #expect(cold.lines == ["2 loaded, 0 already cached, 0 failed"])
      #expect(warm.lines == ["0 loaded, 2 already cached, 0 failed"])
      #expect(origin.counters.requests == 2)
      #expect(try await fixture.etagere("get", "--policy", "cache-only", first, second).status == 0)
    }
  }

  @Test("an invalid line is reported with its number, and the exit status is that of the first failure in the list")
  func badLine() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      origin.setRoute("/good", Route(bytes(100), fields: [.cacheControl: "max-age=3600"]))
      let (good, missing) = (origin.url("/good").absoluteString, origin.url("/missing").absoluteString)
      try fixture.write("# a list\n\(missing)\nno url\n\(good)\n", "list")

      // When
      let plain = try await fixture.etagere("prefetch", "list")
      let json = try await fixture.etagere("prefetch", "list", "--json")

      // Then
      #expect(plain.status == 69)
      #expect(plain.errors.count == 2)
      #expect(plain.errors.first?.hasPrefix("etagere-cli: list, line 3: no url: ") == true)
      #expect(plain.errors.last?.hasPrefix("etagere-cli: \(missing): ") == true)
      #expect(plain.lines == ["1 loaded, 0 already cached, 2 failed"])
      #expect(json.status == 69)
      #expect(json.errors == plain.errors)
      let document = try #require(try json.documents(Document.self).first)
      #expect(json.lines.count == 1)
      #expect(document.loaded == 0 && document.skipped == 1)
      #expect(document.failed.map(\.exitStatus) == [65, 69])
      #expect(document.failed.map { "etagere-cli: \($0.message)" } == plain.errors)
    }
  }

  @Test("a list may have a byte order mark and CRLF, and a line that is not UTF-8 is reported with its number")
  func encodings() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      origin.setFallback { _ in OriginResponse(bytes(10), fields: [.cacheControl: "max-age=3600"]) }
      let (first, second) = (origin.url("/1").absoluteString, origin.url("/2").absoluteString)
      var list = Data("\u{FEFF}\(first)\r\n# ü\r\n\r\nhttp://a.example/".utf8)
      list.append(0xFC)
      list.append(contentsOf: Data("\r\n\(second)\r\n".utf8))
      try list.write(to: URL(filePath: fixture.path + "/list"))
      try Data([0xFF, 0xFE, 0x68, 0]).write(to: URL(filePath: fixture.path + "/utf16"))

      // When
      let run = try await fixture.etagere("prefetch", "list")
      let utf16 = try await fixture.etagere("prefetch", "utf16")
      let pipe = try await fixture.shell("cat list | etagere-cli prefetch /dev/stdin --cache-dir cache")

      // Then
      #expect(run.status == 65)
      #expect(run.errors == ["etagere-cli: list, line 4: not UTF-8 text"])
      #expect(run.lines == ["2 loaded, 0 already cached, 1 failed"])
      #expect(utf16.status == 65)
      #expect(utf16.errors == ["etagere-cli: utf16, line 1: not UTF-8 text"])
      #expect(pipe.lines == ["0 loaded, 2 already cached, 1 failed"])
    }
  }

  @Test("a list that cannot be read has the status 66")
  func unreadable() async throws {
    let fixture = try ToolFixture()
    let run = try await fixture.etagere("prefetch", "nowhere.txt")
    #expect(run.status == 66)
    #expect(run.lines.isEmpty)
    #expect(run.errors == ["etagere-cli: cannot read 'nowhere.txt': No such file or directory"])
  }
}
#endif
