#if Tool
import CacheTesting
import Etagere
import Foundation
import LoopbackOrigin
import Testing

@Suite("etagere get: what fails is said in one line, with a status of its own", .timeLimit(.minutes(30)))
struct FailureTests {
  struct Failure: Sendable, CustomTestStringConvertible {
    var what: String
    /// The URL; a path is one of the origin's.
    var url: String
    var status: Int32
    /// What follows the URL; nil: words of the platform's own.
    var reason: String?

    var testDescription: String { what }
  }

  @Test(
    "an address that leads nowhere",
    arguments: [
      Failure(
        what: "no URL", url: "not a url", status: 3, reason: "not an absolute URL (no scheme, such as https://)"),
      Failure(what: "no text", url: "", status: 3, reason: "not a URL"),
      Failure(what: "no host", url: "http://", status: 3, reason: "the URL has no host"),
      Failure(
        what: "an impossible international host", url: "http://ü..example/", status: 3,
        reason: "the host 'ü..example' is not a valid international name (IDNA, RFC 5891)"),
      Failure(what: "no such port", url: "http://127.0.0.1:70000/", status: 3, reason: "port 70000 does not exist"),
      Failure(
        what: "data without a comma", url: "data:text", status: 3, reason: "a data: URL needs a comma before its data"),
      Failure(what: "an unknown scheme", url: "gopher://a/b", status: 1, reason: "unsupported URL scheme 'gopher'"),
      // RFC 6761 §6.4: never resolves.
      Failure(what: "an unknown host", url: "http://nowhere.invalid/", status: 6, reason: "the host name does not resolve"),
      Failure(
        what: "a missing file", url: "file:///etagere/nowhere", status: 37, reason: "No such file or directory"),
    ])
  func addresses(_ failure: Failure) async throws {
    let place = try Workplace()
    let run = try await place.etagere("get", failure.url)
    #expect(run.status == failure.status)
    #expect(run.lines.isEmpty)
    #expect(run.complaints == ["etagere: \(failure.url.isEmpty ? "''" : failure.url): \(failure.reason ?? "")"])
  }

  @Test("a port where nobody listens")
  func refused() async throws {
    // Given
    let url = "http://127.0.0.1:1/a"
    let place = try Workplace()

    // When
    let run = try await place.etagere("get", url)

    // Then
    #expect(run.status == 7)
    #expect(run.complaints == ["etagere: \(url): connection refused"])
  }

  @Test(
    "an answer that is no success, or that breaks off",
    arguments: [
      Failure(what: "404", url: "/404", status: 22, reason: "the server answered 404 Not Found"),
      Failure(what: "500", url: "/500", status: 22, reason: "the server answered 500 Internal Server Error"),
      Failure(what: "a body cut short", url: "/cut", status: 18, reason: "the body ended after 3 of 6 bytes"),
      Failure(what: "no HTTP", url: "/garbage", status: 8),
      Failure(what: "no answer", url: "/closed", status: 56),
    ])
  func answers(_ failure: Failure) async throws {
    try await withOrigin { origin in
      // Given
      let place = try Workplace()
      origin.setRoute("/500", Route(Data(), status: .internalServerError))
      origin.setRoute("/cut", .fault(.cut(afterBodyBytes: 3)))
      origin.setRoute("/garbage", .fault(.garbage))
      origin.setRoute("/closed", .fault(.closeBeforeHead))
      let url = origin.url(failure.url).absoluteString

      // When
      let run = try await place.etagere("get", url)

      // Then
      #expect(run.status == failure.status)
      #expect(run.lines.isEmpty)
      #expect(run.complaints.count == 1)
      let reason = try #require(run.complaints.first?.split(separator: "\(url): ", maxSplits: 1).last)
      #expect(run.complaints == ["etagere: \(url): \(failure.reason ?? String(reason))"])
      #expect(!reason.isEmpty)
      #expect(place.entryFiles.isEmpty)
    }
  }

