#if Origin
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@testable import CacheNetworking

@Suite("Request bodies", .timeLimit(.minutes(30))) struct UploadTests {
  /// A body with the given chunks, which may wait or end with an error.
  private final class Source: ResourceBody.Source {
    private struct State {
      var chunks: [Data]
      var isCancelled = false
    }
    private let state: Lock<State>
    private let failure: CacheError?
    private let gate: Gate?
    let cancelled = Recorder<Void>()

    init(_ chunks: [Data], then failure: CacheError? = nil, gate: Gate? = nil) {
      state = Lock(State(chunks: chunks))
      self.failure = failure
      self.gate = gate
    }

    func next() async throws(CacheError) -> Data? {
      let chunk: Data? = state.withLock { $0.chunks.isEmpty ? nil : $0.chunks.removeFirst() }
      if let chunk { return chunk }
      await gate?.pass()
      if state.withLock({ $0.isCancelled }) { throw .cancelled }
      if let failure { throw failure }
      return nil
    }

    func cancel() {
      state.withLock { $0.isCancelled = true }
      cancelled.record(())
      gate?.open()
    }

    var trailers: HTTPFields? { nil }
  }

  /// Runs a test with a downloader that collects up to 1,000 bytes in memory, and with the folder for longer bodies.
  private func run(_ body: (Fixture, _ files: () throws -> [String]) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("etagere-uploads-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    var configuration = SessionDownloader.Configuration()
    configuration.uploadMemoryLimit = 1000
    configuration.uploadFolder = folder
    try await Fixture.run(configuration) { fixture in
      try await body(fixture) { try FileManager.default.contentsOfDirectory(atPath: folder.path) }
    }
  }

  private func chunks(_ count: Int, of size: Int) -> [Data] {
    let whole = pattern(count * size)
    return (0..<count).map { Data(whole[$0 * size..<($0 + 1) * size]) }
  }

  @Test("request bodies arrive complete, from memory or from a file", arguments: [1, 10, 11, 5000])
  func whole(count: Int) async throws {
    try await run { fixture, files in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(handler: { OriginResponse($0.body, delivery: .gated(by: gate)) }))
      let source = Source(chunks(count, of: 100))
      let request = try fixture.request("/a", method: .post, body: ResourceBody(length: nil, source: source))
      let response = Task { try await fixture.downloader.download(request).body.collect() }
      await gate.arrived()
      #expect(try files().count == (count > 10 ? 1 : 0))
      gate.open()

      #expect(try await response.value == pattern(count * 100))

      let received = try #require(fixture.origin.requests.first)
      #expect(received.fields[.contentLength] == "\(count * 100)")
      #expect(received.fields[.contentType] == "application/octet-stream")
      try await Polling.until { try files().isEmpty }
    }
  }

  @Test("only its owner can read an upload file")
  func permissions() async throws {
    let folder = FileManager.default.temporaryDirectory
    var file: SpoolFile? = try SpoolFile(in: folder)
    let path = try #require(file?.url.path)
    try await file?.append(pattern(10))
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == pattern(10))
    file = nil
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test("an upload file is removed when the transfer fails or is cancelled")
  func removed() async throws {
    try await run { fixture, files in
      fixture.origin.setRoute("/reset", .fault(.resetBeforeHead))
      let gate = Gate()
      fixture.origin.setRoute("/held", Route(Data(), delivery: .gated(by: gate)))
      func request(_ path: String) throws -> DownloadRequest {
        try fixture.request(path, method: .post, body: ResourceBody(length: nil, source: Source(chunks(50, of: 100))))
      }

      #expect(await fixture.failure(of: try request("/reset"))?.code == .connectionLost)
      try await Polling.until { try files().isEmpty }

      let held = try request("/held")
      let task = Task { await fixture.failure(of: held) }
      await gate.arrived()
      #expect(try files().count == 1)
      task.cancel()
      #expect(await task.value?.isCancellation == true)
      try await Polling.until { try files().isEmpty }
    }
  }

  @Test("a body that fails or is cancelled while it is written leaves no file and sends nothing")
  func broken() async throws {
    try await run { fixture, files in
      let broken = Source(chunks(50, of: 100), then: CacheError(.connectionLost, reason: "no more"))
      let first = try fixture.request("/a", method: .put, body: ResourceBody(length: nil, source: broken))
      #expect(await fixture.failure(of: first)?.reason == "no more")
      #expect(try files().isEmpty)

      let gate = Gate()
      let waiting = Source(chunks(50, of: 100), gate: gate)
      let second = try fixture.request("/a", method: .put, body: ResourceBody(length: nil, source: waiting))
      let handle = DownloadTask()
      let task = Task { () -> CacheError? in
        do throws(CacheError) {
          _ = try await fixture.downloader.download(second, as: handle)
          return nil
        } catch { return error }
      }
      await gate.arrived()
      #expect(try files().count == 1)
      handle.cancel()
      #expect(await task.value?.isCancellation == true)
      #expect(try files().isEmpty)
      #expect(fixture.origin.requests.isEmpty)
    }
  }

  @Test("a missing upload folder is reported, and the body is cancelled")
  func noFolder() async throws {
    var configuration = SessionDownloader.Configuration()
    configuration.uploadMemoryLimit = 10
    configuration.uploadFolder = URL(fileURLWithPath: "/nowhere/at/all")
    try await Fixture.run(configuration) { fixture in
      let source = Source(chunks(2, of: 100))
      let error = await fixture.failure(
        of: try fixture.request("/a", method: .put, body: ResourceBody(length: nil, source: source)))
      #expect(error?.code == .fileSystem)
      #expect(error?.path?.hasPrefix("/nowhere/at/all/") == true)
      #expect(error?.errno == ENOENT)
      #expect(source.cancelled.values.count == 1)
    }
  }
}
#endif
