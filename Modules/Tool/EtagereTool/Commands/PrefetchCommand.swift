#if Tool
import ArgumentParser
import CommandIO
import Etagere
import Foundation

/// The command `etagere-cli prefetch FILE|-`.
struct PrefetchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "prefetch",
    abstract: "Load a list of URLs into the cache.",
    discussion: """
      The list has one URL on each line. Empty lines and lines that begin with # are ignored. Resources that are cached already \
      are not loaded. Prints how many were loaded, cached already, or failed.

      The list is UTF-8, with or without a byte order mark. A line that is not is reported with its number.
      """)

  @Argument(
    help: ArgumentHelp("The list of URLs, or - for standard input.", valueName: "file"), completion: .file(), transform: Text.path
  )
  var list: String

  @OptionGroup(title: "Load options") var requests: LoadOptions
  @OptionGroup var cache: CacheOptions
  @OptionGroup var reporting: ReportingOptions

  private struct Report: Encodable {
    var loaded = 0
    var skipped = 0
    var unconfirmed = 0
    var failed: [LoadReport.Failure] = []
  }

  func run() async throws {
    var report = Report()
    var first: (line: Int, status: ExitStatus)?
    func fail(_ error: CacheError, _ message: String, _ status: ExitStatus, line: Int) {
      Console.complain(message)
      report.failed.append(.init(error, message: message, status))
      // Loads end in any order. The exit status is that of the first failure in the list.
      if line < first?.line ?? .max { first = (line, status) }
    }
    let lines = try read()
    let watch = CacheWatch()
    let manager = try cache.manager(reporting, watch)
    var wanted: [ResourceRequest] = []
    var positions: [URL: Int] = [:]
    for line in lines {
      switch line.text.map(requests.request) ?? .failure(CacheError(.invalidURL, reason: "not UTF-8 text")) {
      case .success(let request):
        wanted.append(request)
        positions[request.url] = positions[request.url] ?? line.number
      // An invalid URL in a list is invalid data, not a wrong command line.
      case .failure(let error): fail(error, "\(name), line \(line.number): \(error)", .dataError, line: line.number)
      }
    }
    let done = await prefetch(wanted, by: manager)
    await reporting.close(manager)
    report.loaded = done.loaded
    report.skipped = done.skipped
    report.unconfirmed = done.unconfirmed
    for failure in done.failed {
      let status = ExitStatus(failure.error)
      fail(
        failure.error, failure.error.description, status == .usage ? .dataError : status,
        line: positions[failure.url] ?? .max - 1)
    }
    if reporting.json {
      try Console.json(report)
    } else {
      Console.say(
        "\(report.loaded) loaded, \(report.skipped) already cached, "
          + (report.unconfirmed > 0 ? "\(report.unconfirmed) cached but not revalidated, " : "")
          + "\(report.failed.count) failed")
    }
    if let first { throw ToolFailure(status: first.status) }
    if watch.hasFailed { throw ToolFailure(status: .ioError) }
  }

  private func prefetch(_ requests: [ResourceRequest], by manager: ResourceManager) async -> PrefetchReport {
    let bar = ProgressBar(total: requests.count, isShown: reporting.showsProgress)
    let prefetcher = manager.prefetcher(concurrency: self.requests.parallel)
    // The list is appended as a whole, so that duplicates are found before the first load starts.
    prefetcher.append(requests)
    if reporting.showsProgress {
      for await progress in prefetcher.updates { bar.update(finished: progress.finished, of: progress.total) }
      bar.clear()
    }
    return await prefetcher.report()
  }

  private var name: String { list == "-" ? "standard input" : list }

  private func read() throws -> [ListLine] {
    do throws(CacheError) {
      let data = list == "-" ? try Descriptor.standardInput.read() : try InputFile(list).read()
      return ListLine.all(in: data)
    } catch {
      Console.complain("cannot read '\(name)': \(error.reason)")
      throw ToolFailure(status: .noInput)
    }
  }
}
#endif
