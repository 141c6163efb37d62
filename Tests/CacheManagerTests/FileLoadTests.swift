import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import Foundation
import HTTPTypes
import MemoryStore
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A folder of one test's own, removed when the test lets go of it.
final class DownloadFolder: Sendable {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appending(
      path: "etagere-files-\(Revision.mint())", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  func file(_ name: String = "film.mp4") -> URL { url.appending(path: name, directoryHint: .notDirectory) }

  /// Everything that is in the folder, hidden files too.
  var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: url.path)) ?? []).sorted() }

  func content(_ name: String = "film.mp4") -> Data? { try? Data(contentsOf: file(name)) }
}

/// Bytes that tell their position, so that a lost or repeated part shows.
private func pattern(_ count: Int) -> Data { longestPattern.prefix(count) }

private let longestPattern = Data((0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

@Suite("Loads into a file")
struct FileLoadTests {
  private let bytes = pattern(700_000)

  @Test("the bytes are in the file, on the disk, and not in memory")
  func cold() async throws {
    let house = try House()
    let folder = try DownloadFolder()
    house.network.answer(house.url, .ok(bytes, etag: "\"1\"", cacheControl: "max-age=60").chunked(by: 10_000))

    let film = try await house.manager.load(house.url, to: folder.file())

    #expect(film.file == folder.file() && film.source == .network && film.bytesOnWire == 700_000)
    #expect(folder.content() == bytes)
    #expect(folder.names == ["film.mp4"])
    #expect(house.disk.keys.count == 1)
    #expect(house.memory.counters.insertions == 0)
  }

  @Test("a fresh stored answer is copied, and nobody is asked", arguments: [false, true])
  func fresh(fromMemory: Bool) async throws {
    let house = try House()
    let folder = try DownloadFolder()
    house.network.answer(house.url, .ok(bytes, cacheControl: "max-age=60"))
    _ = try await house.manager.load(house.url)
    if !fromMemory { house.restart() }

    let film = try await house.manager.load(house.url, to: folder.file())

    #expect(film.source == (fromMemory ? .memory : .disk))
    #expect(folder.content() == bytes)
    try house.network.verify()
  }

  @Test("a 304 confirms what is stored, which then is in the file")
  func notModified() async throws {
    let house = try House()
    let folder = try DownloadFolder()
    house.network.answer(
      house.url, .ok(bytes, etag: "\"1\""), .notModified(cacheControl: "max-age=60"))
    _ = try await house.manager.load(house.url)

    let film = try await house.manager.load(house.url, to: folder.file())

    #expect(film.source == .revalidated && film.validation == .reused)
    #expect(folder.content() == bytes)
    // What memory knew has become fresh, and still has its bytes.
    #expect(try await house.manager.load(house.url).source == .memory)
    try house.network.verify()
  }

  @Test("a new answer takes the place of the old one everywhere: memory shows the old one no more")
  func replaced() async throws {
    let house = try House()
    let folder = try DownloadFolder()
    house.network.answer(house.url, .ok("old", etag: "\"1\""), .ok("new", etag: "\"2\"", cacheControl: "max-age=60"))
    _ = try await house.manager.load(house.url)

    _ = try await house.manager.load(house.url, to: folder.file())
    let again = try await house.manager.load(house.url)

    #expect(folder.content() == Data("new".utf8))
    #expect(again.text == "new" && again.source == .disk)
    try house.network.verify()
  }

  @Test("an answer that may not be stored is in the file alone")
  func notStorable() async throws {
    let house = try House()
    let folder = try DownloadFolder()
    house.network.answer(house.url, .ok(bytes, cacheControl: "no-store"))

    _ = try await house.manager.load(house.url, to: folder.file())

    #expect(folder.content() == bytes)
    #expect(house.disk.keys.isEmpty)
  }

  @Test("a redirect's own body is not in the file")
  func redirect() async throws {
    let house = try House()
    let folder = try DownloadFolder()
    let target = try house.url("/elsewhere")
    house.network.answer(
      house.url,
      .response(
        .movedPermanently, fields: [.location: target.absoluteString, .cacheControl: "max-age=60"], body: pattern(400_000)))
    house.network.answer(target, .ok("short"))

    let film = try await house.manager.load(house.url, to: folder.file())

    #expect(film.url == target && film.redirects == [house.url])
    #expect(folder.content() == Data("short".utf8))
  }

  @Test("maximumBodySize is about memory; a file has a limit of its own, told or found out", arguments: [true, false])
  func limits(lengthIsTold: Bool) async throws {
    let house = try House { $0.maximumBodySize = 1_000 }
    let folder = try DownloadFolder()
    house.network.serve(house.url) { [bytes] _ in
      let answer = ScriptedAnswer.ok(bytes)
      return lengthIsTold ? answer : answer.withoutLength()
    }

    _ = try await house.manager.load(house.url, to: folder.file())
    let error = await #expect(throws: CacheError.self) {
      try await house.manager.load(house.url, to: folder.file("limited"), sizeLimit: 699_999)
    }

    #expect(error?.code == .bodyTooLarge)
    #expect(folder.names == ["film.mp4"])
    #expect(folder.content() == bytes)
  }

  @Test("the old file stays whole until the new one is there, and after a failure", arguments: [true, false])
  func oldFileStays(isCut: Bool) async throws {
    let house = try House()
    let folder = try DownloadFolder()
    try Data("old".utf8).write(to: folder.file())
    let gate = Gate()
    let answer = ScriptedAnswer.ok(bytes).chunked(by: 100_000).bodyHeld(by: gate)
    house.network.answer(house.url, isCut ? answer.cut(after: 500_000) : answer)

    let load = Task { try await house.manager.load(house.url, to: folder.file()) }
    await gate.arrived()
    gate.letThrough(4)
    await gate.arrived(5)
    #expect(folder.content() == Data("old".utf8))
    #expect(folder.names.contains { $0.hasPrefix(".etagere-") && $0.hasSuffix(".part") })
    gate.open()
    let result = await load.result

    #expect(folder.content() == (isCut ? Data("old".utf8) : bytes))
    #expect(folder.names == ["film.mp4"])
    if isCut { #expect(throws: CacheError.self) { try result.get() } }
    #expect(house.disk.keys.isEmpty == isCut)
  }

  @Test("a cancelled load leaves nothing behind")
  func cancelled() async throws {
    let house = try House()
    let folder = try DownloadFolder()
    let gate = Gate()
    house.network.answer(house.url, .ok(bytes).chunked(by: 300_000).bodyHeld(by: gate))

    let load = Task { try await house.manager.load(house.url, to: folder.file()) }
    await gate.arrived()
    gate.letThrough()
    await gate.arrived(2)
    load.cancel()
    let result = await load.result
    gate.open()
    await house.manager.close()

    #expect(result.isCancellation)
    #expect(folder.names.isEmpty)
    #expect(house.disk.keys.isEmpty && house.network.cancelledBodies == 1)
  }

  @Test("an entry that turns out damaged half-way is a miss: the file holds the new bytes alone")
  func damaged() async throws {
    let folder = try DownloadFolder()
    let disk = try DiskCache(folder: folder.url.appending(path: "cache"))
    let house = try House { $0.store = disk }
    house.network.answer(house.url, .ok(bytes, cacheControl: "max-age=60"), .ok("new", cacheControl: "max-age=60"))
    _ = try await house.manager.load(house.url, to: folder.file())
    let entry = try #require(
      FileManager.default.subpaths(atPath: folder.url.path)?.first { $0.hasSuffix(".e") }.map { folder.url.appending(path: $0) })
    var content = try Data(contentsOf: entry)
    content[600_000] ^= 1
    try content.write(to: entry)

    let film = try await house.manager.load(house.url, to: folder.file())

    #expect(film.source == .network)
    #expect(folder.content() == Data("new".utf8))
    await disk.close()
  }

  @Test("a store that fails, or is too small, does not fail the load", arguments: [true, false])
  func storeFails(isTooSmall: Bool) async throws {
    let folder = try DownloadFolder()
    let small = try DiskCache(folder: folder.url.appending(path: "cache"), configuration: .init(sizeLimit: 100_000))
    let house = try House { if isTooSmall { $0.store = small } }
    house.disk.refusesWrites = true
    house.network.answer(house.url, .ok(bytes))

    let film = try await house.manager.load(house.url, to: folder.file())

    #expect(film.source == .network && folder.content() == bytes)
    #expect(house.observer.events.contains { if case .storeFailed = $0 { true } else { false } })
    await small.close()
  }

  @Test("stale-while-revalidate: the stored answer is in the file, the fresh one goes into the store")
  func staleWhileRevalidate() async throws {
    let house = try House()
    let folder = try DownloadFolder()
    let gate = Gate()
    house.network.answer(
      house.url, .ok("old", etag: "\"1\""), .ok("newer", etag: "\"2\"", cacheControl: "max-age=60").held(by: gate))
    _ = try await house.manager.load(house.url)
    house.restart()

    let film = try await house.manager.load(house.url, to: folder.file(), options: .policy(.staleWhileRevalidate))
    gate.open()
    await house.observer.first { if case .stored(_, .disk, 5) = $0 { true } else { false } }

    #expect(film.source == .disk && film.isStale)
    #expect(folder.content() == Data("old".utf8) && folder.names == ["film.mp4"])
    let key = try #require(house.disk.keys.first)
    #expect(try await house.disk.open(key)?.body.collect() == Data("newer".utf8))
  }

  @Test("a small file is replaced by rename, with the permissions of the old one")
  func permissions() async throws {
    let house = try House()
    let folder = try DownloadFolder()
    try Data("old".utf8).write(to: folder.file())
    #expect(chmod(folder.file().path, 0o640) == 0)
    house.network.answer(house.url, .ok("new"))

    _ = try await house.manager.load(house.url, to: folder.file(), isDurable: true)

    var status = stat()
    #expect(stat(folder.file().path, &status) == 0 && status.st_mode & 0o777 == 0o640)
    #expect(folder.content() == Data("new".utf8))
  }

  @Test("progress and the outcome come as events and as callbacks too")
  func otherForms() async throws {
    let house = try House()
    let folder = try DownloadFolder()
    house.network.serve(house.url) { [bytes] _ in .ok(bytes, cacheControl: "no-store").chunked(by: 100_000) }
    let request = ResourceRequest(house.url)

    var received: [Int64] = []
    var final: Resource<URL>?
    for try await event in house.manager.events(for: request, to: folder.file("a")) {
      switch event {
      case .progress(let progress): received.append(progress.received)
      case .stale: Issue.record("a file is written once")
      case .final(let film): final = film
      }
    }
    let film = try await withCheckedThrowingContinuation { continuation in
      house.manager.load(request, to: folder.file("b")) { continuation.resume(with: $0) }
    }

    #expect(received.last == 700_000 && received == received.sorted())
    #expect(final?.file == folder.file("a") && film.file == folder.file("b"))
    #expect(folder.content("a") == bytes && folder.content("b") == bytes)
  }
}

@Suite("Files that can't be written")
struct FileFailureTests {
  /// Where a file can't be.
  struct Place: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var errno: Int32
    var file: @Sendable (DownloadFolder) throws -> URL

    static let all = [
      Place(testDescription: "in a folder that is not there", errno: ENOENT) { $0.file("none/film") },
      Place(testDescription: "in the place of a folder", errno: EISDIR) { folder in
        try FileManager.default.createDirectory(at: folder.file("film"), withIntermediateDirectories: false)
        return folder.file("film")
      },
      Place(testDescription: "a folder's path", errno: EISDIR) { $0.url.appending(path: "film", directoryHint: .isDirectory) },
      Place(testDescription: "below a file", errno: ENOTDIR) { folder in
        try Data().write(to: folder.file("file"))
        return folder.file("file/film")
      },
    ]
  }

  @Test("a place that can't be written is named, with the error's number, and nobody is asked", arguments: Place.all)
  func place(_ place: Place) async throws {
    let house = try House()
    let folder = try DownloadFolder()
    let file = try place.file(folder)

    let error = await #expect(throws: CacheError.self) { try await house.manager.load(house.url, to: file) }

    #expect(error?.code == .fileSystem && error?.errno == place.errno)
    #expect(error?.path == file.path(percentEncoded: false) && error?.url == house.url.absoluteString)
    #expect(house.network.requests.isEmpty)
  }

  @Test("a folder without permission is named", .enabled(if: geteuid() != 0, "root may write everywhere"))
  func noPermission() async throws {
    let house = try House()
    let folder = try DownloadFolder()
    #expect(chmod(folder.url.path, 0o500) == 0)
    defer { _ = chmod(folder.url.path, 0o700) }

    let error = await #expect(throws: CacheError.self) { try await house.manager.load(house.url, to: folder.file()) }

    #expect(error?.errno == EACCES && error?.path == folder.file().path)
  }

  @Test("only file: URLs are files")
  func noFile() async throws {
    let house = try House()
    let error = await #expect(throws: CacheError.self) { try await house.manager.load(house.url, to: house.url) }
    #expect(error?.code == .invalidConfiguration)
  }

  @Test(
    "a disk that fills up, or fails, while the file is written: the old file stays, and the cache is as it was",
    arguments: [ENOSPC, EIO])
  func diskFull(_ number: Int32) async throws {
    let house = try House()
    let folder = try DownloadFolder()
    try Data("old".utf8).write(to: folder.file())
    house.network.answer(house.url, .ok(Data(count: 900_000)).chunked(by: 100_000))
    var calls = DraftCalls.system
    let write = calls.write
    calls.write = { descriptor, bytes, offset in
      // The first batch goes through, in two parts.
      guard offset < 200_000 else { return .failure(.init(number: number)) }
      return write(descriptor, UnsafeRawBufferPointer(rebasing: bytes.prefix(200_000)), offset)
    }

    let error = await #expect(throws: CacheError.self) {
      try await house.manager.load(ResourceRequest(house.url), to: folder.file(), calls: calls)
    }

    #expect(error?.code == (number == ENOSPC ? .diskFull : .fileSystem))
    #expect(error?.path == folder.file().path && error?.errno == number)
    #expect(folder.names == ["film.mp4"] && folder.content() == Data("old".utf8))
    #expect(house.disk.keys.isEmpty)
    await house.manager.close()
    #expect(house.network.cancelledBodies == 1)
  }

  @Test(
    "a rename, or a flush, that fails leaves the old file; the answer is in the store all the same", arguments: [true, false])
  func lastStep(isRename: Bool) async throws {
    let house = try House()
    let folder = try DownloadFolder()
    try Data("old".utf8).write(to: folder.file())
    house.network.answer(house.url, .ok("new", cacheControl: "max-age=60"))
    var calls = DraftCalls.system
    if isRename { calls.rename = { _, _ in .init(number: EIO) } } else { calls.sync = { _ in .init(number: EIO) } }

    let error = await #expect(throws: CacheError.self) {
      try await house.manager.load(ResourceRequest(house.url), to: folder.file(), calls: calls)
    }

    #expect(error?.errno == EIO && error?.path == folder.file().path)
    #expect(folder.names == ["film.mp4"] && folder.content() == Data("old".utf8))
    #expect(try await house.manager.load(house.url).source == .disk)
  }
}

