import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import CacheManager

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite("Loads into files that continue")
struct FileContinuingTests {
  static let bytes = filePattern(700_000)
  let folder: DownloadFolder

  init() throws { folder = try DownloadFolder() }

  /// An origin that supports ranges. A gate holds the body of the first response.
  final class Origin: Sendable {
    let gate = Gate()
    private let content: Lock<(bytes: Data, fields: HTTPFields)>
    private let chunk: Int
    private let hasResponded = Lock(false)

    init(_ bytes: Data = FileContinuingTests.bytes, fields: HTTPFields = [.eTag: "\"1\""], chunk: Int = 70_000) {
      content = Lock((bytes, fields))
      self.chunk = chunk
    }

    func publish(_ bytes: Data, _ fields: HTTPFields) { content.withLock { $0 = (bytes, fields) } }

    /// Returns the response to a request.
    func respond(_ request: HTTPRequest) -> ScriptedResponse {
      var (bytes, fields) = content.withLock { $0 }
      let validator = fields[.eTag] ?? fields[.lastModified]
      if let range = request.headerFields[.range], request.headerFields[.ifRange] == validator,
        let start = Int(range.dropFirst(6).dropLast()), start < bytes.count
      {
        fields[.contentRange] = "bytes \(start)-\(bytes.count - 1)/\(bytes.count)"
        fields[.contentLength] = String(bytes.count - start)
        // A response to a conditional range request need not repeat it (RFC 9110 §15.3.7).
        fields[.contentType] = nil
        return .response(.partialContent, fields: fields, body: Data(bytes.dropFirst(start))).chunked(by: chunk)
      }
      fields[.contentLength] = String(bytes.count)
      let isFirst = hasResponded.withLock { hasResponded in
        defer { hasResponded = true }
        return !hasResponded
      }
      let response = ScriptedResponse.ok(bytes, fields: fields).chunked(by: chunk)
      return isFirst ? response.bodyHeld(by: gate) : response
    }
  }

  /// Returns a manager of its own, as that of another process.
  func manager(_ origin: Origin, _ change: (inout ResourceManager.Configuration) -> Void = { _ in }) throws
    -> ManagerFixture
  {
    let fixture = try ManagerFixture(change)
    fixture.network.serve(fixture.url) { origin.respond($0) }
    return fixture
  }

  /// Cancels a load when half of the body has arrived. The gate then still holds the rest.
  func cancelHalfway(
    _ origin: Origin, _ fixture: ManagerFixture, _ url: URL? = nil, file: String = "film.mp4",
    _ options: RequestOptions = RequestOptions()
  ) async throws {
    let load = Task { [folder] in
      try await fixture.manager.load(url ?? fixture.url, to: folder.file(file), options: options)
    }
    await origin.gate.arrived()
    origin.gate.letThrough(5)
    await origin.gate.arrived(6)
    load.cancel()
    #expect(await load.result.isCancellation)
  }

  /// Cancels a load halfway in a manager, which then ends.
  func leavePart(_ origin: Origin, file: String = "film.mp4", _ options: RequestOptions = RequestOptions()) async throws {
    let fixture = try manager(origin)
    try await cancelHalfway(origin, fixture, file: file, options)
    await fixture.manager.close()
  }

  func ranges(_ fixture: ManagerFixture) -> [String] { fixture.network.requests.map { $0.headerFields[.range] ?? "all" } }

  var part: String { folder.file(".film.mp4.etagere-part").path }
  var record: String { folder.file(".film.mp4.etagere-record").path }

  var destination: FileDestination { FileDestination(url: folder.file(), isDurable: false, calls: .system) }

  // MARK: What continues

