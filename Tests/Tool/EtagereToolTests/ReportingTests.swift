#if Tool
import Etagere
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@testable import EtagereTool

@Suite("etagere-cli: --quiet, --verbose and sizes", .timeLimit(.minutes(30)))
struct ReportingTests {
  @Test("--verbose writes request, response, stored entry and Cache-Status to standard error")
  func verbose() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      origin.setRoute("/a", Route(bytes(5_000), etag: "v1", fields: [.cacheControl: "no-cache"]))
      let url = origin.url("/a").absoluteString

      // When
      let cold = try await fixture.etagere("get", "--verbose", url)
      let stale = try await fixture.etagere("get", "-v", url)

      // Then
      #expect(cold.status == 0 && stale.status == 0)
      #expect(cold.lines.count == 1 && stale.lines.count == 1)
      #expect(cold.errors.contains("> GET \(url)"))
      #expect(cold.errors.contains { $0.hasPrefix("< 200") && $0.hasSuffix("(\(url))") })
      #expect(cold.errors.contains { $0.lowercased() == "< cache-control: no-cache" })
      #expect(cold.errors.contains("* \(url): stored 4.9 KiB on disk"))
      #expect(cold.errors.contains("* \(url): Cache-Status: Etagere;fwd=uri-miss;stored"))
      #expect(stale.errors.contains { $0.lowercased() == "> if-none-match: \"v1\"" })
      #expect(stale.errors.contains("* \(url): Cache-Status: Etagere;fwd=stale;fwd-status=304"))
    }
  }

  @Test("--verbose states a hit without a request")
  func hit() async throws {
    try await withOrigin { origin in
      let fixture = try ToolFixture()
      origin.setRoute("/a", Route(bytes(100), fields: [.cacheControl: "max-age=3600"]))
      let url = origin.url("/a").absoluteString
      #expect(try await fixture.etagere("get", url).status == 0)
      let run = try await fixture.etagere("get", "--verbose", url)
      #expect(run.errors.contains { $0.hasPrefix("* \(url): found on disk") })
      #expect(run.errors.contains("* \(url): Cache-Status: Etagere;hit"))
      #expect(!run.errors.contains { $0.hasPrefix(">") })
    }
  }

  @Test(
    "--verbose states the planner's reason for a request",
    arguments: [("revalidate", "request;fwd-status=304"), ("reload", "request;stored")])
  func reason(_ policy: String, _ status: String) async throws {
    try await withOrigin { origin in
      let fixture = try ToolFixture()
      origin.setRoute("/a", Route(bytes(100), etag: "v1", fields: [.cacheControl: "max-age=3600"]))
      let url = origin.url("/a").absoluteString
      #expect(try await fixture.etagere("get", url).status == 0)
      let run = try await fixture.etagere("get", "--verbose", "--policy", policy, url)
      #expect(run.errors.contains("* \(url): Cache-Status: Etagere;fwd=\(status)"))
    }
  }

  @Test("--verbose hides the values of credentials")
  func credentials() async throws {
    try await withOrigin { origin in
      let fixture = try ToolFixture()
      origin.setRoute("/a", Route(bytes(100), fields: [.setCookie: "id=hunter2"]))
      let run = try await fixture.etagere(
        "get", "-v", "--header", "Authorization: Bearer hunter2", "--header", "Cookie: id=hunter2",
        "--header", "X-API-Key: hunter2", origin.url("/a").absoluteString)
      #expect(run.status == 0)
      #expect(run.errors.contains { $0.lowercased() == "> authorization: (hidden)" })
      #expect(run.errors.contains { $0.lowercased() == "> x-api-key: (hidden)" })
      #expect(run.errors.contains { $0.lowercased() == "< set-cookie: (hidden)" })
      #expect(!run.errors.contains { $0.contains("hunter2") })
    }
  }

  @Test(
    "a field is hidden if it has credentials, or a name with 'key', 'token' or 'secret'",
    arguments: [
      ("Authorization", true), ("Proxy-Authorization", true), ("Cookie", true), ("Set-Cookie", true), ("X-API-KEY", true),
      ("X-Auth-Token", true), ("Client-Secret", true), ("Location", false), ("Accept-Language", false), ("ETag", false),
    ])
  func hidden(_ name: String, _ isHidden: Bool) throws {
    let field = try #require(HTTPField.Name(name))
    #expect(SecretFields.visible("hunter2", of: field) == (isHidden ? "(hidden)" : "hunter2"))
  }

  @Test("--verbose describes the other commands, and does not change their results")
  func otherCommands() async throws {
    try await withOrigin { origin in
      let fixture = try ToolFixture()
      origin.setRoute("/a", Route(bytes(100), fields: [.cacheControl: "max-age=3600"]))
      let url = origin.url("/a").absoluteString
      try fixture.write(url, "list")
      let prefetch = try await fixture.etagere("prefetch", "list", "--verbose")
      #expect(prefetch.lines == ["1 loaded, 0 already cached, 0 failed"])
      #expect(prefetch.errors.contains("> GET \(url)"))
      for command in ["stats", "list", "verify"] {
        let run = try await fixture.etagere("cache", command, "--verbose")
        #expect(run.status == 0)
        #expect(run.errors.contains { $0.hasPrefix("* cache folder /") })
        #expect(run.lines.count == (try await fixture.etagere("cache", command)).lines.count)
      }
      let verify = try await fixture.etagere("cache", "verify", "--verbose")
      #expect(verify.errors.contains { $0.hasPrefix("* checking 1 entry, ") })
    }
  }

  @Test("--quiet prints results and errors, and no note")
  func quiet() async throws {
    try await withOrigin { origin in
      let fixture = try ToolFixture()
      origin.setRoute("/a", Route(bytes(100)))
      let (good, bad) = (origin.url("/a").absoluteString, origin.url("/missing").absoluteString)
      let both = try await fixture.etagere("get", "--quiet", good, bad)
      #expect(both.lines.count == 1 && both.lines.first?.hasSuffix(good) == true)
      #expect(both.errors.count == 1 && both.errors.first?.hasPrefix("etagere-cli: \(bad): ") == true)
      let output = try await fixture.etagere("get", "-q", good, "-o", "-")
      #expect(output.status == 0)
      #expect(output.output == bytes(100))
      #expect(output.errors.isEmpty)
    }
  }

  @Test(
    "sizes are in binary units",
    arguments: [
      (0, "0 B"), (1_023, "1023 B"), (1_024, "1.0 KiB"), (5_000, "4.9 KiB"), (1_048_524, "1023.9 KiB"), (1_048_575, "1.00 MiB"),
      (1 << 20, "1 MiB"), (2_331_000, "2.22 MiB"), (512 << 20, "512 MiB"), (1_073_741_823, "1.00 GiB"), (3 << 30, "3 GiB"),
    ] as [(Int64, String)])
  func sizes(_ count: Int64, _ text: String) {
    #expect(Text.bytes(count) == text)
  }
}

