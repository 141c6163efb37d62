#if Thumbnails
import CacheCore
import CacheTesting
import Etagere
import Foundation
import Testing

@testable import Thumbnails

/// Folders of one test's own: pictures, and what becomes of them.
final class Place: Sendable {
  let folder: URL

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(
      path: "etagere-thumbnails-\(Revision.random())", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: pictures, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  var pictures: URL { folder.appending(path: "pictures", directoryHint: .isDirectory) }
  var output: URL { folder.appending(path: "thumbnails", directoryHint: .isDirectory) }

  var settings: ThumbnailSettings {
    ThumbnailSettings(
      output: output, cache: folder.appending(path: "cache", directoryHint: .isDirectory),
      thumbnail: Thumbnail(size: .fit(40, 40), encoder: ImageEncoder(.jpeg)), jobs: 2)
  }

  /// The thumbnails' names, sorted.
  var thumbnails: [String] {
    (FileManager.default.subpaths(atPath: output.path) ?? []).filter { $0.hasSuffix(".jpg") }.sorted()
  }

  /// When each of them was written, and under which number.
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
    let file = pictures.appending(path: name)
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

  func list() throws -> [Picture] {
    var list = PictureList(except: output)
    try list.add(pictures.path)
    return list.named("jpg")
  }

  /// As a process of its own would: with a manager of its own, over the same folders.
  func run(_ lines: Lines = Lines()) async -> Summary {
    guard let pictures = try? list() else { return Summary() }
    return await run(pictures, ScriptedDownloader(), lines)
  }

  func run(_ pictures: [Picture], _ network: any Downloader, _ lines: Lines = Lines()) async -> Summary {
    guard let run = try? ThumbnailRun(settings, network: network) else { return Summary() }
    return await run.make(pictures, ProgressReport(total: pictures.count, isTerminal: false) { lines.add($0) })
  }
}

/// What was said, in order.
final class Lines: Sendable {
  private let said = Lock("")

  var text: String { said.withLock { $0 } }

  func add(_ text: String) { said.withLock { $0 += text } }
}
#endif
