// An app and its widget on one folder. The network is scripted, and both are in this process, each with a manager of its own.
// `swift run --package-path Examples/PhotoWidget PhotoWidget`
import CacheTesting
import CacheUI
import Foundation

/// Draws a photograph of one color.
func photograph(_ shade: UInt8) throws -> Data {
  let pixels = PixelBuffer(size: PixelSize(1_200, 900), channels: .rgb) { for index in $0.indices { $0[index] = shade } }
  guard let pixels else { throw CacheError(.imageLimitExceeded, reason: "no memory for a photograph") }
  return try ImageEncoder.jpeg.encode(DecodedImage(pixels))
}

func show(_ timeline: PhotoTimeline) {
  for entry in timeline.entries {
    let image = entry.image.map { "\($0.size) pixels" } ?? "the placeholder"
    print("  after \(Int(entry.date.timeIntervalSince(start) / 60)) minutes: \(entry.title ?? "no title"), \(image)")
  }
  print("  the next timeline after \(Int(timeline.end.timeIntervalSince(start) / 60)) minutes")
}

let start = Date.now
let container = FileManager.default.temporaryDirectory.appending(path: "PhotoWidget-\(UUID())", directoryHint: .isDirectory)
defer { try? FileManager.default.removeItem(at: container) }

do {
  guard let url = URL(string: "https://api.example.com/photos.json") else { exit(70) }  // EX_SOFTWARE
  let network = ScriptedDownloader()
  let photos = ["Dawn", "Noon"].enumerated().map { id, title in
    Photo(id: id, title: title, image: url.deletingLastPathComponent().appending(path: "\(id).jpg"))
  }
  network.respond(to: url, with: .ok(try JSONEncoder().encode(photos), etag: "\"1\"", cacheControl: "max-age=60"))
  for photo in photos {
    network.respond(to: photo.image, with: .ok(try photograph(UInt8(80 * (photo.id + 1))), cacheControl: "max-age=86400"))
  }

  // The widget has no network. In an app, both use `SharedPhotos.open`.
  let openWidget: @Sendable () throws(CacheError) -> SharedPhotos = { () throws(CacheError) in
    try SharedPhotos(container: container, url: url, downloader: ScriptedDownloader())
  }

  print("The widget is added before the app has loaded")
  show(await .make(from: start, opening: openWidget))

  print("The app loads, and reloads the widget")
  let app = try SharedPhotos(container: container, url: url, downloader: network)
  print("  \(try await app.update().count) photos")
  show(await .make(from: start, opening: openWidget))
  await app.close()
  try network.verify()
} catch {
  try? FileHandle.standardError.write(contentsOf: Data("failed: \(error)\n".utf8))
  exit(1)
}
