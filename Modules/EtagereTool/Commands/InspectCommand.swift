#if Tool
import ArgumentParser
import Etagere
import Foundation

/// `etagere inspect FILE|URL`
struct InspectCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect",
    abstract: "Says what a picture is, and what is cached of it.",
    discussion: """
      Format, size, frames, orientation and colours as the file's header has them; no pixels are made. Of a URL, which is loaded through the \
      cache, also the entity tag and each transform that is cached. What is no picture is said on standard error, with status 84; what is known of \
      it is told all the same.
      """)

  @Argument(help: "A file, or a URL (http, https, file, data).")
  var target: String

  @OptionGroup var requests: LoadRequests
  @OptionGroup var cache: CacheFolder

  func run() async throws {
    let isURL = target.contains("://") || target.hasPrefix("data:") || target.hasPrefix("file:")
    let watch = CacheWatch()
    let manager = isURL ? try cache.manager(watch) : nil
    var report = InspectReport(target: target)
    var status: ExitStatus?
    do throws(CacheError) {
      let data = if let manager { try await load(by: manager, &report) } else { try read() }
      report.bytes = data.count
      report.image = ImageReport(data)
      report.image = ImageReport(try ImageHeader(of: data))
    } catch {
      status = ExitStatus(error)
      let message = error.url == nil && error.path == nil ? "\(target): \(error)" : "\(error)"
      report.error = .init(code: error.code.rawValue, message: message, exitStatus: ExitStatus(error).rawValue)
      Console.complain(message)
    }
    await manager?.close()
    if cache.json { try Console.json(report) } else { report.lines.forEach { Console.say($0) } }
    if let status { throw ToolFailure(status: status) }
    if watch.hasFailed { throw ToolFailure(status: .cacheUnusable) }
  }

  private func read() throws(CacheError) -> Data {
    do {
      return try Data(contentsOf: URL(filePath: target), options: .mappedIfSafe)
    } catch {
      throw CacheError(.fileSystem, reason: "can't be read: \(FileReason(error))", path: target, underlying: error)
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
    return (originals + transforms).map { InspectReport.Cached($0, at: now) }
  }
}
#endif
