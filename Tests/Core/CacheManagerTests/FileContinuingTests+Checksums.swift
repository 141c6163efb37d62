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

/// The checksums of the bytes of a part.
extension FileContinuingTests {
  /// A body of 20 blocks, so that its part is verified in two turns.
  private static let film = (0..<8).reduce(into: Data()) { film, _ in film.append(filePattern(700_000)) }.prefix(5_000_000)
  private static let block = Int(RecordedBytes.blockSize)
  /// The part has 9 blocks and 140,704 bytes.
  private static let partCount = 2_500_000

  private func leaveFilm() async throws -> Origin {
    let origin = Origin(Self.film, chunk: 500_000)
    try await leavePart(origin)
    return origin
  }

  /// A change of the part or its record, and the range requests of the next load.
  struct Damage: Sendable, CustomTestStringConvertible {
    var testDescription: String
    /// The number of bytes that are continued after the change.
    var count: Int
    var ranges: [String] { [count == 0 ? "all" : "bytes=\(count)-"] }
    var make: @Sendable (_ part: String, _ record: String) throws -> Void

    init(_ description: String, keeps count: Int, make: @escaping @Sendable (_ part: String, _ record: String) throws -> Void) {
      (testDescription, self.count, self.make) = (description, count, make)
    }

    /// Changes a file in place, so that it keeps its identity.
    static func edit(_ path: String, _ edit: (inout Data) throws -> Void) throws {
      var data = try Data(contentsOf: URL(filePath: path))
      try edit(&data)
      let handle = try FileHandle(forWritingTo: URL(filePath: path))
      try handle.truncate(atOffset: 0)
      try handle.write(contentsOf: data)
      try handle.close()
    }

    /// Changes the checksums in a record.
    static func editChecksums(_ path: String, _ change: (inout Data) -> Void) throws {
      try edit(path) { data in
        let start = try #require(data.firstIndex(of: UInt8(ascii: "\n"))) + 5
        var checksums = Data(data[start...])
        change(&checksums)
        data.replaceSubrange(start..., with: checksums)
      }
    }

    /// Replaces a text in a record, whose line gets a matching checksum.
    static func replace(_ text: String, with replacement: String, in path: String) throws {
      try edit(path) { data in
        let end = try #require(data.firstIndex(of: UInt8(ascii: "\n"))) + 1
        let line = String(decoding: data[..<end], as: UTF8.self)
        #expect(line.contains(text))
        var changed = Data(line.replacingOccurrences(of: text, with: replacement).utf8)
        let checksum = changed.withUnsafeBytes { crc32c($0) }
        withUnsafeBytes(of: checksum.littleEndian) { changed.append(contentsOf: $0) }
        data.replaceSubrange(..<(end + 4), with: changed)
      }
    }

    static let ofPart = [
      Damage("the first byte has changed", keeps: 0) { part, _ in try edit(part) { $0[0] ^= 1 } },
      Damage("a byte of the fourth block has changed", keeps: 3 * block) { part, _ in
        try edit(part) { $0[3 * block + 17] ^= 0x80 }
      },
      Damage("the last byte has changed", keeps: 9 * block) { part, _ in try edit(part) { $0[partCount - 1] ^= 1 } },
      Damage("a crash has lost the end of the part", keeps: 3 * block) { part, _ in
        #expect(truncate(part, 1_000_000) == 0)
      },
      Damage("a crash has left a hole in the part", keeps: 4 * block) { part, _ in
        try edit(part) { $0.resetBytes(in: 4 * block..<6 * block) }
      },
      Damage("a crash has left a hole at the end of the part", keeps: 8 * block) { part, _ in
        #expect(truncate(part, off_t(8 * block + 100)) == 0 && truncate(part, off_t(partCount)) == 0)
      },
      Damage("the part is a few bytes longer than its record", keeps: 9 * block) { part, _ in
        try edit(part) { $0.append(contentsOf: Data("more".utf8)) }
      },
      Damage("the part is some blocks longer than its record", keeps: 9 * block) { part, _ in
        try edit(part) { $0.append(FileContinuingTests.film[partCount..<4_000_000]) }
      },
      Damage("the part is longer than the body", keeps: 9 * block) { part, _ in
        #expect(truncate(part, 5_000_001) == 0)
      },
    ]

