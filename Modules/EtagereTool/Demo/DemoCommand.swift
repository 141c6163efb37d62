#if Tool
import ArgumentParser
import Etagere
import Foundation
import LoopbackOrigin

/// `etagere demo`
struct DemoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo",
    abstract: "Shows the main job on an origin of its own, behind a slow link, and checks what it prints.",
    discussion: """
      56 small resources and 3 photographs behind a link of 2 Mbit/s and 5 ms each way: without a cache, cold, from memory, from disk, stale and \
      unchanged, stale and changed, offline. Ends with status 83 when a count, a byte or a content is not what it must be.

      With --images: 12 drawn pictures, whose thumbnails are made, cached, confirmed by 304s, and dropped when their originals change, and a contact sheet of them.
      """)

  @Flag(help: "Show what becomes of pictures instead.")
  var images = false

  @Option(help: ArgumentHelp("With --images: where the contact sheet goes, a PNG.", valueName: "file"))
  var sheet = "etagere-contact-sheet.png"

  @Option(help: "How many loads run at the same time in the second round; in the first it is one.")
  var parallel = 6

  @Flag(help: "Print one JSON document.")
  var json = false

  @Option(
    help: ArgumentHelp(
      "Write an HTML page with the times of every load, in a group for each pass. An existing file is replaced.",
      valueName: "file.html"), completion: .file())
  var report: String?

  @Option(name: .customLong("cache-dir"), help: "Where to make the demo's own cache folder, which is removed at the end.")
  var cacheFolder: String?

  func validate() throws {
    guard (1...64).contains(parallel) else { throw ValidationError("--parallel takes a number from 1 to 64") }
    if images, report != nil { throw ValidationError("--report shows the loads of the demo without --images") }
  }

  func run() async throws {
    // A folder of its own: the demo empties its cache, and what is in the given folder may be somebody's.
    let parent = cacheFolder.map { URL(filePath: $0, directoryHint: .isDirectory) } ?? FileManager.default.temporaryDirectory
    let folder = parent.appending(path: "etagere-demo-\(Revision.random())", directoryHint: .isDirectory)
    defer { try? FileManager.default.removeItem(at: folder) }
    let say: (String) -> Void = { if !json { Console.say($0) } }
    do {
      if images {
        let report = try await ImageDemo(folder: folder, sheet: URL(filePath: sheet), say: say).run()
        try tell(report, report.wrong, "Every count, every byte and every pixel is as it must be.")
      } else {
        let clock = DemoClock()
        let session = report.map { _ in SessionRecorder(clock: clock) }
        let result = try await Demo(folder: folder, parallel: parallel, clock: clock, session: session, say: say).run()
        if let report, let session { try SessionPage("etagere demo", await session.finish()).write(to: report) }
        try tell(result, result.wrong, "Every count, every byte and every content is as it must be.")
      }
    } catch let error as CacheError {
      Console.complain(error.description)
      throw ToolFailure(status: error.code == .unsupported ? .other : .cacheUnusable)
    } catch let error as OriginError {
      Console.complain("the demo's origin can't be started: \(error)")
      throw ToolFailure(status: .demoFailed)
    }
  }

  private func tell(_ report: some Encodable, _ wrong: [String], _ whenRight: String) throws {
    if json { try Console.json(report) }
    for line in wrong.prefix(20) { Console.complain(line) }
    if wrong.count > 20 { Console.complain("and \(wrong.count - 20) more") }
    guard wrong.isEmpty else { throw ToolFailure(status: .demoFailed) }
    if !json { Console.say("\n\(whenRight)") }
  }
}
#endif