@Suite("Loads into files that share")
struct FileSharingTests {
  private let bytes = pattern(600_000)

  @Test("20 loads of one resource into 20 files make one transfer; the files are files of their own")
  func manyFiles() async throws {
    let house = try House()
    let folder = try DownloadFolder()
    let gate = Gate()
    house.network.answer(house.url, .ok(bytes, cacheControl: "max-age=60").held(by: gate))

    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<20 {
        group.addTask { _ = try await house.manager.load(house.url, to: folder.file("\(index)")) }
      }
      try await Turns.until { house.observer.joins >= 19 }
      gate.open()
      try await group.waitForAll()
    }
    await house.manager.close()

    #expect(folder.names.count == 20)
    #expect((0..<20).allSatisfy { folder.content("\($0)") == bytes })
    #expect(house.network.requests.count == 1)
    var inodes: Set<UInt64> = []
    for index in 0..<20 {
      var status = stat()
      #expect(stat(folder.file("\(index)").path, &status) == 0)
      inodes.insert(UInt64(status.st_ino))
    }
    #expect(inodes.count == 20)
  }

  @Test("when the first of two leaves, or can't write, the other one has its file", arguments: [true, false])
  func firstLeaves(isCancelled: Bool) async throws {
    let house = try House()
    let folder = try DownloadFolder()
    let gate = Gate()
    house.network.serve(house.url) { [bytes] _ in .ok(bytes, cacheControl: "max-age=60").chunked(by: 100_000).bodyHeld(by: gate) }
    var calls = DraftCalls.system
    if !isCancelled { calls.write = { _, _, _ in .failure(.init(number: ENOSPC)) } }

    let first = Task { [calls] in
      try await house.manager.load(ResourceRequest(house.url), to: folder.file("first"), calls: calls)
    }
    await gate.arrived()
    let second = Task { try await house.manager.load(house.url, to: folder.file("second")) }
    await house.observer.joined()
    if isCancelled { first.cancel() }
    gate.open()

    let result = await first.result
    _ = try await second.value
    await house.manager.close()
    #expect(throws: CacheError.self) { try result.get() }
    #expect(folder.names == ["second"] && folder.content("second") == bytes)
    #expect(house.network.requests.count == (isCancelled ? 1 : 2))
  }

  @Test("an answer that others may not have: each asks for itself")
  func unshareable() async throws {
    let house = try House()
    let folder = try DownloadFolder()
    let gate = Gate()
    house.network.serve(house.url) { [bytes] _ in .ok(bytes, cacheControl: "no-store").held(by: gate) }

    async let first = house.manager.load(house.url, to: folder.file("first"))
    async let second = house.manager.load(house.url, to: folder.file("second"))
    await house.observer.joined()
    gate.open()
    _ = try await (first, second)

    #expect(house.network.requests.count == 2)
    #expect(folder.content("first") == bytes && folder.content("second") == bytes)
  }

  @Test("a load into a file beside one into memory: both have the bytes")
  func besideMemory() async throws {
    let house = try House()
    let folder = try DownloadFolder()
    let gate = Gate()
    house.network.serve(house.url) { [bytes] _ in .ok(bytes, cacheControl: "max-age=60").held(by: gate) }

    async let data = house.manager.load(house.url)
    async let film = house.manager.load(house.url, to: folder.file())
    await gate.arrived(2)
    gate.open()

    #expect(try await data.data == bytes)
    #expect(try await film.file == folder.file() && folder.content() == bytes)
    #expect(house.disk.keys.count == 1)
  }
}