  @Test("a cancelled load continues from its last byte, at once and in another manager", arguments: [true, false])
  func continues(atOnce: Bool) async throws {
    let origin = Origin(
      fields: [.eTag: "\"1\"", .cacheControl: "max-age=60", .contentType: "video/mp4", .setCookie: "session=secret"])
    let first = try manager(origin)
    try await cancelHalfway(origin, first)
    if !atOnce {
      await first.manager.close()
      #expect(folder.names == [".film.mp4.etagere-part", ".film.mp4.etagere-record"])
      #expect(try Data(contentsOf: URL(filePath: part)) == Self.bytes.prefix(350_000))
    }
    let second = try atOnce ? first : manager(origin)

    let film = try await second.manager.load(second.url, to: folder.file())

    #expect(ranges(second) == (atOnce ? ["all", "bytes=350000-"] : ["bytes=350000-"]))
    #expect(second.network.requests.last?.headerFields[.ifRange] == "\"1\"")
    #expect(folder.content() == Self.bytes && folder.names == ["film.mp4"])
    #expect(film.response.status == .ok && film.response.headerFields[.contentType] == "video/mp4")
    #expect(film.response.headerFields[.contentRange] == nil && film.response.headerFields[.contentLength] == "700000")
    // The store has the whole response, as after a load without interruption.
    #expect(try await second.manager.load(second.url).data == Self.bytes)
  }

  @Test("the progress of a continued load begins after the bytes of the earlier one")
  func progress() async throws {
    let origin = Origin()
    try await leavePart(origin)
    let fixture = try manager(origin)

    var received: [LoadProgress] = []
    for try await event in fixture.manager.events(for: fixture.url, to: folder.file()) {
      if case .progress(let progress) = event { received.append(progress) }
    }

    #expect(received.allSatisfy { $0.received >= 350_000 && $0.expected == 700_000 } && received.last?.received == 700_000)
  }

  @Test("a load whose body breaks off leaves a part, and several loads add to it")
  func broken() async throws {
    let origin = Origin()
    origin.gate.open()
    for (cut, expected) in [(200_000, "all"), (250_000, "bytes=200000-"), (700_000, "bytes=450000-")] {
      let fixture = try ManagerFixture()
      fixture.network.serve(fixture.url) { origin.respond($0).cut(after: cut) }
      let result = await Task { [folder] in try await fixture.manager.load(fixture.url, to: folder.file()) }.result
      #expect(ranges(fixture) == [expected])
      #expect((try? result.get()) != nil || cut != 700_000)
      await fixture.manager.close()
    }
    #expect(folder.content() == Self.bytes && folder.names == ["film.mp4"])
  }

  @Test("a load that sends its request again after an interrupted body requests only the rest")
  func retried() async throws {
    let network = ClosureDownloader { seen in
      guard let range = seen.head.headerFields[.range] else {
        let broken = CacheError(.bodyInterrupted, reason: "broken off")
        var response = DownloadResponse.streaming(
          ["the first ", "half"], then: broken, fields: [.eTag: "\"1\"", .contentLength: "23"])
        response.body = ResourceBody(length: 23, source: response.body.source)
        return response
      }
      #expect(range == "bytes=14-")
      return .streaming(
        [" and", " rest"], status: .partialContent,
        fields: [.eTag: "\"1\"", .contentRange: "bytes 14-22/23", .contentLength: "9"])
    }
    let fixture = try ManagerFixture { $0.downloader = network }

    var received: [Int64] = []
    for try await event in fixture.manager.events(for: fixture.url, to: folder.file()) {
      if case .progress(let progress) = event { received.append(progress.received) }
    }

    #expect(network.seen.count == 2 && received == received.sorted())
    #expect(folder.content() == Data("the first half and rest".utf8) && folder.names == ["film.mp4"])
  }

  @Test(
    "a part that is complete or longer needs its last block again, with which the origin confirms the validator",
    arguments: [0, 100_000])
  func complete(excess: Int) async throws {
    let origin = Origin()
    try await leavePart(origin)
    let record = try #require(PartRecordFile.open(self.record)).record
    let file = try await PartialFile.open(destination, in: OpenParts())
    try await file.begin(record)
    try await file.write(Self.bytes + filePattern(excess))
    await file.leave(after: .cancelled)
    let fixture = try manager(origin)

    _ = try await fixture.manager.load(fixture.url, to: folder.file())

    #expect(ranges(fixture) == ["bytes=524288-"] && folder.content() == Self.bytes)
  }

