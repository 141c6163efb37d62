import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import Dispatch
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

@Suite("Files that cannot be written")
struct FileFailureTests {
  /// A path that cannot be written.
  struct Destination: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var errno: Int32
    var file: @Sendable (DownloadFolder) throws -> URL

    static let all = [
      Destination(testDescription: "in a missing folder", errno: ENOENT) { $0.file("none/film") },
      Destination(testDescription: "at the path of a folder", errno: EISDIR) { folder in
        try FileManager.default.createDirectory(at: folder.file("film"), withIntermediateDirectories: false)
        return folder.file("film")
      },
      Destination(testDescription: "a folder's path", errno: EISDIR) {
        $0.url.appending(path: "film", directoryHint: .isDirectory)
      },
      Destination(testDescription: "below a file", errno: ENOTDIR) { folder in
        try Data().write(to: folder.file("file"))
        return folder.file("file/film")
      },
    ]
  }

  @Test("an unwritable path is an error with the path and the error number, and no request is sent", arguments: Destination.all)
  func destination(_ destination: Destination) async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    let file = try destination.file(folder)

    let error = await #expect(throws: CacheError.self) { try await fixture.manager.load(fixture.url, to: file) }

    #expect(error?.code == .fileSystem && error?.errno == destination.errno)
    #expect(error?.path == file.path(percentEncoded: false) && error?.url == fixture.url.absoluteString)
    #expect(fixture.network.requests.isEmpty)
  }

  @Test("a missing permission is an error with the path", .enabled(if: geteuid() != 0, "root can write everywhere"))
  func noPermission() async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    #expect(chmod(folder.url.path, 0o500) == 0)
    defer { _ = chmod(folder.url.path, 0o700) }

    let error = await #expect(throws: CacheError.self) { try await fixture.manager.load(fixture.url, to: folder.file()) }

    #expect(error?.errno == EACCES && error?.path == folder.file().path)
  }

  @Test("a load does not wait until its temporary file is closed", .timeLimit(.minutes(30)))
  func slowClose() async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    fixture.network.respond(to: fixture.url, with: .ok("bytes"))
    var calls = FileSystemCalls.system
    let close = calls.close
    let held = DispatchSemaphore(value: 0)
    let isClosed = Lock(false)
    calls.close = { descriptor in
      held.wait()
      close(descriptor)
      isClosed.withLock { $0 = true }
    }

    _ = try await fixture.manager.load(ResourceRequest(fixture.url), to: folder.file(), calls: calls)
    // The flight, which had the file open, has ended too.
    await fixture.manager.close()
    held.signal()

    #expect(folder.content() == Data("bytes".utf8) && folder.names == ["film.mp4"])
    try await Polling.until { isClosed.withLock { $0 } }
  }

  @Test("a destination that is not a file URL is an error")
  func noFile() async throws {
    let fixture = try ManagerFixture()
    let error = await #expect(throws: CacheError.self) { try await fixture.manager.load(fixture.url, to: fixture.url) }
    #expect(error?.code == .invalidConfiguration)
  }

  @Test(
    "if the disk fills up or fails during the write, the old file and the cache stay unchanged",
    arguments: [ENOSPC, EIO])
  func diskFull(_ number: Int32) async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    try Data("old".utf8).write(to: folder.file())
    fixture.network.respond(to: fixture.url, with: .ok(Data(count: 900_000)).chunked(by: 100_000))
    var calls = FileSystemCalls.system
    let write = calls.write
    calls.write = { descriptor, bytes, offset in
      // The first batch is written in two parts.
      guard offset < 200_000 else { return .failure(.init(number: number)) }
      return write(descriptor, UnsafeRawBufferPointer(rebasing: bytes.prefix(200_000)), offset)
    }

    let error = await #expect(throws: CacheError.self) {
      try await fixture.manager.load(ResourceRequest(fixture.url), to: folder.file(), calls: calls)
    }

    #expect(error?.code == (number == ENOSPC ? .diskFull : .fileSystem))
    #expect(error?.path == folder.file().path && error?.errno == number)
    #expect(folder.names == ["film.mp4"] && folder.content() == Data("old".utf8))
    #expect(fixture.disk.keys.isEmpty)
    await fixture.manager.close()
    #expect(fixture.network.cancelledBodies == 1)
  }

  @Test(
    "if the rename or the flush fails, the old file remains, and the response is still stored", arguments: [true, false])
  func lastStep(isRename: Bool) async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    try Data("old".utf8).write(to: folder.file())
    fixture.network.respond(to: fixture.url, with: .ok("new", cacheControl: "max-age=60"))
    var calls = FileSystemCalls.system
    if isRename { calls.rename = { _, _ in .init(number: EIO) } } else { calls.sync = { _ in .init(number: EIO) } }

    let error = await #expect(throws: CacheError.self) {
      try await fixture.manager.load(ResourceRequest(fixture.url), to: folder.file(), calls: calls)
    }

    #expect(error?.errno == EIO && error?.path == folder.file().path)
    #expect(folder.names == ["film.mp4"] && folder.content() == Data("old".utf8))
    #expect(try await fixture.manager.load(fixture.url).source == .disk)
  }
}
