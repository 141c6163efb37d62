#if Tool
import ArgumentParser
import CommandIO
import Etagere
import Foundation
import LoopbackOrigin

/// The command `etagere demo`.
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
        if let report, let session { try SessionPage("etagere demo", await session.finish()).write(to: report) }
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
#endif
