#if Tool
import CacheTesting
import Etagere
import Foundation
import LoopbackOrigin
import Testing

@Suite("etagere-cli get: failures", .timeLimit(.minutes(30)))
struct FailureTests {
  struct Failure: Sendable, CustomTestStringConvertible {
    var testDescription: String
    /// The URL, or the path of a URL of the origin.
    var url: String
    var status: Int32
    /// A part of the reason. The library words the reasons, and tests them.
    var reason: String

    init(_ description: String, _ url: String, _ status: Int32, _ reason: String = "") {
      (testDescription, self.url, self.status, self.reason) = (description, url, status, reason)
    }
  }

  @Test(
    "a URL that cannot be loaded is reported in one line",
    arguments: [
      Failure("not a URL", "not a url", 64, "scheme"), Failure("an empty text", "", 64, "not a URL"),
      Failure("no host", "http://", 64, "no host"),
      Failure("an invalid international host", "http://ü..example/", 64, "'ü..example'"),
      Failure("an invalid port", "http://127.0.0.1:70000/", 64, "port 70000"),
      Failure("a data URL without a comma", "data:text", 64, "comma"),
      Failure("an unknown scheme", "gopher://a/b", 64, "'gopher'"),
      // RFC 6761 §6.4: never resolves.
      Failure("an unknown host", "http://nowhere.invalid/", 68, "host name"),
      Failure("a missing file", "file:///etagere/nowhere", 66, "No such file or directory"),
    ])
  func addresses(_ failure: Failure) async throws {
    let fixture = try ToolFixture()
    let run = try await fixture.etagere("get", failure.url)
    #expect(run.status == failure.status)
    #expect(run.lines.isEmpty)
    #expect(run.errors.count == 1)
    let error = try #require(run.errors.first)
    #expect(error.hasPrefix("etagere-cli: \(failure.url.isEmpty ? "''" : failure.url): "))
    #expect(error.contains(failure.reason))
  }

  @Test("a refused connection has the status 69")
  func refused() async throws {
    // Given
    let url = "http://127.0.0.1:1/a"
    let fixture = try ToolFixture()

    // When
    let run = try await fixture.etagere("get", url)

    // Then
    #expect(run.status == 69)
    #expect(run.errors == ["etagere-cli: \(url): connection refused"])
  }

  @Test(
    "a response that is not accepted or not complete is reported in one line",
    arguments: [
      Failure("404", "/404", 69, "404 Not Found"), Failure("403", "/403", 77, "403 Forbidden"),
      Failure("500", "/500", 75, "500 Internal Server Error"), Failure("503", "/503", 75, "503 Service Unavailable"),
      Failure("501", "/501", 69, "501 Not Implemented"), Failure("a truncated body", "/cut", 75, "3 of 6 bytes"),
    ])
  func responses(_ failure: Failure) async throws { try await expect(failure) }

  #if AsyncHTTP || canImport(Darwin)
  // Foundation on Linux traps, or reports both as a lost connection.
  @Test(
    "a response that is not HTTP is reported in one line",
    arguments: [Failure("not HTTP", "/garbage", 76), Failure("no response", "/closed", 75)])
  func noResponse(_ failure: Failure) async throws { try await expect(failure) }
  #endif

  private func expect(_ failure: Failure) async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      for status in [403, 500, 501, 503] { origin.setRoute("/\(status)", Route(Data(), status: .init(code: status))) }
      origin.setRoute("/cut", .fault(.cut(afterBodyBytes: 3)))
      origin.setRoute("/garbage", .fault(.garbage))
      origin.setRoute("/closed", .fault(.closeBeforeHead))
      let url = origin.url(failure.url).absoluteString

      // When
      let run = try await fixture.etagere("get", url)