  @Test("--timeout ends a load that never answers")
  func timeout() async throws {
    try await withOrigin { origin in
      // Given
      let place = try Workplace()
      origin.setRoute("/never", .fault(.stallBeforeHead))
      let url = origin.url("/never").absoluteString

      // When
      let run = try await place.etagere("get", "--timeout", "0.2", url)

      // Then
      #expect(run.status == 28)
      #expect(run.complaints.count == 1)
      #expect(run.complaints.first?.hasPrefix("etagere: \(url): ") == true)
    }
  }

  @Test("the rest of the list is loaded, and the status is the first one's in the list, whichever ended first")
  func list() async throws {
    try await withOrigin { origin in
      // Given: the first of the list fails last. Two loads at a time: /good is asked for when the second has failed.
      let place = try Workplace()
      let gate = Gate()
      origin.setRoute("/late", Route(OriginAnswer(text: "gone", status: .notFound, delivery: .gated(by: gate))))
      origin.setRoute("/good", Route(bytes(50)))
      let (late, good) = (origin.url("/late").absoluteString, origin.url("/good").absoluteString)

      // When
      async let pending = place.etagere("get", "--parallel", "2", late, "gopher://x", good, "data:,also")
      await origin.waitForRequests(path: "/good")
      gate.open()
      let run = try await pending

      // Then
      #expect(run.status == 22)
      #expect(
        run.complaints == [
          "etagere: gopher://x: unsupported URL scheme 'gopher'", "etagere: \(late): the server answered 404 Not Found",
        ])
      #expect(run.lines.count == 2)
      #expect(run.lines.contains { $0.hasPrefix("network        200 ") && $0.hasSuffix(good) })
      #expect(run.lines.contains { $0.hasPrefix("schemeHandler  200 ") && $0.hasSuffix("data:,also") })
    }
  }

  @Test("a failed reload leaves the stored answer as it was")
  func cacheIntact() async throws {
    try await withOrigin { origin in
      // Given
      let place = try Workplace()
      origin.setRoute("/a", Route(bytes(77), etag: "v1", fields: [.cacheControl: "max-age=3600"]))
      let url = origin.url("/a").absoluteString
      #expect(try await place.etagere("get", url).status == 0)

      // When
      origin.setRoute("/a", .fault(.cut(afterBodyBytes: 3)))
      let failed = try await place.etagere("get", "--policy", "reload", url)
      let after = try await place.etagere("get", url, "-o", "-")

      // Then
      #expect(failed.status == 18)
      #expect(after.status == 0)
      #expect(after.output == bytes(77))
      #expect(try await place.etagere("cache", "verify").status == 0)
    }
  }

  @Test(
    "a cache folder that is a file",
    arguments: [["get", "data:,a"], ["cache", "stats"], ["cache", "clear"], ["prefetch", "-"]])
  func cacheFolderIsFile(_ command: [String]) async throws {
    // Given
    let place = try Workplace()
    try place.write("a file", "cache")

    // When
    let run = try await place.run(command + ["--cache-dir", place.cache])

    // Then
    #expect(run.status == 81)
    #expect(run.lines.isEmpty)
    #expect(run.complaints.count == 1)
    #expect(run.complaints.first?.hasPrefix("etagere: the cache folder can't be used: \(place.cache)") == true)
    #expect(run.complaints.first?.contains(": could not open the store's folder: Not a directory") == true)
    #expect(try place.read("cache") == Data("a file".utf8))
  }

  #if os(Linux)
  @Test("a full disk behind standard output is no success", arguments: [["-o", "-"], ["--json"], []])
  func standardOutputFull(_ form: [String]) async throws {
    let place = try Workplace()
    let run = try await place.run(["get", "data:,a", "--cache-dir", place.cache] + form, output: "/dev/full")
    #expect(run.status == 23)
    #expect(run.complaints.count == 1)
    #expect(run.complaints.first?.hasPrefix("etagere: standard output") == true)
    #expect(run.complaints.first?.hasSuffix("can't be written: No space left on device") == true)
  }
  #endif
}
#endif