    static let ofChecksums = [
      Damage("the checksum of the third block has changed", keeps: 2 * block) { _, record in
        try editChecksums(record) { $0[8] ^= 1 }
      },
      Damage("the record ends after four checksums", keeps: 4 * block) { _, record in
        try editChecksums(record) { $0 = $0.prefix(16) }
      },
      Damage("the record ends within the fourth checksum", keeps: 3 * block) { _, record in
        try editChecksums(record) { $0 = $0.prefix(15) }
      },
      Damage("a crash has left a hole in the checksums", keeps: 5 * block) { _, record in
        try editChecksums(record) { $0.resetBytes(in: 20..<32) }
      },
      Damage("the record has checksums of bytes that the part lacks", keeps: partCount) { _, record in
        try editChecksums(record) { $0.append(Data(repeating: 1, count: 1_000)) }
      },
      Damage("the record has the largest size", keeps: partCount) { _, record in #expect(truncate(record, 64 << 20) == 0) },
      Damage("the record is too large", keeps: 0) { _, record in #expect(truncate(record, 64 << 20 + 1) == 0) },
    ]

    /// Damages of the line before the checksums.
    static let ofLine = [
      Damage("the line is cut off", keeps: 0) { _, record in try edit(record) { $0 = $0.prefix(100) } },
      Damage("a digit of the line has changed", keeps: 0) { _, record in
        try edit(record) { data in
          let digit = try #require(data.range(of: Data("\"length\":5000000".utf8))).upperBound - 1
          data[digit] = UInt8(ascii: "1")
        }
      },
      Damage("the checksum of the line is cut off", keeps: 0) { _, record in
        try edit(record) { $0 = $0.prefix(try #require($0.firstIndex(of: UInt8(ascii: "\n"))) + 4) }
      },
      Damage("the record is of another version", keeps: 0) { _, record in
        try replace("\"version\":1", with: "\"version\":2", in: record)
      },
      Damage("the key of the digests is too short", keeps: 0) { _, record in
        try replace("\"salt\":[", with: "\"salt\":[1],\"other\":[", in: record)
      },
      Damage("the record has no validator", keeps: 0) { _, record in
        try replace("\"tag\":", with: "\"other\":", in: record)
      },
      Damage("the permissions are impossible", keeps: 0) { _, record in
        try replace("\"permissions\":", with: "\"permissions\":4096,\"other\":", in: record)
      },
    ]

    static let ofLength = ["0", "-1", "\(Int64.min)", "1", "99999999999999999999", "1e300"].map { length in
      Damage("the length is \(length)", keeps: 0) { _, record in
        try replace("\"length\":5000000", with: "\"length\":\(length)", in: record)
      }
    }
  }

  @Test(
    "a part is continued after the last intact block before a damage",
    arguments: Damage.ofPart + Damage.ofChecksums + Damage.ofLine + Damage.ofLength)
  func damaged(_ damage: Damage) async throws {
    let origin = try await leaveFilm()
    try damage.make(part, record)
    let fixture = try manager(origin)

    _ = try await fixture.manager.load(fixture.url, to: folder.file())

    #expect(ranges(fixture) == damage.ranges)
    #expect(folder.content() == Self.film && folder.names == ["film.mp4"])
  }

  @Test(
    "if the record has another length than the body, the load starts over after the origin's response",
    arguments: [(Int64.max, 2_500_000), (5_000_001, 2_500_000), (2_500_000, 2_359_296), (2_359_296, 2_097_152)])
  func otherLength(_ length: Int64, _ count: Int) async throws {
    let origin = try await leaveFilm()
    try Damage.replace("\"length\":5000000", with: "\"length\":\(length)", in: record)
    let fixture = try manager(origin)

    _ = try await fixture.manager.load(fixture.url, to: folder.file())

    #expect(ranges(fixture) == ["bytes=\(count)-", "all"])
    #expect(folder.content() == Self.film && folder.names == ["film.mp4"])
  }

  @Test("a record does not grow beyond its largest size")
  func largestRecord() async throws {
    _ = try await leaveFilm()
    let file = try #require(PartRecordFile.open(record)).file

    for block in [16_000_000, 17_000_000] as [Int64] { file.write(1, ofBlock: block) }

    #expect(file.checksum(ofBlock: 16_000_000) == 1 && file.checksum(ofBlock: 17_000_000) == nil)
    #expect(PartRecordFile.open(record) != nil)
  }

  @Test("a part that was cut off is continued by a load that is interrupted too, and by the next one")
  func damagedAndInterrupted() async throws {
    let origin = try await leaveFilm()
    try Damage.edit(part) { $0[3 * Self.block] ^= 1 }
    for (cut, expected) in [(1_000_000, 3 * Self.block), (5_000_000, 3 * Self.block + 1_000_000)] {
      let fixture = try ManagerFixture()
      fixture.network.serve(fixture.url) { origin.respond($0).cut(after: cut) }
      _ = await Task { [folder] in try await fixture.manager.load(fixture.url, to: folder.file()) }.result
      #expect(ranges(fixture) == ["bytes=\(expected)-"])
      await fixture.manager.close()
    }
    #expect(folder.content() == Self.film && folder.names == ["film.mp4"])
  }

  @Test("after its process was killed, a load continues after the last whole block")
  func killed() async throws {
    let origin = Origin(Self.film, chunk: 500_000)
    let first = try manager(origin)
    let load = Task { [folder] in try await first.manager.load(first.url, to: folder.file()) }
    await origin.gate.arrived()
    origin.gate.letThrough(5)
    try await Polling.until { [part] in
      (try? FileManager.default.attributesOfItem(atPath: part))?[.size] as? Int == Self.partCount
    }
    // The files of a killed process.
    let other = try DownloadFolder()
    for path in [part, record] {
      let name = URL(filePath: path).lastPathComponent
      try FileManager.default.copyItem(at: URL(filePath: path), to: other.file(name))
    }
    origin.gate.open()
    _ = try await load.value
    let second = try manager(origin)

    _ = try await second.manager.load(second.url, to: other.file())

    #expect(ranges(second) == ["bytes=\(9 * Self.block)-"] && other.content() == Self.film)
  }

  @Test("the checksum of a block is in the record before the last byte of the block is in the part")
  func checksumFirst() async throws {
    let origin = Origin(Self.film, chunk: 500_000)
    origin.gate.open()
    let fixture = try manager(origin)
    var calls = FileSystemCalls.system
    let write = calls.write
    let checked = Lock(0)
    calls.write = { [record] descriptor, bytes, offset in
      let blocks = (offset + Int64(bytes.count)) / RecordedBytes.blockSize
      if let file = PartRecordFile.open(record)?.file {
        #expect((0..<blocks).allSatisfy { file.checksum(ofBlock: $0) != nil })
        checked.withLock { $0 = Int(blocks) }
      }
      return write(descriptor, bytes, offset)
    }

    _ = try await fixture.manager.load(ResourceRequest(fixture.url), to: folder.file(), calls: calls)

    #expect(checked.withLock { $0 } == 19 && folder.content() == Self.film)
  }

  @Test("a load that is cancelled while it verifies a part leaves the part as it is, and does not change it afterwards")
  func cancelledVerification() async throws {
    _ = try await leaveFilm()
    // Not in the blocks that are verified in the first turn.
    try Damage.edit(part) { $0[8 * Self.block] ^= 1 }
    let before = try [part, record].map { try Data(contentsOf: URL(filePath: $0)) }
    let file = try await PartialFile.open(destination, in: OpenParts())
    let gate = Gate()

    let verification = Task {
      await gate.pass()
      return try await file.part { _ in true }
    }
    verification.cancel()
    gate.open()
    let result = await verification.result
    await file.leave(after: .cancelled)

    #expect(result.isCancellation)
    // The task that verifies the part may not have noticed the cancellation when the file is left.
    #expect(try await file.part { _ in true } == nil)
    #expect(try [part, record].map { try Data(contentsOf: URL(filePath: $0)) } == before)
  }
}