      // Then
      #expect(run.status == failure.status)
      #expect(run.lines.isEmpty)
      #expect(run.errors.count == 1)
      let error = try #require(run.errors.first)
      #expect(error.hasPrefix("etagere-cli: \(url): ") && error.count > "etagere-cli: \(url): ".count)
      #expect(failure.reason.isEmpty || error.contains(failure.reason))
      #expect(fixture.entryFiles.isEmpty)
    }
  }

  @Test("no output has the user information of a URL")
  func passwords() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      origin.setRoute("/a", Route(bytes(10), etag: "v1", fields: [.cacheControl: "max-age=3600"]))
      let base = "http://me:secret@127.0.0.1:\(try #require(origin.url("/").port))"
      let invalid = ["http://me:secret@", "http://me:secret@127.0.0.1:70000/", "me:secret@a.example", "http://me:sec/secret@a/"]
      try fixture.write(([base + "/a", base + "/missing"] + invalid).joined(separator: "\n"), "list")

      // When
      var runs = [
        try await fixture.etagere("get", "--verbose", "--trace", "trace.html", base + "/a", base + "/missing"),
        try await fixture.etagere("get", "--json", base + "/a", base + "/missing"),
        try await fixture.etagere("prefetch", "--json", "list"),
        try await fixture.etagere("inspect", "--json", base + "/missing"),
        try await fixture.etagere("cache", "list"),
        try await fixture.etagere("cache", "remove", base + "/a"),
        try await fixture.etagere("cache", "remove", base + "/a"),
      ]
      for url in invalid {
        runs.append(try await fixture.etagere("get", "--json", url))
        runs.append(try await fixture.etagere("cache", "remove", url))
      }

      // Then
      #expect(origin.requests.first?.fields.contains { $0.name.canonicalName == "authorization" } == true)
      for run in runs {
        #expect(!run.lines.isEmpty || !run.errors.isEmpty)
        for line in run.lines + run.errors { #expect(!line.contains("secret"), "\(line)") }
      }
      #expect(try !String(decoding: fixture.read("trace.html"), as: UTF8.self).contains("secret"))
    }
  }

  @Test("--timeout ends a load without a response")
  func timeout() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      origin.setRoute("/never", .fault(.stallBeforeHead))
      let url = origin.url("/never").absoluteString

      // When
      let run = try await fixture.etagere("get", "--timeout", "0.2", url)

      // Then
      #expect(run.status == 75)
      #expect(run.errors.count == 1)
      #expect(run.errors.first?.hasPrefix("etagere-cli: \(url): ") == true)
    }
  }

  @Test("the other URLs are loaded, and the exit status is that of the first failure on the command line")
  func list() async throws {
    try await withOrigin { origin in
      // Given: the first URL fails last. With two loads at a time, /good is requested after the second one has failed.
      let fixture = try ToolFixture()
      let gate = Gate()
      origin.setRoute("/late", Route(OriginResponse(text: "gone", status: .notFound, delivery: .gated(by: gate))))
      origin.setRoute("/good", Route(bytes(50)))
      let (late, good) = (origin.url("/late").absoluteString, origin.url("/good").absoluteString)

      // When
      async let pending = fixture.etagere("get", "--parallel", "2", late, "gopher://x", good, "data:,also")
      await origin.waitForRequests(path: "/good")
      gate.open()
      let run = try await pending

      // Then
      #expect(run.status == 69)
      #expect(run.errors.count == 2)
      #expect(run.errors.first?.hasPrefix("etagere-cli: gopher://x: ") == true)
      #expect(run.errors.last?.hasPrefix("etagere-cli: \(late): ") == true)
      #expect(run.lines.count == 2)
      #expect(run.lines.contains { $0.hasPrefix("network         200 ") && $0.hasSuffix(good) })
      #expect(run.lines.contains { $0.hasPrefix("scheme-handler  200 ") && $0.hasSuffix("data:,also") })
    }
  }

  @Test("a failed reload does not change the stored response")
  func cacheIntact() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      origin.setRoute("/a", Route(bytes(77), etag: "v1", fields: [.cacheControl: "max-age=3600"]))
      let url = origin.url("/a").absoluteString
      #expect(try await fixture.etagere("get", url).status == 0)

      // When
      origin.setRoute("/a", .fault(.cut(afterBodyBytes: 3)))
      let failed = try await fixture.etagere("get", "--policy", "reload", url)
      let after = try await fixture.etagere("get", url, "-o", "-")

      // Then
      #expect(failed.status == 75)
      #expect(after.status == 0)
      #expect(after.output == bytes(77))
      #expect(try await fixture.etagere("cache", "verify").status == 0)
    }
  }

  @Test(
    "a cache folder that is a file has the status 74",
    arguments: [["get", "data:,a"], ["cache", "stats"], ["cache", "clear"], ["prefetch", "-"]])
  func cacheFolderIsFile(_ command: [String]) async throws {
    // Given
    let fixture = try ToolFixture()
    try fixture.write("a file", "cache")

    // When
    let run = try await fixture.run(command + ["--cache-dir", fixture.cache])

    // Then
    #expect(run.status == 74)
    #expect(run.lines.isEmpty)
    #expect(run.errors.count == 1)
    #expect(run.errors.first?.hasPrefix("etagere-cli: cannot use the cache folder: \(fixture.cache)") == true)
    #expect(run.errors.first?.contains("Not a directory") == true)
    #expect(try fixture.read("cache") == Data("a file".utf8))
  }

  #if os(Linux)
  @Test("an error of standard output has the status 74", arguments: [["-o", "-"], ["--json"], []])
  func standardOutputFull(_ form: [String]) async throws {
    let fixture = try ToolFixture()
    let run = try await fixture.run(["get", "data:,a", "--cache-dir", fixture.cache] + form, output: "/dev/full")
    #expect(run.status == 74)
    #expect(run.errors.count == 1)
    #expect(run.errors.first?.hasSuffix("cannot write standard output: No space left on device") == true)
  }
  #endif
}
#endif