#if os(Linux)
private let hasTerminal = FileManager.default.isExecutableFile(atPath: "/usr/bin/script")

/// Runs the tool in a terminal, which `script` of util-linux provides.
@Suite("etagere-cli: progress in a terminal", .enabled(if: hasTerminal), .timeLimit(.minutes(30)))
struct ProgressTests {
  private func inTerminal(_ fixture: ToolFixture, _ arguments: [String]) async throws -> String {
    let words = [try ToolFixture.executable().path] + arguments
    let command = words.map { "'\($0)'" }.joined(separator: " ")
    let run = try await fixture.run(
      ["--quiet", "--return", "--command", command, "/dev/null"], program: "/usr/bin/script")
    #expect(run.status == 0)
    return String(decoding: run.output, as: UTF8.self)
  }

  @Test("prefetch and verify draw a bar and remove it", arguments: [[], ["--quiet"]])
  func bars(_ options: [String]) async throws {
    try await withOrigin { origin in
      let fixture = try ToolFixture()
      origin.setFallback { _ in OriginResponse(bytes(2_000), fields: [.cacheControl: "max-age=3600"]) }
      try fixture.write((0..<5).map { origin.url("/\($0)").absoluteString }.joined(separator: "\n"), "list")

      let prefetch = try await inTerminal(fixture, ["prefetch", "list", "--cache-dir", fixture.cache] + options)
      let verify = try await inTerminal(fixture, ["cache", "verify", "--cache-dir", fixture.cache] + options)

      #expect(prefetch.contains("[##############################] 5/5") == options.isEmpty)
      #expect(verify.contains("] checking 5 entries, ") == options.isEmpty)
      for (text, result) in [
        (prefetch, "5 loaded, 0 already cached, 0 failed"), (verify, "5 entries: 5 good, 0 damaged, 0 removed"),
      ] {
        // The result follows the sequence that erases the bar.
        let line = text.split(whereSeparator: \.isNewline).last.map(String.init) ?? ""
        #expect(line.split(separator: "\u{1B}[K").last.map(String.init) == result)
      }
    }
  }

  @Test("no bar is drawn if standard error is not a terminal")
  func noTerminal() async throws {
    let fixture = try ToolFixture()
    try fixture.write("data:,a\ndata:,b", "list")
    #expect(try await fixture.etagere("prefetch", "list").errors.isEmpty)
    #expect(try await fixture.etagere("get", "data:,a").errors.isEmpty)
  }

  @Test("demo draws a bar with the name of the pass, filled by the passes that have ended", .tags(.slow))
  func demo() async throws {
    let fixture = try ToolFixture()
    let text = try await inTerminal(fixture, ["demo", "--cache-dir", fixture.cache])
    #expect(text.contains("] no cache, 1 at a time"))
    // 14 of 17 passes have ended.
    #expect(text.contains("\(ProgressBar.bar(14.0 / 17)) photographs, together"))
  }
}
#endif

@Suite("etagere-cli: progress bar")
struct ProgressBarTests {
  @Test("a bar is filled by the share, and an activity mark moves inside it")
  func bar() {
    #expect(ProgressBar.bar(0) == "[\(String(repeating: "-", count: 30))]")
    #expect(ProgressBar.bar(0.5) == "[\(String(repeating: "#", count: 15))\(String(repeating: "-", count: 15))]")
    #expect(ProgressBar.bar(2) == "[\(String(repeating: "#", count: 30))]")
    #expect(ProgressBar.bar(.nan) == ProgressBar.bar(0))
    let steps = (0..<100).map(ProgressBar.activity)
    #expect(steps.allSatisfy { $0.count == 32 && $0.count { $0 == "#" } == 5 })
    #expect(steps[0] == steps[50] && steps[24] == steps[26] && steps[0] != steps[1])
  }
}
#endif
