import CacheTesting
import CacheUI
import Foundation
import Testing

@testable import PhotoWidget

@Suite("An app and its widget on one folder")
final class PhotoTimelineTests: Sendable {
  /// The network of the app. The widget has another one, for which a request is an error.
  private let network = ScriptedDownloader()
  private let widgetNetwork = ScriptedDownloader()
  private let container: URL
  private let url: URL
  private let start = Date(timeIntervalSince1970: 1_800_000_000)

  init() throws {
    url = try #require(URL(string: "https://api.example.com/photos.json"))
    container = FileManager.default.temporaryDirectory.appending(
      path: "PhotoWidgetTests-\(UUID())", directoryHint: .isDirectory)
  }

  deinit { try? FileManager.default.removeItem(at: container) }

  private func photo(_ id: Int) -> Photo {
    Photo(id: id, title: "photo \(id)", image: url.deletingLastPathComponent().appending(path: "\(id).jpg"))
  }

  /// Returns the app after it has loaded a number of photos, all of which are stale at once.
  private func app(_ count: Int) async throws -> SharedPhotos {
    let photos = (0..<count).map(photo)
    network.respond(to: url, with: .ok(try JSONEncoder().encode(photos), etag: "\"1\"", cacheControl: "max-age=0"))
    let pixels = try #require(
      PixelBuffer(size: PixelSize(800, 600), channels: .rgb) { $0.initializeMemory(as: UInt8.self, repeating: 90) })
    let file = try ImageEncoder.jpeg.encode(DecodedImage(pixels))
    for photo in photos { network.respond(to: photo.image, with: .ok(file, etag: "\"1\"", cacheControl: "max-age=0")) }
    let app = try SharedPhotos(container: container, url: url, downloader: network)
    #expect(try await app.update() == photos)
    try network.verify()
    return app
  }

  private func timeline() async -> PhotoTimeline {
    await .make(from: start) { [container, url, widgetNetwork] () throws(CacheError) in
      try SharedPhotos(container: container, url: url, downloader: widgetNetwork)
    }
  }

  @Test("the widget shows what the app has stored, in its own size and without a request")
  func stored() async throws {
    let app = try await app(2)
    let timeline = await timeline()
    #expect(timeline.entries.map(\.title) == ["photo 0", "photo 1"])
    #expect(timeline.entries.map { $0.image?.size } == [PixelSize(510, 510), PixelSize(510, 510)])
    #expect(timeline.entries.map(\.date) == [start, start + 3_600])
    #expect(timeline.end == start + 7_200)
    #expect(widgetNetwork.requests.isEmpty)

    await app.close()
    #expect(await self.timeline().entries.count == 2, "also after the app has ended")
  }

  @Test("the image of the widget is decoded from the file in its own size, and not from the photograph")
  func storedSize() async throws {
    await (try await app(1)).close()
    let widget = try SharedPhotos(container: container, url: url, downloader: widgetNetwork)
    let options = RequestOptions { $0.policy = .cacheOnly }
    let image = try await widget.manager.load(photo(0).image, as: SharedPhotos.widgetImage, options: options)
    #expect(image.valueOrigin == .disk && image.isStale)
    await widget.close()
  }

  @Test("a timeline has at most four images")
  func length() async throws {
    let app = try await app(6)
    #expect(await timeline().entries.map(\.title) == (0..<4).map { "photo \($0)" })
    await app.close()
  }

  @Test("a photo whose image is missing is left out, and the first image is shown at once")
  func missing() async throws {
    let app = try await app(2)
    try await app.manager.remove(photo(0).image)
    var timeline = await timeline()
    #expect(timeline.entries.map(\.title) == ["photo 1"])
    #expect(timeline.entries.map(\.date) == [start])

    try await app.manager.remove(photo(1).image)
    timeline = await self.timeline()
    #expect(timeline.entries.map(\.title) == ["photo 0"])
    #expect(timeline.entries.first?.image == nil && timeline.end == start + 900)
    await app.close()
  }

  @Test("an empty folder, or one that cannot be opened, gives the placeholder and a later try", arguments: [true, false])
  func placeholder(isReadable: Bool) async throws {
    let timeline =
      isReadable
      ? await timeline() : await .make(from: start) { () throws(CacheError) in throw CacheError(.fileSystem, reason: "locked") }
    #expect(timeline.entries.count == 1)
    #expect(timeline.entries.first?.title == nil && timeline.entries.first?.image == nil)
    #expect(timeline.end == start + 900)
    #expect(widgetNetwork.requests.isEmpty)
  }
}
