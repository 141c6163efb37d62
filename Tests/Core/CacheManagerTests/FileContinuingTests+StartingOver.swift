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

/// Parts that a load cannot continue.
extension FileContinuingTests {
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

  @Test("bytes of another body are not left with the record of a body that had no bytes")
  func recordWithoutBytes() async throws {
    try await leavePart(Origin(), file: "other.mp4")
    let record = try #require(PartRecordFile.open(folder.file(".other.mp4.etagere-record").path)).record
    let file = try await PartialFile.open(destination, in: OpenParts())
    try await file.begin(record)

    file.restart()
    try await file.write(Data("another body".utf8))
    await file.leave(after: .cancelled)

    #expect(folder.names == [".other.mp4.etagere-part", ".other.mp4.etagere-record"])
  }

  /// A change of the files that a load has left.
  struct Change: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var make: @Sendable (_ part: String, _ record: String) throws -> Void

    static let all = [
      Change(testDescription: "the record is missing") { _, record in unlink(record) },
      Change(testDescription: "the record is empty") { _, record in #expect(truncate(record, 0) == 0) },
      Change(testDescription: "the record is a symbolic link") { _, record in
        #expect(rename(record, record + "2") == 0 && symlink(record + "2", record) == 0)
      },
      Change(testDescription: "the part is missing") { part, _ in unlink(part) },
      Change(testDescription: "the part is empty") { part, _ in #expect(truncate(part, 0) == 0) },
      // Other users cannot make these in a folder of this user, but can in a shared one.
      Change(testDescription: "the part is a symbolic link") { part, _ in
        #expect(rename(part, part + "2") == 0 && symlink(part + "2", part) == 0)
      },
      Change(testDescription: "the part has a second name") { part, _ in #expect(link(part, part + "2") == 0) },
      Change(testDescription: "the part is a FIFO") { part, _ in #expect(unlink(part) == 0 && mkfifo(part, 0o600) == 0) },
      Change(testDescription: "the part is a folder") { part, _ in #expect(unlink(part) == 0 && mkdir(part, 0o700) == 0) },
    ]
  }

  @Test("only a part that is the user's own and has a record is continued", arguments: Change.all)
  func otherFiles(_ change: Change) async throws {
    let origin = Origin()
    try await leavePart(origin)
    try change.make(part, record)
    let fixture = try manager(origin)

    _ = try await fixture.manager.load(fixture.url, to: folder.file())
    await fixture.manager.close()

    #expect(ranges(fixture) == ["all"])
    #expect(folder.content() == Self.bytes)
    #expect(!folder.names.contains { $0.hasPrefix(".etagere-") })
  }
}