  @Test(
    "after a redirect with a new signature, a part with an entity tag continues, and one with a date does not",
    arguments: [true, false])
  func signedRedirect(hasTag: Bool) async throws {
    let dates: HTTPFields = [.lastModified: "Thu, 01 Jan 2015 00:00:00 GMT", .date: "Thu, 01 Jan 2026 00:00:00 GMT"]
    let origin = Origin(fields: hasTag ? [.eTag: "\"1\""] : dates)
    func signed(_ signature: String) throws -> ManagerFixture {
      let fixture = try ManagerFixture()
      let target = try fixture.url("/file?signature=\(signature)")
      fixture.network.serve(fixture.url) { _ in .redirect(to: target.absoluteString) }
      fixture.network.serve(target) { origin.respond($0) }
      return fixture
    }
    let first = try signed("secret1")
    try await cancelHalfway(origin, first)
    await first.manager.close()
    #expect(try !String(decoding: Data(contentsOf: URL(filePath: record)), as: UTF8.self).contains("secret"))
    let second = try signed("secret2")

    _ = try await second.manager.load(second.url, to: folder.file())

    #expect(ranges(second) == ["all", hasTag ? "bytes=350000-" : "all"])
    #expect(folder.content() == Self.bytes && folder.names == ["film.mp4"])
  }

  @Test("a 304 still confirms the stored response, and the part is removed")
  func notModified() async throws {
    let origin = Origin()
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("old", etag: "\"old\"") }
    _ = try await fixture.manager.load(fixture.url)
    fixture.network.serve(fixture.url) { origin.respond($0) }
    try await cancelHalfway(origin, fixture)
    fixture.network.serve(fixture.url) { request in
      #expect(request.headerFields[.ifNoneMatch] == "\"old\"" && request.headerFields[.ifRange] == "\"1\"")
      return .notModified(etag: "\"old\"")
    }

    _ = try await fixture.manager.load(fixture.url, to: folder.file())

    #expect(folder.content() == Data("old".utf8) && folder.names == ["film.mp4"])
  }

  @Test(
    "a load that may not send a request leaves the part to the next one, and a stored response replaces it",
    arguments: [true, false])
  func withoutRequest(isStored: Bool) async throws {
    let origin = Origin(fields: [.eTag: "\"1\"", .cacheControl: "max-age=60"])
    try await leavePart(origin)
    let fixture = try manager(origin)
    if isStored { _ = try await fixture.manager.load(fixture.url) }

    let result = await Task { [folder] in
      try await fixture.manager.load(fixture.url, to: folder.file(), options: .policy(.cacheOnly))
    }.result

    #expect(((try? result.get()) != nil) == isStored)
    #expect(folder.names == (isStored ? ["film.mp4"] : [".film.mp4.etagere-part", ".film.mp4.etagere-record"]))
    guard !isStored else { return }
    _ = try await fixture.manager.load(fixture.url, to: folder.file())
    #expect(ranges(fixture) == ["bytes=350000-"])
  }

  @Test(
    "a part has a name that the file system accepts",
    arguments: ["a\nb\r\n", String(repeating: "ü", count: 120) + "1234567890", "-", "..."])
  func names(_ name: String) async throws {
    let origin = Origin()
    try await leavePart(origin, file: name)
    #expect(folder.names.count == 2)
    let fixture = try manager(origin)

    _ = try await fixture.manager.load(fixture.url, to: folder.file(name))

    #expect(ranges(fixture) == ["bytes=350000-"] && folder.content(name) == Self.bytes && folder.names == [name])
  }

  @Test(
    "only the user can read a part, and the complete file has the usual permissions, or those of the file it replaces",
    arguments: [false, true])
  func permissions(replaces: Bool) async throws {
    func mode(_ path: String) -> mode_t? {
      var status = stat()
      return stat(path, &status) == 0 ? status.st_mode & 0o777 : nil
    }
    let usual = folder.file("usual").path
    close(open(usual, O_CREAT | O_WRONLY, 0o666))
    let origin = Origin()
    try await leavePart(origin)
    #expect(mode(part) == 0o600 && mode(record) == 0o600)
    if replaces {
      try Data().write(to: folder.file())
      #expect(chmod(folder.file().path, 0o640) == 0)
    }
    let fixture = try manager(origin)

    _ = try await fixture.manager.load(fixture.url, to: folder.file())

    #expect(mode(folder.file().path) == (replaces ? 0o640 : mode(usual)))
  }
}
