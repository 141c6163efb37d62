#if Tool
import ArgumentParser
import Etagere
import Foundation

/// `etagere prefetch FILE|-`
struct PrefetchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "prefetch",
    abstract: "Brings a list of URLs into the cache, skipping what it can answer already.",
    discussion: "The list has one URL a line; empty lines, and lines that begin with #, are passed over.")

  @Argument(help: "The list, or - for standard input.")
  var list: String

  @OptionGroup var requests: LoadRequests
  @OptionGroup var cache: CacheFolder

  private struct Report: Encodable {
    var loaded = 0
    var skipped = 0
    var unconfirmed = 0
    var failed: [LoadReport.Failure] = []
  }

  func run() async throws {
    var report = Report()
    var first: (line: Int, status: ExitStatus)?
    func fail(_ error: CacheError, _ message: String, line: Int) {
      Console.complain(message)
      let status = ExitStatus(error)
      report.failed.append(.init(code: error.code.rawValue, message: message, exitStatus: status.rawValue))
      // Loads end in any order; scripts get the status of what stands first in the list.
      if line < first?.line ?? .max { first = (line, status) }
    }
    let lines = try read()
    let watch = CacheWatch()
    let manager = try cache.manager(watch)
    var wanted: [ResourceRequest] = []
    var positions: [URL: Int] = [:]
    for (line, text) in lines.enumerated() {
      let text = text.trimmingCharacters(in: .whitespaces)
      guard !text.isEmpty, !text.hasPrefix("#") else { continue }
      switch requests.request(text) {
      case .success(let request):
        wanted.append(request)
        positions[request.url] = positions[request.url] ?? line
      case .failure(let error): fail(error, "\(name), line \(line + 1): \(error)", line: line)
      }
    }
    let done = await manager.prefetch(wanted, concurrency: requests.parallel)
    await manager.close()
    report.loaded = done.loaded
    report.skipped = done.skipped
    report.unconfirmed = done.unconfirmed
    for failure in done.failed {
      fail(failure.error, failure.error.description, line: positions[failure.url] ?? .max - 1)
    }
    if cache.json {
      try Console.json(report)
    } else {
      Console.say(
        "\(report.loaded) loaded, \(report.skipped) in the cache already, "
          + (report.unconfirmed > 0 ? "\(report.unconfirmed) in the cache but not confirmed, " : "")
          + "\(report.failed.count) failed")
    }
    if let first { throw ToolFailure(status: first.status) }
    if watch.hasFailed { throw ToolFailure(status: .cacheUnusable) }
  }

  private var name: String { list == "-" ? "standard input" : list }

  private func read() throws -> [String] {
    let data: Data
    do {
      data = list == "-" ? try FileHandle.standardInput.readToEnd() ?? Data() : try Data(contentsOf: URL(filePath: list))
    } catch {
      Console.complain("\(name): the list can't be read: \(FileReason(error))")
      throw ToolFailure(status: .cannotReadFile)
    }
    return String(decoding: data, as: UTF8.self).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map(
      String.init)
  }
}
#endif
