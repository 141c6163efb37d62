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

@Suite("Simultaneous loads of one resource into files")
struct SimultaneousFileTests {
  private let bytes = filePattern(600_000)

  @Test("20 loads of one resource into 20 files make 20 independent files")
  func manyFiles() async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    let gate = Gate()
    fixture.network.serve(fixture.url) { [bytes] _ in .ok(bytes, cacheControl: "max-age=60").held(by: gate) }

    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<20 {
        group.addTask { _ = try await fixture.manager.load(fixture.url, to: folder.file("\(index)")) }
      }
      await gate.arrived(20)
      gate.open()
      try await group.waitForAll()
    }
    await fixture.manager.close()

    #expect(folder.names.count == 20)
    #expect((0..<20).allSatisfy { folder.content("\($0)") == bytes })
    #expect(fixture.disk.keys.count == 1)
    var inodes: Set<UInt64> = []
    for index in 0..<20 {
      var status = stat()
      #expect(stat(folder.file("\(index)").path, &status) == 0)
      inodes.insert(UInt64(status.st_ino))
    }
    #expect(inodes.count == 20)
  }

  @Test("if one of two loads leaves, or cannot write, the other load still completes its file", arguments: [true, false])
  func oneLeaves(isCancelled: Bool) async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    let gate = Gate()
    fixture.network.serve(fixture.url) { [bytes] _ in
      .ok(bytes, cacheControl: "max-age=60").chunked(by: 100_000).bodyHeld(by: gate)
    }
    var calls = FileSystemCalls.system
    if !isCancelled { calls.write = { _, _, _ in .failure(.init(number: ENOSPC)) } }

    let first = Task { [calls] in
      try await fixture.manager.load(ResourceRequest(fixture.url), to: folder.file("first"), calls: calls)
    }
    await gate.arrived()
    let second = Task { try await fixture.manager.load(fixture.url, to: folder.file("second")) }
    await gate.arrived(2)
    if isCancelled { first.cancel() }
    gate.open()

    let result = await first.result
    _ = try await second.value
    await fixture.manager.close()
    #expect(throws: CacheError.self) { try result.get() }
    #expect(folder.names == ["second"] && folder.content("second") == bytes)
    #expect(fixture.network.requests.count == 2)
  }

  @Test("a load into a file and one into memory both receive the bytes")
  func besideMemory() async throws {
    let fixture = try ManagerFixture()
    let folder = try DownloadFolder()
    let gate = Gate()
    fixture.network.serve(fixture.url) { [bytes] _ in .ok(bytes, cacheControl: "max-age=60").held(by: gate) }

    async let data = fixture.manager.load(fixture.url)
    async let film = fixture.manager.load(fixture.url, to: folder.file())
    await gate.arrived(2)
    gate.open()

    #expect(try await data.data == bytes)
    #expect(try await film.file == folder.file() && folder.content() == bytes)
    #expect(fixture.disk.keys.count == 1)
  }
}
