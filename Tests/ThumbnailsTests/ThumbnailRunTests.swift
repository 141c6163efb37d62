#if Thumbnails
import ArgumentParser
import CacheTesting
import Etagere
import Foundation
import Testing

@testable import Thumbnails

@Suite("Thumbnails of a folder and of URLs")
struct ThumbnailRunTests {
  @Test("what was made once is made again only when its picture has changed")
  func incremental() async throws {
    // Given
    let place = try Place()
    for (index, name) in ["a.png", "b.PNG", "deep/c.png"].enumerated() { try place.draw(name, 120 + index, 90) }
    #expect(await place.run() == Summary(made: 3))
    #expect(place.thumbnails == ["a.jpg", "b.jpg", "deep/c.jpg"])
    let header = try ImageHeader(of: place.thumbnail("a.jpg"))
    #expect(header.format == .jpeg && header.size == PixelSize(40, 30))
    let times = try place.times

    // When nothing has changed
    #expect(await place.run() == Summary(unchanged: 3))

    // Then nothing is written
    #expect(try place.times == times)

    // When one has, and another one's thumbnail is gone
    try place.draw("a.png", 60, 80)
    try FileManager.default.removeItem(at: place.output.appending(path: "b.jpg"))

    // Then the first is made, and the second comes out of the cache
    #expect(await place.run() == Summary(made: 1, unchanged: 1, restored: 1))
    #expect(try ImageHeader(of: place.thumbnail("a.jpg")).size == PixelSize(30, 40))
    #expect(place.thumbnails == ["a.jpg", "b.jpg", "deep/c.jpg"])
  }

  @Test("a picture that is replaced by one of the same size and time is another one: it has another number")
  func replaced() async throws {
    // Given
    let place = try Place()
    try place.draw("a.png", 64, 64, shade: 10)
    let file = place.pictures.appending(path: "a.png")
    let date = Date(timeIntervalSince1970: 1_000_000_000)
    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: file.path)
    #expect(await place.run() == Summary(made: 1))
    let old = try Data(contentsOf: file)

    // When: written beside it, and renamed over it.
    var new = old
    let other = place.pictures.appending(path: ".other")
    new[new.count - 1] ^= 1
    try new.write(to: other)
    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: other.path)
    _ = rename(other.path, file.path)

    // Then it is looked at again; that it is damaged now is told.
    let summary = await place.run()
    #expect(summary.unchanged == 0 && summary.made + summary.failed == 1)
  }

  @Test("what is wrong with one picture is told, and no matter to the others")
  func errors() async throws {
    // Given
    let place = try Place()
    try place.draw("good.png", 80, 80)
    try Data("<!doctype html><html><p>Not found".utf8).write(to: place.pictures.appending(path: "page.jpg"))
    try Data().write(to: place.pictures.appending(path: "empty.png"))

    // When
    let lines = Lines()
    let summary = await place.run(lines)

    // Then
    #expect(summary == Summary(made: 1, failed: 2))
    #expect(summary.exitCode == .failure)
    #expect(place.thumbnails == ["good.jpg"])
    #expect(lines.text.contains("page.jpg") && lines.text.contains("an HTML page"), "\(lines.text)")
    // And what failed is tried again, not remembered.
    try place.draw("page.jpg", 50, 50)
    #expect(await place.run() == Summary(made: 1, unchanged: 1, failed: 1))
  }

  @Test("a server is asked with the entity tag of the picture, and says 304 or sends another one")
  func server() async throws {
    // Given
    let place = try Place()
    let network = ScriptedDownloader()
    let url = try #require(URL(string: "https://example.com/logo.png?v=1"))
    let (first, second) = (try Place.png(100, 50), try Place.png(50, 100))
    network.answer(url, .ok(first, etag: "\"1\""), .notModified(), .ok(second, etag: "\"2\""))
    var list = PictureList(except: place.output)
    try list.add(url.absoluteString)
    let pictures = list.named("jpg")
    #expect(pictures.map(\.name) == ["logo.jpg"])

    // When
    var summaries: [Summary] = []
    for _ in 0..<3 { summaries.append(await place.run(pictures, network)) }

    // Then
    #expect(summaries == [Summary(made: 1), Summary(unchanged: 1), Summary(made: 1)])
    #expect(network.requests.map { $0.headerFields[.ifNoneMatch] } == [nil, "\"1\"", "\"1\""])
    #expect(try ImageHeader(of: place.thumbnail("logo.jpg")).size == PixelSize(20, 40))
  }

  @Test("a run that is cancelled leaves whole files, and the next one goes on")
  func cancelled() async throws {
    // Given
    let place = try Place()
    for index in 0..<24 { try place.draw("\(index).png", 80, 80 + index) }
    let pictures = try place.list()
    let run = try ThumbnailRun(place.settings, network: ScriptedDownloader())

    // When: in the first line, behind which the next picture is not begun.
    let gate = Gate()
    let cancel = Lock<(@Sendable () -> Void)?>(nil)
    let report = ProgressReport(total: pictures.count, isTerminal: false) { _ in cancel.withLock { $0 }?() }
    let making = Task {
      await gate.pass()
      return await run.make(pictures, report)
    }
    cancel.withLock { $0 = { making.cancel() } }
    gate.open()
    let summary = await making.value

    // Then
    #expect(summary.cancelled > 0 && summary.cancelled + summary.made == 24 && summary.failed == 0)
    #expect(summary.exitCode.rawValue == 130)
    #expect(place.thumbnails.count >= summary.made)
    for name in place.thumbnails { _ = try ImageDecoder().decode(place.thumbnail(name)) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: place.output.path).allSatisfy { !$0.hasSuffix(".draft") })
    let next = await place.run()
    #expect(next.failed == 0 && next.done == 24 && next.unchanged >= summary.made)
  }
}
#endif
