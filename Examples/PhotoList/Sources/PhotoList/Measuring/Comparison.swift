import CacheUI
import Foundation
import LoopbackOrigin

/// The passes over the list, without a cache and with one, against a server in this process.
@MainActor
final class Comparison {
  /// The report of all passes.
  struct Report: Encodable, Sendable {
    var passes: [PassResult] = []
    /// A sentence for each count and each image that differs from the expected one.
    var differences: [String] = []
  }

  /// The time for which a response is fresh.
  private static let lifetime = Duration.seconds(3_600)

  private let folder: URL
  private let link: NetworkLink?
  private let say: (String) -> Void
  private let server: ImageServer
  private let clock: ShiftedClock
  private var report = Report()
  /// The pixels that each row must show at the end of a pass.
  private var expectedPixels: [Data] = []

  /// Runs all passes.
  ///
  /// - Parameters:
  ///   - content: The images.
  ///   - folder: A folder for the cache. It must not be used for anything else.
  ///   - link: The link to the server, or `nil` for an unlimited one.
  ///   - say: Called with each line of the table as soon as it is known.
  /// - Throws: `OriginError` if the server does not start, `CacheError` if the folder cannot be used.
  static func run(
    _ content: ListContent, folder: URL, link: NetworkLink?, say: @escaping (String) -> Void
  ) async throws -> Report {
    let clock = ShiftedClock()
    let server = try await ImageServer.start(content, lifetime: lifetime, link: nil, clock: clock)
    let comparison = Comparison(folder, link, server, clock, say)
    do {
      try await comparison.warmUp()
      await server.setLink(link)
      try await comparison.passes()
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
    return comparison.report
  }

  private init(
    _ folder: URL, _ link: NetworkLink?, _ server: ImageServer, _ clock: ShiftedClock, _ say: @escaping (String) -> Void
  ) {
    (self.folder, self.link, self.server, self.clock, self.say) = (folder, link, server, clock, say)
  }

  // MARK: Managers

  /// Returns a manager that loads and decodes each image again whenever it appears.
  private func managerWithoutCache() -> ResourceManager {
    var configuration = ResourceManager.Configuration()
    configuration.downloader = SessionDownloader()
    configuration.clock = clock
    configuration.executor = ProcessingExecutor()
    configuration.policy = .reload
    return ResourceManager(configuration)
  }

  private func cachingManager() throws -> ResourceManager {
    var configuration = try ResourceManager.Configuration.standard(folder: folder, downloader: SessionDownloader(), clock: clock)
    // Each image is on disk when its load has ended, and is found there, even if the disk is slow.
    (configuration.storeReadTimeout, configuration.storeWriteTimeout) = (nil, nil)
    return ResourceManager(configuration)
  }

  /// Runs one pass over an unlimited link, so that the measured passes do not include the first use of libraries and threads.
  private func warmUp() async throws {
    _ = await ListPass.run(urls, with: managerWithoutCache(), clock: clock)
    let manager = try cachingManager()
    _ = await ListPass.run(urls, with: manager, clock: clock)
    try await manager.clear()
    await manager.close()
  }

  private var urls: [URL] { ListRow.all.map { server.url.appending(path: $0.path) } }

  // MARK: Passes

  private func passes() async throws {
    let count = ListRow.all.count
    let all = ServerCounts(requests: count, bodyBytes: server.content.byteCount)
    try decodeExpectedPixels()
    say(ResultTable.header)

    let uncached = managerWithoutCache()
    await pass("no cache", uncached, PassExpectation(counts: all, updates: { _ in 1 }))
    await pass("no cache, again", uncached, PassExpectation(counts: all, updates: { _ in 1 }))
    await uncached.close()

    let first = try cachingManager()
    await pass("cold", first, PassExpectation(counts: all, updates: { _ in 1 }))
    await pass("from memory", first, PassExpectation(isInFirstFrame: true))
    await first.close()
    let second = try cachingManager()
    await pass("from disk, new manager", second, PassExpectation(updates: { _ in 1 }))

    advanceBeyondLifetime()
    await pass(
      "stale, unchanged", second,
      PassExpectation(
        counts: ServerCounts(requests: count, notModified: count), isInFirstFrame: true, validation: { _ in .notModified }))

    advanceBeyondLifetime()
    server.change()
    try decodeExpectedPixels()
    let changed = zip(ListRow.all, server.content.files).filter(\.0.changes)
    let bytes = changed.reduce(0) { $0 + $1.1.bytes.count }
    await pass(
      "stale, \(changed.count) changed", second,
      PassExpectation(
        counts: ServerCounts(requests: count, notModified: count - changed.count, bodyBytes: bytes), isInFirstFrame: true,
        updates: { $0.changes ? 1 : 0 }, validation: { $0.changes ? .modified : .notModified }))

    advanceBeyondLifetime()
    await server.setLink(.offline)
    await pass("stale, offline", second, PassExpectation(isInFirstFrame: true, validation: { _ in .failed }))
    await server.setLink(link)
    await second.close()
  }

  private func advanceBeyondLifetime() { clock.advance(by: Self.lifetime + .seconds(1)) }

  private func pass(_ name: String, _ manager: ResourceManager, _ expectation: PassExpectation) async {
    let before = server.counts
    let pass = await ListPass.run(urls, with: manager, clock: clock)
    var result = pass.result(name)
    result.set(server.counts - before)
    report.passes.append(result)
    report.differences += expectation.differences(from: result, of: pass)
    for (row, (measured, pixels)) in zip(ListRow.all, zip(pass.rows, expectedPixels)) {
      let shown = measured.model.image.map { $0.withUnsafeBytes { Data($0) } }
      if shown != pixels { report.differences.append("\(name): \(row.path) shows other pixels than those of the server's image") }
    }
    say(ResultTable.line(result))
  }

  private func decodeExpectedPixels() throws {
    expectedPixels = try server.content.files.map { file in
      try DisplayImage(try ImageDecoder().decode(file.bytes)).withUnsafeBytes { Data($0) }
    }
  }
}
