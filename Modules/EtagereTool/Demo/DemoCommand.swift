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
      """)

  @Option(help: "How many loads run at the same time in the second round; in the first it is one.")
  var parallel = 6

  @Flag(help: "Print one JSON document.")
  var json = false

  @Option(name: .customLong("cache-dir"), help: "Where to make the demo's own cache folder, which is removed at the end.")
  var cacheFolder: String?

  func validate() throws {
    guard (1...64).contains(parallel) else { throw ValidationError("--parallel takes a number from 1 to 64") }
  }

  func run() async throws {
    // A folder of its own: the demo empties its cache, and what is in the given folder may be somebody's.
    let parent = cacheFolder.map { URL(filePath: $0, directoryHint: .isDirectory) } ?? FileManager.default.temporaryDirectory
    let folder = parent.appending(path: "etagere-demo-\(Revision.mint())", directoryHint: .isDirectory)
    defer { try? FileManager.default.removeItem(at: folder) }
    let report: DemoReport
    do {
      report = try await Demo(folder: folder, parallel: parallel) { if !json { Console.say($0) } }.run()
    } catch let error as CacheError {
      Console.complain(error.description)
      throw ToolFailure(status: .cacheUnusable)
    } catch let error as OriginError {
      Console.complain("the demo's origin can't be started: \(error)")
      throw ToolFailure(status: .demoFailed)
    }
    if json { try Console.json(report) }
    for line in report.wrong.prefix(20) { Console.complain(line) }
    if report.wrong.count > 20 { Console.complain("and \(report.wrong.count - 20) more") }
    guard report.wrong.isEmpty else { throw ToolFailure(status: .demoFailed) }
    if !json { Console.say("\nEvery count, every byte and every content is as it must be.") }
  }
}
#endif
