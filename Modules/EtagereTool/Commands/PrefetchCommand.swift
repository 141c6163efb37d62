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
    var failed: [LoadReport.Failure] = []
  }

  func run() async throws {
    var report = Report()
    var first: ExitStatus?
    func fail(_ error: CacheError, _ line: String) {
      Console.complain(line)
      report.failed.append(.init(code: error.code.rawValue, message: line, exitStatus: ExitStatus(error).rawValue))
      first = first ?? ExitStatus(error)
    }
    let lines = try read()
    let manager = try cache.manager()
    var wanted: [ResourceRequest] = []
    for (number, line) in lines.enumerated() {
      let text = line.trimmingCharacters(in: .whitespaces)
      guard !text.isEmpty, !text.hasPrefix("#") else { continue }
      switch requests.request(text) {
      case .success(let request): wanted.append(request)
      case .failure(let error): fail(error, "\(list), line \(number + 1): \(error)")
      }
    }
    let done = await manager.prefetch(wanted, concurrency: requests.parallel)
    await manager.close()
    report.loaded = done.loaded
    report.skipped = done.skipped
    for failure in done.failed { fail(failure.error, failure.error.description) }
    if cache.json {
      try Console.json(report)
    } else {
      Console.say("\(report.loaded) loaded, \(report.skipped) in the cache already, \(report.failed.count) failed")
    }
    if let first { throw ToolFailure(status: first) }
  }

  private func read() throws -> [String] {
    let data: Data
    if list == "-" {
      data = (try? FileHandle.standardInput.readToEnd()) ?? Data()
    } else {
      do {
        data = try Data(contentsOf: URL(filePath: list))
      } catch {
        Console.complain("\(list): the list can't be read")
        throw ToolFailure(status: .cannotReadFile)
      }
    }
    return String(decoding: data, as: UTF8.self).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map(
      String.init)
  }
}
#endif