@Suite("Files of any size")
struct LargeFileTests {
  /// A body of so many bytes that lie nowhere, and what of it has been pulled and written.
  private final class Flow: Downloader, Sendable {
    private struct Account {
      var pulled: Int64 = 0
      var written: Int64 = 0
      var highest: Int64 = 0
    }

    private final class Source: Body.Source {
      let flow: Flow
      init(_ flow: Flow) { self.flow = flow }

      func next() async throws(CacheError) -> Data? { flow.pull() }
      func cancel() {}
      var trailers: HTTPFields? { nil }
    }

    let id = ComponentID.unique(Flow.self)
    private let length: Int64
    private let chunk = Data(count: 1_000_000)
    private let account = Lock(Account())

    init(length: Int64) { self.length = length }

    /// The most bytes that were ever pulled and not written.
    var highest: Int64 { account.withLock { $0.highest } }
    var written: Int64 { account.withLock { $0.written } }

    func write(_ count: Int, at offset: Int64) { account.withLock { $0.written = offset + Int64(count) } }

    private func pull() -> Data? {
      account.withLock { account in
        guard account.pulled < length else { return nil }
        account.pulled += Int64(chunk.count)
        account.highest = max(account.highest, account.pulled - account.written)
        return chunk
      }
    }

    func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
      DownloadResponse(head: HTTPResponse(status: .ok), body: Body(length: length, source: Source(self)))
    }
  }

  @Test("of 2 GB no more is held than a batch: the next bytes are pulled when the ones before are written")
  func backPressure() async throws {
    let flow = Flow(length: 2_000_000_000)
    // A store that is too small says so at the start, and not after it has taken half of it.
    let folder = try DownloadFolder()
    let disk = try DiskCache(folder: folder.url.appending(path: "cache"))
    let house = try House {
      $0.downloader = flow
      $0.store = disk
    }
    var calls = DraftCalls.system
    calls.write = { _, bytes, offset in
      flow.write(bytes.count, at: offset)
      return .success(bytes.count)
    }

    _ = try await house.manager.load(ResourceRequest(house.url), to: folder.file(), calls: calls)

    #expect(flow.written == 2_000_000_000)
    #expect(flow.highest <= 1_300_000)
    #expect(disk.counters.failedWrites == 0)
    #expect(
      house.observer.events.contains { if case .storeFailed(_, let error) = $0 { error.code == .entryTooLarge } else { false } })
    await disk.close()
  }

  @Test("a cancel that comes when the file is put into place comes too late: the load tells that the file is there")
  func lateCancel() async throws {
    let house = try House()
    let folder = try DownloadFolder()
    house.network.answer(house.url, .ok("bytes"))
    let cancel = Lock<(@Sendable () -> Void)?>(nil)
    var calls = DraftCalls.system
    let rename = calls.rename
    calls.rename = { from, to in
      cancel.withLock { $0 }?()
      return rename(from, to)
    }
    let gate = Gate()

    let load = Task { [calls] in
      await gate.pass()
      return try await house.manager.load(ResourceRequest(house.url), to: folder.file(), calls: calls)
    }
    cancel.withLock { $0 = { load.cancel() } }
    gate.open()

    #expect(try await load.value.file == folder.file())
    #expect(folder.content() == Data("bytes".utf8))
  }
}
