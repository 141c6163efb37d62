#if Tool
import ArgumentParser
import CommandIO
import Etagere
import Foundation

/// The command `etagere-cli get URL…`.
struct GetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Load resources through the cache.",
    discussion: """
      Prints a line for each resource: where the response came from, HTTP status, body bytes received, time, URL. \
      The URL can be http, https, file or data. If a URL fails, the error is written to standard error, and the other URLs are \
      still loaded.

      With --resize, --format or --quality, the result is an image made from the response. The image is cached beside it.
      """)

  @Argument(help: ArgumentHelp("The URLs to load.", valueName: "URL"))
  var urls: [String]

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(
      "Write the bytes to a file (one URL), into a folder (several URLs), or to standard output (-).", valueName: "file"),
    completion: .file(), transform: Text.path)
  var output: String?

  @Option(
    help: ArgumentHelp(
      "Write an HTML page with the times of each load: a waterfall and a table. Replaces an existing file.",
      valueName: "file.html"), completion: .file(), transform: Text.path)
  var trace: String?

  @OptionGroup(title: "Image options") var images: ImageOutput
  @OptionGroup(title: "Load options") var requests: LoadOptions
  @OptionGroup var cache: CacheOptions
  @OptionGroup var reporting: ReportingOptions

  func validate() throws {
    guard !urls.isEmpty else { throw ValidationError("missing URL") }
    guard writesStandardOutput else { return }
    if urls.count > 1 { throw ValidationError("--output - takes only one URL") }
    if reporting.json { throw ValidationError("--json and --output - exclude each other") }
  }

  private var writesStandardOutput: Bool { OutputTarget.isStandardOutput(output) }

  func run() async throws {
    let target = try OutputTarget(output, count: urls.count)
    let session = trace.map { _ in SessionRecorder() }
    session?.begin("Loads")
    let watch = CacheWatch(next: session?.telemetry)
    let manager = try cache.manager(reporting, watch)
    let bar = ProgressBar(total: urls.count, isShown: reporting.showsProgress)
    let failures = await BoundedLoads(parallel: requests.parallel).run(Array(urls.enumerated())) { index, text in
      let report = await load(index, text, manager, target, bar)
      bar.finish(index)
      show(report)
      return report.error.flatMap { ExitStatus(rawValue: $0.exitStatus) }.map { (index, $0) }
    }
    bar.clear()
    await reporting.close(manager)
    if let trace, let session { try SessionPage("etagere-cli get", await session.finish()).write(to: trace) }
    if let first = failures.compactMap({ $0 }).min(by: { $0.0 < $1.0 }) { throw ToolFailure(status: first.1) }
    if watch.hasFailed { throw ToolFailure(status: .ioError) }
  }

  private func load(
    _ index: Int, _ text: String, _ manager: ResourceManager, _ target: OutputTarget, _ bar: ProgressBar
  ) async -> LoadReport {
    let clock = SystemClock()
    let start = clock.uptime
    let request: ResourceRequest
    do throws(CacheError) {
      request = try requests.request(text).get()
    } catch {
      return LoadReport(UserInformation.removed(fromURL: text), error, took: clock.uptime - start)
    }
    // The bytes of an image are needed in memory, and a stale response is not the last one for a file.
    if let file = target.replaceableFile, !images.isWanted, request.options.policy != .staleWhileRevalidate {
      return await load(index, text, request, manager, into: file, bar)
    }
    var report: LoadReport
    do throws(CacheError) {
      let resource = try await final(of: manager.events(for: request, as: images.transform(output: output)), index, bar)
      report = LoadReport(
        UserInformation.removed(fromURL: text), resource, bytes: resource.data.count, took: clock.uptime - start)
      let format = images.isWanted ? ImageFormat(of: resource.data) : nil
      if images.isWanted { report.image = ImageReport(resource.data) }
      do throws(CacheError) {
        report.file = try target.write(resource.data, index: index, url: resource.url, as: format)
      } catch {
        report.fail(error, writesStandardOutput ? .ioError : .cannotCreate)
      }
    } catch {
      report = LoadReport(UserInformation.removed(fromURL: text), error, took: clock.uptime - start)
    }
    return report
  }

  /// Loads into a file as the bytes arrive, so that a load that was interrupted continues the next time.
  private func load(
    _ index: Int, _ text: String, _ request: ResourceRequest, _ manager: ResourceManager, into file: URL, _ bar: ProgressBar
  ) async -> LoadReport {
    let clock = SystemClock()
    let start = clock.uptime
    let path = file.path(percentEncoded: false)
    do throws(CacheError) {
      let resource = try await final(of: manager.events(for: request, to: file), index, bar)
      let size = (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0
      var report = LoadReport(UserInformation.removed(fromURL: text), resource, bytes: size, took: clock.uptime - start)
      report.file = path
      return report
    } catch {
      var report = LoadReport(UserInformation.removed(fromURL: text), error, took: clock.uptime - start)
      if error.path == path { report.fail(error, .cannotCreate) }
      return report
    }
  }

  /// Returns the result of a load, and shows its progress.
  private func final<Value: Sendable>(
    of events: ResourceEvents<Value>, _ index: Int, _ bar: ProgressBar
  ) async throws(CacheError) -> Resource<Value> {
    var final: Resource<Value>?
    for try await event in events {
      switch event {
      case .progress(let progress): bar.update(index, progress)
      // The stream continues to the final response, which is the one that is current.
      case .stale: break
      case .final(let resource): final = resource
      }
    }
    guard let final else { throw .cancelled }
    return final
  }

  private func show(_ report: LoadReport) {
    if let error = report.error, !error.message.isEmpty { Console.complain(error.message) }
    if reporting.json {
      try? Console.json(report)
    } else if report.error == nil {
      // With --output -, standard output has only the bytes of the resource.
      if writesStandardOutput { reporting.note(report.line) } else { Console.say(report.line) }
    }
  }
}
#endif
