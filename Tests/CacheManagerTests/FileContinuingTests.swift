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
  private static let bytes = filePattern(700_000)
  private let folder: DownloadFolder

  init() throws { folder = try DownloadFolder() }

  /// An origin that supports ranges. A gate holds the body of the first response.
  private final class Origin: Sendable {
    let gate = Gate()
    private let content: Lock<(bytes: Data, fields: HTTPFields)>
    private let hasResponded = Lock(false)

    init(_ bytes: Data = FileContinuingTests.bytes, fields: HTTPFields = [.eTag: "\"1\""]) { content = Lock((bytes, fields)) }

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
        return .response(.partialContent, fields: fields, body: Data(bytes.dropFirst(start))).chunked(by: 70_000)
      }
      fields[.contentLength] = String(bytes.count)
      let isFirst = hasResponded.withLock { hasResponded in
        defer { hasResponded = true }
        return !hasResponded
      }
      let response = ScriptedResponse.ok(bytes, fields: fields).chunked(by: 70_000)
      return isFirst ? response.bodyHeld(by: gate) : response
    }
  }

  /// Returns a manager of its own, as that of another process.
  private func manager(_ origin: Origin, _ change: (inout ResourceManager.Configuration) -> Void = { _ in }) throws
    -> ManagerFixture
  {
    let fixture = try ManagerFixture(change)
    fixture.network.serve(fixture.url) { origin.respond($0) }
    return fixture
  }

  /// Cancels a load when half of the body has arrived. The gate then still holds the rest.
  private func cancelHalfway(
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
  private func leavePart(_ origin: Origin, file: String = "film.mp4", _ options: RequestOptions = RequestOptions()) async throws {
    let fixture = try manager(origin)
    try await cancelHalfway(origin, fixture, file: file, options)
    await fixture.manager.close()
  }

  private func ranges(_ fixture: ManagerFixture) -> [String] { fixture.network.requests.map { $0.headerFields[.range] ?? "all" } }

  private var part: String { folder.file(".film.mp4.etagere-part").path }
  private var record: String { folder.file(".film.mp4.etagere-record").path }

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

  @Test("a part that is complete needs one byte, with which the origin confirms the validator")
  func complete() async throws {
    let origin = Origin()
    try await leavePart(origin)
    try Self.bytes.write(to: URL(filePath: part))
    let fixture = try manager(origin)

    _ = try await fixture.manager.load(fixture.url, to: folder.file())

    #expect(ranges(fixture) == ["bytes=699999-"] && folder.content() == Self.bytes)
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
    #expect(try !String(contentsOfFile: record, encoding: .utf8).contains("secret"))
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

  // MARK: Stored responses in place of a failed one

  /// A reason why a load uses the stored response.
  enum Failure: CaseIterable {
    case offline, status, anyStored, staleWhileRevalidate, alternative, broken
  }

  @Test(
    "a part stays if a stored response replaces the one that failed, and the next load continues it",
    arguments: Failure.allCases)
  func fallback(_ failure: Failure) async throws {
    let origin = Origin(fields: [.eTag: "\"2\""])
    let fixture = try ManagerFixture()
    let directive = failure == .anyStored ? "must-revalidate" : "stale-if-error=600"
    try await fixture.storeStale(cacheControl: "max-age=60, \(directive)")
    var options = RequestOptions()
    if failure == .broken {
      origin.gate.open()
      fixture.network.serve(fixture.url) { origin.respond($0).cut(after: 350_000) }
    } else {
      fixture.network.serve(fixture.url) { origin.respond($0) }
      try await cancelHalfway(origin, fixture)
      fixture.network.serve(fixture.url) { _ in failure == .status ? .response(.serviceUnavailable) : .failure(.offline) }
    }
    switch failure {
    case .offline, .status, .broken: break
    case .anyStored: options.staleFallback = .anyStored
    case .staleWhileRevalidate: options.policy = .staleWhileRevalidate
    case .alternative:
      let mirror = try fixture.url("/mirror")
      fixture.network.serve(mirror) { _ in ScriptedResponse.ok(Self.bytes).chunked(by: 70_000).cut(after: 200_000) }
      options.alternatives = [.mirror(mirror)]
    }

    let film = try await fixture.manager.load(fixture.url, to: folder.file(), options: options)

    #expect((film.fallbackReason == nil) == (failure == .staleWhileRevalidate))
    #expect(folder.content() == Data("old".utf8))
    #expect(folder.names == [".film.mp4.etagere-part", ".film.mp4.etagere-record", "film.mp4"])
    fixture.network.serve(fixture.url) { origin.respond($0) }
    _ = try await fixture.manager.load(fixture.url, to: folder.file())
    #expect(ranges(fixture).last == "bytes=350000-")
    #expect(folder.content() == Self.bytes && folder.names == ["film.mp4"])
  }

  @Test("a part stays if the load shares the failed transfer of another file")
  func sharedFallback() async throws {
    let (origin, gate) = (Origin(fields: [.eTag: "\"2\""]), Gate())
    let fixture = try ManagerFixture()
    try await fixture.storeStale()
    fixture.network.serve(fixture.url) { origin.respond($0) }
    try await cancelHalfway(origin, fixture)
    fixture.network.serve(fixture.url) { _ in ScriptedResponse.failure(.offline).held(by: gate) }

    async let other = fixture.manager.load(fixture.url, to: folder.file("other.mp4"))
    await gate.arrived()
    async let film = fixture.manager.load(fixture.url, to: folder.file())
    await fixture.observer.joined()
    gate.open()

    #expect(try await other.fallbackReason != nil)
    #expect(try await film.fallbackReason != nil)
    #expect(folder.content() == Data("old".utf8) && folder.content("other.mp4") == Data("old".utf8))
    #expect(folder.names == [".film.mp4.etagere-part", ".film.mp4.etagere-record", "film.mp4", "other.mp4"])
  }

  @Test("a part stays if a stored response is used at the deadline")
  func deadline() async throws {
    let origin = Origin(fields: [.eTag: "\"2\""])
    let fixture = try ManagerFixture { $0.waitForStores() }
    try await fixture.storeStale()
    fixture.network.serve(fixture.url) { origin.respond($0) }
    let options = RequestOptions { $0.timeout = .seconds(5) }

    async let late = fixture.manager.load(fixture.url, to: folder.file(), options: options)
    await origin.gate.arrived()
    origin.gate.letThrough(5)
    await origin.gate.arrived(6)
    await fixture.clock.advance(pastSleepOf: .seconds(5))

    #expect(try await late.fallbackReason?.code == .timedOut)
    #expect(folder.content() == Data("old".utf8))
    _ = try await fixture.manager.load(fixture.url, to: folder.file())
    #expect(ranges(fixture).last == "bytes=350000-" && folder.content() == Self.bytes && folder.names == ["film.mp4"])
  }

  @Test("a mirror replaces the bytes of a body that breaks off")
  func mirror() async throws {
    let origin = Origin()
    origin.gate.open()
    let fixture = try ManagerFixture()
    let mirror = try fixture.url("/mirror")
    fixture.network.serve(fixture.url) { origin.respond($0).cut(after: 350_000) }
    let other = Data(filePattern(500_000).reversed())
    fixture.network.serve(mirror) { _ in ScriptedResponse.ok(other, etag: "\"3\"").chunked(by: 70_000) }

    _ = try await fixture.manager.load(
      fixture.url, to: folder.file(), options: RequestOptions { $0.alternatives = [.mirror(mirror)] })

    #expect(folder.content() == other && folder.names == ["film.mp4"])
  }

  @Test("another body that begins during a write replaces the bytes of that write")
  func restartDuringWrite() async throws {
    let (begun, release) = (OneShotBroadcast<Void>(), DispatchSemaphore(value: 0))
    let isFirst = Lock(true)
    var calls = FileSystemCalls.system
    let write = calls.write
    calls.write = { descriptor, bytes, offset in
      let holds = isFirst.withLock { isFirst in
        defer { isFirst = false }
        return isFirst
      }
      if holds {
        begun.make(())
        release.wait()
      }
      return write(descriptor, bytes, offset)
    }
    let file = try await PartialFile.open(FileDestination(url: folder.file(), isDurable: false, calls: calls), in: OpenParts())
    // Few enough bytes that the call does not wait for the write.
    try await file.write(Self.bytes.prefix(100_000))
    _ = await begun.value()

    file.restart()
    try await file.write(Data("another body".utf8))
    release.signal()
    try await file.flush()
    try await file.place()

    #expect(folder.content() == Data("another body".utf8))
  }

  // MARK: What starts over

  @Test("a changed resource starts over", arguments: [["\"1\"", "\"2\""], ["\"1\"", "W/\"1\""], ["\"1\"", nil]])
  func changed(tags: [String?]) async throws {
    let origin = Origin(fields: [.eTag: tags[0] ?? ""])
    try await leavePart(origin)
    origin.publish(filePattern(500_000), tags[1].map { [.eTag: $0] } ?? [:])
    let fixture = try manager(origin)

    _ = try await fixture.manager.load(fixture.url, to: folder.file())

    #expect(ranges(fixture) == ["bytes=350000-"])
    #expect(folder.content() == filePattern(500_000) && folder.names == ["film.mp4"])
  }

  @Test(
    "a response that cannot be continued leaves no part",
    arguments: [
      [:], [.eTag: "W/\"1\""], [.eTag: "\"1\"", .acceptRanges: "none"], [.eTag: "\"1\"", .vary: "*"],
      [.eTag: "\"1\"", .vary: "Accept, Authorization"],
      [.lastModified: "Thu, 01 Jan 2026 00:00:00 GMT", .date: "Thu, 01 Jan 2026 00:00:30 GMT"],
    ] as [HTTPFields])
  func notContinuable(fields: HTTPFields) async throws {
    let origin = Origin(fields: fields)
    let fixture = try manager(origin)
    let request = ResourceRequest(fixture.url, headerFields: [.authorization: "Bearer secret"])
    let load = Task { [folder] in try await fixture.manager.load(request, to: folder.file()) }
    await origin.gate.arrived()
    origin.gate.letThrough(5)
    await origin.gate.arrived(6)
    load.cancel()
    _ = await load.result
    await fixture.manager.close()

    #expect(folder.names.isEmpty)
  }

  @Test("another URL, another partition or another selecting field starts over", arguments: 0..<4)
  func otherRequest(_ change: Int) async throws {
    let origin = Origin(fields: [.eTag: "\"1\"", .vary: "Accept-Language"])
    try await leavePart(origin)
    let fixture = try manager(origin)
    let url = change == 0 ? try fixture.url("/other") : fixture.url
    fixture.network.serve(url) { origin.respond($0) }
    let request = ResourceRequest(
      url, headerFields: change == 1 ? [.acceptLanguage: "de"] : [:],
      options: RequestOptions { if change == 2 { $0.partition = "alice" } })

    _ = try await fixture.manager.load(request, to: folder.file())

    #expect(ranges(fixture) == [change == 3 ? "bytes=350000-" : "all"])
    #expect(folder.content() == Self.bytes && folder.names == ["film.mp4"])
  }

  @Test(
    "a response to the range request that does not fit is followed by a request for the whole",
    arguments: [
      (416, nil, "\"1\""), (206, "bytes 350000-699999/700001", "\"1\""), (206, "bytes 0-349999/700000", "\"1\""),
      (206, "bytes 350000-699999/700000", "\"2\""), (206, "bytes 350000-699999/700000", "W/\"1\""), (206, nil, "\"1\""),
    ] as [(Int, String?, String)])
  func unusable(status: Int, range: String?, tag: String) async throws {
    let origin = Origin()
    try await leavePart(origin)
    let fixture = try manager(origin)
    fixture.network.serve(fixture.url) { request in
      guard request.headerFields.contains(.range) else { return origin.respond(request) }
      var fields: HTTPFields = [.eTag: tag]
      fields[.contentRange] = range
      return .response(.init(code: status), fields: fields, body: Data(count: 350_000)).chunked(by: 100_000)
    }

    _ = try await fixture.manager.load(fixture.url, to: folder.file())

    #expect(ranges(fixture) == ["bytes=350000-", "all"])
    #expect(folder.content() == Self.bytes && folder.names == ["film.mp4"])
  }

  /// A change of the files that a load has left.
  struct Damage: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var range: String? = nil
    var make: @Sendable (_ part: String, _ record: String) throws -> Void

    static func edited(_ path: String, _ edit: (inout Data) -> Void) throws {
      var data = try Data(contentsOf: URL(filePath: path))
      edit(&data)
      // In place, so that the file keeps its identity.
      let handle = try FileHandle(forWritingTo: URL(filePath: path))
      try handle.truncate(atOffset: 0)
      try handle.write(contentsOf: data)
      try handle.close()
    }

    static let all = [
      Damage(testDescription: "the record is missing") { _, record in unlink(record) },
      Damage(testDescription: "the record is empty") { _, record in try edited(record) { $0 = Data() } },
      Damage(testDescription: "the record is cut off") { _, record in try edited(record) { $0.removeLast() } },
      Damage(testDescription: "a bit of the record has changed") { _, record in
        try edited(record) { $0[$0.count / 2] ^= 1 }
      },
      Damage(testDescription: "the record is a symbolic link") { _, record in
        #expect(rename(record, record + "2") == 0 && symlink(record + "2", record) == 0)
      },
      Damage(testDescription: "the part is missing") { part, _ in unlink(part) },
      Damage(testDescription: "the part is empty") { part, _ in try edited(part) { $0 = Data() } },
      Damage(testDescription: "the part is longer than the body") { part, _ in try edited(part) { $0 = Data(count: 700_001) } },
      Damage(testDescription: "the part is shorter", range: "bytes=1000-") { part, _ in
        try edited(part) { $0 = $0.prefix(1_000) }
      },
      // Other users cannot make these in a folder of this user, but can in a shared one.
      Damage(testDescription: "the part is a symbolic link") { part, _ in
        #expect(rename(part, part + "2") == 0 && symlink(part + "2", part) == 0)
      },
      Damage(testDescription: "the part has a second name") { part, _ in #expect(link(part, part + "2") == 0) },
      Damage(testDescription: "the part is a FIFO") { part, _ in #expect(unlink(part) == 0 && mkfifo(part, 0o600) == 0) },
      Damage(testDescription: "the part is a folder") { part, _ in #expect(unlink(part) == 0 && mkdir(part, 0o700) == 0) },
      Damage(testDescription: "the system was started again and lost bytes", range: "bytes=100000-") { part, record in
        var old = try #require(PartRecord(path: record))
        (old.boot, old.flushed) = ("earlier", 100_000)
        #expect(old.write(to: record))
        try edited(part) { $0.resetBytes(in: 100_000..<350_000) }
      },
    ]
  }

  @Test("only a part that is intact and the user's own is continued", arguments: Damage.all)
  func damaged(_ damage: Damage) async throws {
    let origin = Origin()
    try await leavePart(origin)
    try damage.make(part, record)
    let fixture = try manager(origin)

    _ = try await fixture.manager.load(fixture.url, to: folder.file())
    await fixture.manager.close()

    #expect(ranges(fixture) == [damage.range ?? "all"])
    #expect(folder.content() == Self.bytes)
    #expect(!folder.names.contains { $0.hasPrefix(".etagere-") })
  }

  // MARK: Other loads and old files

  @Test("a transfer whose file was claimed by another load does not touch its part")
  func claimed() async throws {
    let (origin, other) = (Origin(), Origin(filePattern(600_000), fields: [.eTag: "\"2\""]))
    let fixture = try manager(origin)
    let url = try fixture.url("/other")
    fixture.network.serve(url) { other.respond($0) }
    let leading = Task { [folder] in try await fixture.manager.load(fixture.url, to: folder.file()) }
    await origin.gate.arrived()
    async let waiting = fixture.manager.load(fixture.url, to: folder.file("copy.mp4"))
    await fixture.observer.joined()
    leading.cancel()
    #expect(await leading.result.isCancellation)

    try await cancelHalfway(other, fixture, url)
    try await Turns.until { PartRecord(path: self.record)?.flushed == 350_000 }
    origin.gate.open()
    _ = try await waiting

    #expect(folder.content("copy.mp4") == Self.bytes)
    _ = try await fixture.manager.load(url, to: folder.file())
    #expect(ranges(fixture).last == "bytes=350000-")
    #expect(folder.content() == filePattern(600_000) && folder.names == ["copy.mp4", "film.mp4"])
  }

  // A lock belongs to an open file and not to a process, so two managers behave as those of two processes.
  @Test("of two loads into one file, one has the part and the other a file of its own")
  func twoLoads() async throws {
    let (origin, other) = (Origin(), Origin(filePattern(600_000), fields: [.eTag: "\"2\""]))
    let (first, second) = (try manager(origin), try manager(other))
    let load = Task { [folder] in try await first.manager.load(first.url, to: folder.file()) }
    await origin.gate.arrived()
    origin.gate.letThrough(5)
    await origin.gate.arrived(6)

    try await cancelHalfway(other, second)
    await second.manager.close()
    #expect(folder.names == [".film.mp4.etagere-part", ".film.mp4.etagere-record"])
    origin.gate.open()
    _ = try await load.value

    #expect(folder.content() == Self.bytes && folder.names == ["film.mp4"])
  }

  @Test("parts and records that were not changed for seven days are removed by the next load into the folder")
  func oldFiles() async throws {
    let origin = Origin()
    try await leavePart(origin)
    let old = [
      ".a.etagere-part", ".a.etagere-record", ".b.etagere-record", ".etagere-0123.part", ".c.part", ".etagere-part.txt",
      "d.etagere-part", ".e.etagere-part", ".e.etagere-record",
    ]
    for name in old { try Data("x".utf8).write(to: folder.file(name)) }
    try FileManager.default.createDirectory(at: folder.file(".f.etagere-part"), withIntermediateDirectories: false)
    for name in old + [".f.etagere-part", ".film.mp4.etagere-part"] where name != ".e.etagere-part" {
      let date = Date(timeIntervalSinceNow: -7 * 24 * 3_600 - 60)
      try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: folder.file(name).path)
    }
    let fixture = try manager(origin)

    // The load's own part is continued, however old it is.
    _ = try await fixture.manager.load(fixture.url, to: folder.file())

    #expect(ranges(fixture) == ["bytes=350000-"])
    #expect(
      folder.names == [
        ".c.part", ".e.etagere-part", ".e.etagere-record", ".etagere-part.txt", ".f.etagere-part", "d.etagere-part", "film.mp4",
      ])
  }

  @Test("a full disk or a body beyond the limit leaves no part", arguments: [true, false])
  func removed(isFull: Bool) async throws {
    let origin = Origin()
    try await leavePart(origin)
    let fixture = try manager(origin)
    var calls = FileSystemCalls.system
    if isFull { calls.write = { _, _, _ in .failure(.init(number: ENOSPC)) } }

    let result = await Task { [calls, folder] in
      guard !isFull else { return try await fixture.manager.load(ResourceRequest(fixture.url), to: folder.file(), calls: calls) }
      return try await fixture.manager.load(fixture.url, to: folder.file(), sizeLimit: 699_999)
    }.result

    let error = #expect(throws: CacheError.self) { try result.get() }
    #expect(error?.code == (isFull ? .diskFull : .bodyTooLarge))
    await fixture.manager.close()
    #expect(folder.names.isEmpty)
  }
}
