#if Tool
import ArgumentParser
import CommandIO
import Etagere
import Foundation

/// The command `etagere-cli inspect FILE|URL`.
struct InspectCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect",
    abstract: "Show the properties of an image, and what is cached of it.",
    discussion: """
      Reads format, size, frames, orientation and color from the header of the file, without decoding the image. A URL is loaded \
      through the cache. Its entity tag and its cached entries are shown too.

      Exits with status 65 if the bytes are not an image. The length and the cached entries are printed all the same.
      """)

  @Argument(
    help: ArgumentHelp("A file, or a URL (http, https, file or data).", valueName: "file-or-URL"), completion: .file(),
    transform: Text.path)
  var target: String

  @OptionGroup(title: "Load options") var requests: LoadOptions
  @OptionGroup var cache: CacheOptions
  @OptionGroup var reporting: ReportingOptions

  func run() async throws {
    let isURL = target.contains("://") || target.hasPrefix("data:") || target.hasPrefix("file:")
    let watch = CacheWatch()
    let manager = isURL ? try cache.manager(reporting, watch) : nil
    let name = isURL ? UserInformation.removed(fromURL: target) : target
    var report = InspectReport(target: name)
    var status: ExitStatus?
    do throws(CacheError) {
      let data = if let manager { try await load(by: manager, &report) } else { try read() }
      report.bytes = data.count
      report.image = ImageReport(data)
      report.image = ImageReport(try ImageHeader(of: data))
    } catch {
      status = ExitStatus(error)
      let message = error.url == nil && error.path == nil ? "\(name): \(error)" : "\(error)"
      report.error = .init(error, message: message, ExitStatus(error))
      Console.complain(message)
    }
    if let manager { await reporting.close(manager) }
    if reporting.json { try Console.json(report) } else { report.lines.forEach { Console.say($0) } }
    if let status { throw ToolFailure(status: status) }
    if watch.hasFailed { throw ToolFailure(status: .ioError) }
  }

  private func read() throws(CacheError) -> Data {
    do throws(CacheError) {
      return try InputFile(target).read(limit: ImageLimits.standard.bytes)
    } catch {
      var error = error
      error.reason = "cannot read the file: \(error.reason)"
      throw error
    }
  }

  private func load(by manager: ResourceManager, _ report: inout InspectReport) async throws(CacheError) -> Data {
    let request = try requests.request(target).get()
    let resource = try await manager.load(request)
    report.take(resource)
    report.cached = try await cached(resource.key.resource, manager.configuration.store)
    return resource.data
  }

  private func cached(_ resource: String, _ store: (any CacheStore)?) async throws(CacheError) -> [InspectReport.Cached] {
    guard let store else { return [] }
    let originals = try await store.variants(of: resource).map { ListedEntry(key: $0.key, metadata: $0.metadata) }
    let transforms = try await store.transforms(of: resource).sorted { $0.key.transform < $1.key.transform }
    let now = SystemClock().now
    var cached: [InspectReport.Cached] = []
    for entry in originals + transforms { cached.append(.init(await EntryDescription(entry, readingFrom: store, at: now))) }
    return cached
  }
}
#endif
