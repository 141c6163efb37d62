import ArgumentParser
import CacheTesting
import Etagere
import Foundation
import Testing

@testable import Thumbnails

@Suite("Thumbnails of a folder and of URLs")
struct ThumbnailRunTests {
  @Test("a thumbnail is made again only if its image has changed")
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

    // When one image has changed, and the thumbnail of another one is missing
    try place.draw("a.png", 60, 80)
    try FileManager.default.removeItem(at: place.output.appending(path: "b.jpg"))

    // Then the first thumbnail is made, and the second is restored from the cache
    #expect(await place.run() == Summary(made: 1, unchanged: 1, restored: 1))
    #expect(try ImageHeader(of: place.thumbnail("a.jpg")).size == PixelSize(30, 40))
    #expect(place.thumbnails == ["a.jpg", "b.jpg", "deep/c.jpg"])
  }

  @Test("a replaced image of equal size and time is noticed by its inode")
  func replaced() async throws {
    // Given
    let place = try Place()
    try place.draw("a.png", 64, 64, shade: 10)
    let file = place.images.appending(path: "a.png")
    let date = Date(timeIntervalSince1970: 1_000_000_000)
    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: file.path)
    #expect(await place.run() == Summary(made: 1))
    let old = try Data(contentsOf: file)

    // When another file is renamed over the image
    var new = old
    let other = place.images.appending(path: ".other")
    new[new.count - 1] ^= 1
    try new.write(to: other)
    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: other.path)
    _ = rename(other.path, file.path)

    // Then the image is loaded again, and its damage may be an error
    let summary = await place.run()
    #expect(summary.unchanged == 0 && summary.made + summary.failed == 1)
  }

  @Test("an invalid image is reported, and the others are made")
  func errors() async throws {
    // Given
    let place = try Place()
    try place.draw("good.png", 80, 80)
    try Data("<!doctype html><html><p>Not found".utf8).write(to: place.images.appending(path: "page.jpg"))
    try Data().write(to: place.images.appending(path: "empty.png"))

    // When
    let lines = Lines()
    let summary = await place.run(lines)

    // Then
    #expect(summary == Summary(made: 1, failed: 2))
    #expect(summary.exitCode == .failure)
    #expect(place.thumbnails == ["good.jpg"])
    #expect(lines.text.contains("page.jpg") && lines.text.contains("an HTML page"), "\(lines.text)")
    // And the failed images are tried again.
    try place.draw("page.jpg", 50, 50)
    #expect(await place.run() == Summary(made: 1, unchanged: 1, failed: 1))
  }

  @Test("a server gets the entity tag of the image, and responds with 304 or another image")
  func server() async throws {
    // Given
    let place = try Place()
    let network = ScriptedDownloader()
    let url = try #require(URL(string: "https://example.com/logo.png?v=1"))
    let (first, second) = (try Place.png(100, 50), try Place.png(50, 100))
    network.respond(to: url, with: .ok(first, etag: "\"1\""), .notModified(), .ok(second, etag: "\"2\""))
    var list = ImageList(except: place.output)
    try list.add(url.absoluteString)
    let images = list.named("jpg")
    #expect(images.map(\.name) == ["logo.jpg"])

    // When
    var summaries: [Summary] = []
    for _ in 0..<3 { summaries.append(await place.run(images, network)) }

    // Then
    #expect(summaries == [Summary(made: 1), Summary(unchanged: 1), Summary(made: 1)])
    #expect(network.requests.map { $0.headerFields[.ifNoneMatch] } == [nil, "\"1\"", "\"1\""])
    #expect(try ImageHeader(of: place.thumbnail("logo.jpg")).size == PixelSize(20, 40))
  }

  @Test("a cancelled run leaves complete files, and the next run makes the rest")
  func cancelled() async throws {
    // Given
    let place = try Place()
    for index in 0..<24 { try place.draw("\(index).png", 80, 80 + index) }
    let images = try place.list()
    let run = try ThumbnailRun(place.settings, network: ScriptedDownloader())

    // When the run is cancelled in its first line, after which no image is started
    let report = ProgressReport(total: images.count, isTerminal: false) { _ in withUnsafeCurrentTask { $0?.cancel() } }
    let summary = await Task { await run.make(images, report) }.value

    // Then
    #expect(summary.cancelled > 0 && summary.cancelled + summary.made == 24 && summary.failed == 0)
    #expect(summary.exitCode.rawValue == 130)
    #expect(place.thumbnails.count >= summary.made)
    for name in place.thumbnails { _ = try ImageDecoder().decode(place.thumbnail(name)) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: place.output.path).allSatisfy { $0.hasSuffix(".jpg") })
    let next = await place.run()
    #expect(next.failed == 0 && next.done == 24 && next.unchanged >= summary.made)
  }
}
