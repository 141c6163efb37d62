import CacheCore
import CacheTesting
import Etagere
import Foundation
import Testing

@testable import Thumbnails

/// The folders of one test: images, thumbnails and cache.
final class Place: Sendable {
  let folder: URL

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(
      path: "etagere-thumbnails-\(Revision.random())", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: images, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  var images: URL { folder.appending(path: "images", directoryHint: .isDirectory) }
  var output: URL { folder.appending(path: "thumbnails", directoryHint: .isDirectory) }

  var settings: ThumbnailSettings {
    ThumbnailSettings(
      output: output, cache: folder.appending(path: "cache", directoryHint: .isDirectory),
      thumbnail: Thumbnail(size: .fit(40, 40), encoder: ImageEncoder(.jpeg)), jobs: 2,
      waitsForCache: true)
  }

  /// The names of the thumbnails, sorted.
  var thumbnails: [String] {
    (FileManager.default.subpaths(atPath: output.path) ?? []).filter { $0.hasSuffix(".jpg") }.sorted()
  }

  /// The modification time and the inode of each thumbnail.
  var times: [String] {
    get throws {
      try thumbnails.map { name in
        let attributes = try FileManager.default.attributesOfItem(atPath: output.appending(path: name).path)
        return "\(name) \(String(describing: attributes[.modificationDate])) \(String(describing: attributes[.systemFileNumber]))"
      }
    }
  }

  func thumbnail(_ name: String) throws -> Data { try Data(contentsOf: output.appending(path: name)) }

  func write(_ bytes: Data, _ name: String) throws {
    let file = images.appending(path: name)
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try bytes.write(to: file)
  }

  func draw(_ name: String, _ width: Int, _ height: Int, shade: UInt8 = 90) throws {
    try write(Self.png(width, height, shade: shade), name)
  }

  static func png(_ width: Int, _ height: Int, shade: UInt8 = 90) throws -> Data {
    let pixels = try #require(
      PixelBuffer(size: PixelSize(width, height), channels: .rgb) { bytes in
        for index in bytes.indices { bytes[index] = shade &+ UInt8(truncatingIfNeeded: index / 3) }
      })
    return try ImageEncoder(.png).encode(DecodedImage(pixels))
  }

  func list() throws -> [SourceImage] {
    var list = ImageList(except: output)
    try list.add(images.path)
    return list.named("jpg")
  }

  /// Makes thumbnails with a new manager over the same folders, as a new process would.
  func run(_ lines: Lines = Lines()) async -> Summary {
    guard let images = try? list() else { return Summary() }
    return await run(images, ScriptedDownloader(), lines)
  }

  func run(_ images: [SourceImage], _ network: any Downloader, _ lines: Lines = Lines()) async -> Summary {
    guard let run = try? ThumbnailRun(settings, network: network) else { return Summary() }
    return await run.make(images, ProgressReport(total: images.count, isTerminal: false) { lines.add($0) })
  }
}

/// The printed text.
// Proof of `@unchecked Sendable`: the text is used only while the lock is locked.
final class Lines: @unchecked Sendable {
  private let lock = NSLock()
  private var said = ""

  var text: String { lock.withLock { said } }

  func add(_ text: String) { lock.withLock { said += text } }
}
