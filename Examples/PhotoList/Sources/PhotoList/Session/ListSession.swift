import CacheUI
import Foundation
import Observation

/// The state of the app: the views that load the images, and the results of the passes.
///
/// A pass begins with a reload and ends with the next one. Each appearance of a row is timed separately.
@MainActor @Observable
final class ListSession {
  /// The view that loads the images.
  enum Loader: String, CaseIterable, Identifiable, Sendable {
    case asyncImage = "AsyncImage"
    case cachedImage = "CachedImage"

    var id: Self { self }
  }

  /// The address of the image server, as the user has entered it.
  var address = "http://127.0.0.1:8059/"
  private(set) var loader = Loader.asyncImage
  /// The number of the pass. A list with another number has new views.
  private(set) var generation = 0
  /// The results of the passes that have ended.
  private(set) var results: [PassResult] = []
  /// The result of the current pass. It changes only when no row is loading, so that the measurement draws nothing.
  private(set) var current: PassResult?
  /// The reason why the server did not give its counts or did not change.
  private(set) var problem: String?

  /// The manager of the `CachedImage` views.
  @ObservationIgnored let manager: ResourceManager
  @ObservationIgnored private let connection: ServerConnection
  @ObservationIgnored private let clock: any CacheClock
  @ObservationIgnored private let signposts = RowSignposts()
  @ObservationIgnored private var times = RowTimes()
  @ObservationIgnored private var names = PassNames()
  @ObservationIgnored private var countsAtStart: ServerCounts?

  init(manager: ResourceManager, connection: ServerConnection = ServerConnection(), clock: any CacheClock = SystemClock()) {
    self.manager = manager
    self.connection = connection
    self.clock = clock
  }

  /// The address of a row's image, or `nil` if no server was entered.
  func url(of row: ListRow) -> URL? { server?.appending(path: row.path) }

  private var server: URL? { (try? ResourceRequest(address))?.url }

  /// The results of all passes as text.
  var table: String { ResultTable.text(results + (current.map { [$0] } ?? [])) }

  // MARK: Passes

  /// Ends the current pass, and begins another one with new views.
  func reload(with loader: Loader) async {
    await finish()
    self.loader = loader
    generation += 1
    times = RowTimes()
    names.begin(loader.rawValue)
  }

  /// Ends the current pass: its result gets the counts of the server.
  func finish() async {
    let counts = await ask { connection, server throws(CacheError) in try await connection.counts(of: server) }
    if var result = current {
      if let counts, let countsAtStart { result.set(counts - countsAtStart) }
      results.append(result)
      current = nil
    }
    countsAtStart = counts
  }

  /// Changes some of the images on the server.
  func changeServer() async {
    let isChanged: Void? = await ask { connection, server throws(CacheError) in try await connection.change(server) }
    if isChanged != nil { names.serverChanged() }
  }

  /// Removes all responses from the caches of both kinds of views.
  func clearCaches() async {
    #if canImport(Darwin)
    URLCache.shared.removeAllCachedResponses()
    #endif
    do throws(CacheError) {
      try await manager.clear()
      names.cachesCleared()
    } catch {
      problem = error.description
    }
  }

  private func ask<Value>(
    _ request: (ServerConnection, URL) async throws(CacheError) -> Value
  ) async -> Value? {
    guard let server else {
      problem = "'\(address)' is not the address of a server"
      return nil
    }
    do throws(CacheError) {
      let value = try await request(connection, server)
      problem = nil
      return value
    } catch {
      problem = error.description
      return nil
    }
  }

  // MARK: Rows

  // Each report names the pass of its view, because the views of an earlier pass disappear after those of the next one appear.

  /// Records that a row appears. Views inside a row may report their image before that.
  func rowAppeared(_ row: ListRow, in pass: Int) {
    guard pass == generation else { return }
    if times.begin(row.id, at: clock.uptime) { signposts.begin(row) }
  }

  /// Records that a row shows an image. Only the first report is measured.
  func imageAppeared(_ row: ListRow, in pass: Int) {
    guard pass == generation else { return }
    rowAppeared(row, in: pass)
    times.showFirst(row.id, at: clock.uptime)
    signposts.end(row)
  }

  /// Records that the load of a row has ended, with an image or with an error.
  func loadEnded(_ row: ListRow, in pass: Int) {
    guard pass == generation else { return }
    times.end(row.id, at: clock.uptime)
    signposts.end(row)
    update()
  }

  /// Records that a row disappears. A load that has not ended is not measured.
  func rowDisappeared(_ row: ListRow, in pass: Int) {
    guard pass == generation else { return }
    times.remove(row.id)
    signposts.end(row)
    update()
  }

  private func update() {
    guard times.running == 0, times.ended > 0 else { return }
    current = PassResult(names.current, first: times.first, final: times.final)
  }
}
