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

/// Other loads into the file, and old files in the folder.
extension FileContinuingTests {
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

  @Test("on a system that suspends processes, only files in the container of the process are locked", arguments: [true, false])
  func container(isOwn: Bool) async throws {
    // Given
    let origin = Origin()
    let other = try DownloadFolder()
    var calls = FileSystemCalls.system
    calls.home = isOwn ? folder.url.deletingLastPathComponent().path : other.url.path
    let old = folder.file(".etagere-0123.part")
    try Data("x".utf8).write(to: old)
    let date = Date(timeIntervalSinceNow: -7 * 24 * 3_600 - 60)
    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: old.path)

    // When
    let first = try manager(origin)
    let load = Task { [calls, folder] in
      try await first.manager.load(ResourceRequest(first.url), to: folder.file(), calls: calls)
    }
    await origin.gate.arrived()
    origin.gate.letThrough(5)
    await origin.gate.arrived(6)

    // Then
    #expect(!folder.names.contains(".etagere-0123.part"))
    #expect(folder.names.filter(isLocked) == (isOwn ? [".film.mp4.etagere-part"] : []))
    if !isOwn { #expect(folder.names.count == 1, "a file of its own, without a record") }
    load.cancel()
    #expect(await load.result.isCancellation)
    await first.manager.close()
    #expect(folder.names == (isOwn ? [".film.mp4.etagere-part", ".film.mp4.etagere-record"] : []))

    let second = try manager(origin)
    _ = try await second.manager.load(ResourceRequest(second.url), to: folder.file(), calls: calls)
    #expect(ranges(second) == [isOwn ? "bytes=350000-" : "all"])
    #expect(folder.content() == Self.bytes && folder.names == ["film.mp4"])
    await second.manager.close()
  }

  private func isLocked(_ name: String) -> Bool {
    let descriptor = open(folder.file(name).path, O_RDWR | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return flock(descriptor, LOCK_EX | LOCK_NB) != 0
  }
}
