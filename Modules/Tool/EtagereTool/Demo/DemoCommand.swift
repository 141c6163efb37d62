#if Demo
import ArgumentParser
import CommandIO
import Etagere
import Foundation
import LoopbackOrigin

/// The command `etagere-cli demo`.
struct DemoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo",
    abstract: "Show what the cache does, on a built-in origin behind a slow link.",
    discussion: """
      Loads 56 small resources and 3 photographs over a simulated link of 2 Mbit/s and 5 ms each way: without a cache, cold, \
      from memory, from disk, stale and unchanged, stale and changed, offline. Checks every count and every byte. \
      Takes about 12 seconds, and needs no network.

      With --images, makes thumbnails of 12 drawn images, revalidates them, replaces those whose original has changed, and \
      writes a contact sheet. On Linux, this needs the trait VIPS.

      Exits with status 70 if a check fails.
      """)

  @Flag(help: "Show what the cache does with images and their thumbnails.")
  var images = false

  @Option(
    help: ArgumentHelp("The contact sheet of --images, a PNG file.", valueName: "file"), completion: .file(),
    transform: Text.path)
  var sheet = "etagere-contact-sheet.png"

  @Option(help: ArgumentHelp("The number of loads at a time in the second table.", valueName: "number"))
  var parallel = 6

  @Option(
    help: ArgumentHelp(
      "Write an HTML page with the times of each load, grouped by pass. Replaces an existing file.", valueName: "file.html"),
    completion: .file(), transform: Text.path)
  var report: String?

  @Option(
    name: .customLong("cache-dir"),
    help: ArgumentHelp(
      "The folder in which the demo creates its own cache folder, and removes it at the end.", valueName: "folder"),
    completion: .directory, transform: Text.path)
  var cacheFolder: String?

  @OptionGroup var reporting: ReportingOptions

  func validate() throws {
    guard (1...64).contains(parallel) else { throw ValidationError("--parallel takes a number from 1 to 64") }
    if images, report != nil { throw ValidationError("--report and --images exclude each other") }
  }

  func run() async throws {
    // The demo empties its cache, so it uses a new folder inside the given one.
    let parent = cacheFolder.map { URL(filePath: $0, directoryHint: .isDirectory) } ?? FileManager.default.temporaryDirectory
    let folder = parent.appending(path: "etagere-demo-\(Revision.random())", directoryHint: .isDirectory)
    defer { try? FileManager.default.removeItem(at: folder) }
    do {
      if images {
        let demo = ImageDemo(folder: folder, sheet: OutputFile(sheet), reporting: reporting)
        let report = try await ProgressBar.during(isShown: reporting.showsProgress, demo.progress) { try await demo.run() }
        try finish(report, report.wrong, "All counts, bytes and pixels are as expected.")
      } else {
        let clock = DemoClock()
        let session = report.map { _ in SessionRecorder(clock: clock) }
        let demo = Demo(folder: folder, parallel: parallel, reporting: reporting, clock: clock, session: session)
        let result = try await ProgressBar.during(isShown: reporting.showsProgress, demo.progress) { try await demo.run() }
        if let report, let session { try SessionPage("etagere-cli demo", await session.finish()).write(to: report) }
        try finish(result, result.wrong, "All counts and bytes are as expected.")
      }
    } catch let error as CacheError {
      Console.complain(error.description)
      throw ToolFailure(status: error.code == .unsupported ? .unavailable : .ioError)
    } catch let error as OriginError {
      Console.complain("cannot start the origin of the demo: \(error)")
      throw ToolFailure(status: .unavailable)
    }
  }

  private func finish(_ report: some Encodable, _ wrong: [String], _ success: String) throws {
    if reporting.json { try Console.json(report) }
    for line in wrong.prefix(20) { Console.complain(line) }
    if wrong.count > 20 { Console.complain("and \(wrong.count - 20) more") }
    guard wrong.isEmpty else { throw ToolFailure(status: .software) }
    reporting.heading("")
    reporting.result(success)
  }
}

/// The resources of the demo's origin. The bodies are the same in every run and cannot be compressed.
struct DemoContent {
  struct Item: Sendable {
    var path: String
    var body: Data
    var version: Int

    var etag: OriginETag { .strong("\(path.dropFirst())-\(version)") }
  }

  /// The lifetime of a fresh response.
  static let lifetime = Duration.seconds(3_600)

  var sprites: [Item]
  var photographs: [Item]

  init() {
    // The sizes of small icons.
    sprites = (0..<56).map { index in
      Item(path: "/sprite-\(index + 1).png", body: Self.bytes(500 + index * 700 / 55, seed: UInt64(index)), version: 1)
    }
    photographs = [60_000, 150_000, 555_000].enumerated().map { index, size in
      Item(path: "/photograph-\(index + 1).jpg", body: Self.bytes(size, seed: UInt64(1_000 + index)), version: 1)
    }
  }

  /// Replaces every small resource by one of the same URL and size with other bytes.
  mutating func change() {
    sprites = sprites.enumerated().map { index, item in
      Item(path: item.path, body: Self.bytes(item.body.count, seed: UInt64(10_000 + index)), version: item.version + 1)
    }
  }

  func publish(on origin: OriginServer) {
    for item in sprites + photographs {
      origin.setRoute(
        item.path,
        Route(
          item.body, contentType: item.path.hasSuffix(".png") ? "image/png" : "image/jpeg", etag: item.etag,
          fields: [.cacheControl: "max-age=\(Int(Self.lifetime / .seconds(1)))"]))
    }
  }

  private static func bytes(_ count: Int, seed: UInt64) -> Data {
    var state = seed &* 0x9e37_79b9_7f4a_7c15 | 1
    return Data(
      (0..<count).map { _ in
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return UInt8(truncatingIfNeeded: state >> 24)
      })
  }
}
#endif
