#if Tool
import ArgumentParser
import Etagere
import Foundation

/// `etagere get URL…`
struct GetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Loads resources through the cache.",
    discussion: """
      Prints a line for each resource: its source, the status, the body bytes that crossed the network, the time, the URL. \
      Takes http, https, file and data URLs. Errors go to standard error, and the remaining URLs are still loaded. \
      With --resize, --format or --quality, loads images that are made of the bytes and cached beside them.
      """)

  @Argument(help: "The URLs to load.")
  var urls: [String]

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: "The destination of the bytes: a file for one URL, a folder for several, - for standard output.")
  var output: String?

  @Option(
    help: ArgumentHelp(
      "Write an HTML page with the times of each load: a waterfall and a table. An existing file is replaced.",
      valueName: "file.html"), completion: .file())
  var trace: String?

  @OptionGroup(title: "Pictures") var images: ImageOutput
  @OptionGroup var requests: LoadRequests
  @OptionGroup var cache: CacheFolder

  func validate() throws {
    guard !urls.isEmpty else { throw ValidationError("get takes at least one URL") }
    if output == "-", urls.count > 1 { throw ValidationError("-o - takes one URL") }
  }

  func run() async throws {
    let target = try OutputTarget(output, count: urls.count)
    let session = trace.map { _ in SessionRecorder() }
    session?.begin("Loads")
    let watch = CacheWatch(next: session?.telemetry)
    let manager = try cache.manager(watch)
    let bar = ProgressBar(total: urls.count)
    let failures = await BoundedLoads(parallel: requests.parallel).run(Array(urls.enumerated())) { index, text in
      let report = await load(index, text, manager, target, bar)
      await bar.finish(index)
      await bar.clear()
      tell(report)
      return report.error.flatMap { ExitStatus(rawValue: $0.exitStatus) }.map { (index, $0) }
    }
    await manager.close()
    if let trace, let session { try SessionPage("etagere get", await session.finish()).write(to: trace) }
    if let first = failures.compactMap({ $0 }).min(by: { $0.0 < $1.0 }) { throw ToolFailure(status: first.1) }
    if watch.hasFailed { throw ToolFailure(status: .cacheUnusable) }
  }

  private func load(
    _ index: Int, _ text: String, _ manager: ResourceManager, _ target: OutputTarget, _ bar: ProgressBar
  ) async -> LoadReport {
    let clock = SystemClock()
    let start = clock.uptime
    var result: Result<Resource<Data>, CacheError> = .failure(.cancelled)
    switch requests.request(text) {
    case .failure(let error): result = .failure(error)
    case .success(let request):
      do throws(CacheError) {
        for try await event in manager.events(for: request, as: images.transform(output: output)) {
          switch event {
          case .progress(let progress): await bar.update(index, progress)
          // The event stream goes on to the final answer: a command waits for what is true now.
          case .stale: break
          case .final(let resource): result = .success(resource)
          }
        }
      } catch {
        result = .failure(error)
      }
    }
    var report = LoadReport(text, result, took: clock.uptime - start)
    guard case .success(let resource) = result else { return report }
    let format = images.isWanted ? ImageFormat(of: resource.data) : nil
    if images.isWanted { report.image = ImageReport(resource.data) }
    do throws(CacheError) {
      report.file = try target.write(resource.data, index: index, url: resource.url, as: format)
    } catch {
      report.fail(error, .cannotWriteOutput)
    }
    return report
  }

  private func tell(_ report: LoadReport) {
    if let error = report.error { Console.complain(error.message) }
    if cache.json, output != "-" {
      try? Console.json(report)
    } else if report.error == nil {
      // Standard output is the resource's own when it was asked for.
      if output == "-" { Console.draw(report.line + "\n") } else { Console.say(report.line) }
    }
  }
}

/// Runs work for each element, a few at a time.
struct BoundedLoads {
  var parallel: Int

  func run<Element: Sendable, Output: Sendable>(
    _ elements: [Element], _ work: @escaping @Sendable (Element) async -> Output
  ) async -> [Output] {
    await withTaskGroup(of: Output.self) { group in
      var waiting = elements.makeIterator()
      for _ in 0..<parallel {
        guard let element = waiting.next() else { break }
        group.addTask { await work(element) }
      }
      var outputs: [Output] = []
      while let output = await group.next() {
        outputs.append(output)
        if let element = waiting.next() { group.addTask { await work(element) } }
      }
      return outputs
    }
  }
}
#endif
