#if canImport(ImageIO) || VIPS
import CacheCore
import CacheTesting
import CacheUI
import Foundation
import Testing

/// Scrolls a list at 60 rows per second. Twelve rows are visible, each with a model that is reused for the next row.
@MainActor
@Suite("List scrolling")
struct ScrollTests {
  private static let visibleRows = 12
  private static let slots = 6

  /// An origin that records which rows are requested.
  private final class Origin: Downloader {
    struct State {
      /// The rows whose requests the downloader is responding to.
      var running: Set<Int> = []
      /// The visible rows whose response has arrived.
      var loaded: Set<Int> = []
      var visible: Set<Int> = []
      /// The rows that were requested after they had left the screen.
      var late: [Int] = []
      var requests = 0
    }

    let id = ComponentID.unique(Origin.self)
    let state = Lock(State())
    private let network: ScriptedDownloader

    init(_ network: ScriptedDownloader) { self.network = network }

    func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
      let row = request.head.path.flatMap { Int($0.dropFirst().dropLast(4)) } ?? -1
      state.withLock { state in
        state.requests += 1
        state.running.insert(row)
        if !state.visible.contains(row) { state.late.append(row) }
      }
      defer { state.withLock { _ = $0.running.remove(row) } }
      let response = try await network.download(request)
      state.withLock { _ = $0.loaded.insert(row) }
      return response
    }
  }

  @Test(
    "scrolling 10,000 rows requests only visible rows, shows each state once and respects the limit", .timeLimit(.minutes(30)))
  func scroll() async throws {
    let rows = 10_000
    let clock = ManualClock()
    let network = ScriptedDownloader(clock: clock)
    let origin = Origin(network)
    let files = [ImageFile.red, ImageFile.green]
    let memory = MemoryCache(limits: .init(cost: 1 << 20, includesOverhead: true), clock: clock)
    var configuration = try ResourceManager.Configuration.standard(
      folder: nil,
      downloader: origin.limitingConcurrency(
        TransferLimits(total: Self.slots, perHost: Self.slots, newestFirst: true), clock: clock),
      clock: clock)
    configuration.memory = memory
    let manager = ResourceManager(configuration)

    var violations: [String] = []
    var shownImages = 0
    var largest = 0
    let models = (0..<Self.visibleRows).map { _ in ImageModel(manager: manager) }
    var current: [Int?] = models.map { _ in nil }
    var states: [Set<String>] = models.map { _ in [] }
    for (slot, model) in models.enumerated() {
      model.onChange = { [weak model] in
        guard let model, let row = current[slot], model.progress == nil else { return }
        let name: String
        switch model.phase {
        case .loaded(let resource):
          name = "loaded"
          shownImages += 1
          if resource.url.lastPathComponent != "\(row).png" { violations.append("row \(row) shows \(resource.url)") }
          if ImageFixture.color(of: model.image) != ["red", "green"][row % 2] { violations.append("row \(row): wrong image") }
        case .loading: name = "loading"
        case .empty, .stale, .failed: name = "\(model.phase)"
        }
        if !states[slot].insert(name).inserted { violations.append("row \(row): \(name) twice") }
      }
    }

    for row in 0..<rows {
      let url = try #require(URL(string: "https://example.com/\(row).png"))
      // At 120 ms per response, six slots serve 50 rows per second, so some rows leave before their turn.
      network.respond(to: url, with: .image(files[row % 2]).after(.milliseconds(120)))
      let slot = row % Self.visibleRows
      // The system is idle, so only this change can start requests now.
      origin.state.withLock { state in
        state.visible.insert(row)
        if let former = current[slot] {
          state.visible.remove(former)
          state.loaded.remove(former)
        }
      }
      current[slot] = row
      states[slot] = []
      models[slot].load(url)
      try await idle(models, origin, clock)
      largest = max(largest, memory.totalCost)
      clock.advance(by: .milliseconds(1_000) / 60)
      try await idle(models, origin, clock)
    }
    let (requests, late) = origin.state.withLock { ($0.requests, $0.late) }
    #expect(violations.isEmpty, "\(violations.prefix(5))")
    #expect(late.isEmpty, "\(late.prefix(5))")
    #expect(requests < rows && shownImages > rows / 2 && shownImages <= requests, "\(requests), \(shownImages)")
    #expect(largest <= 1 << 20)
  }

  /// Waits until nothing can happen before the clock advances: each loading row is at the origin, or such rows occupy
  /// all slots.
  private func idle(_ models: [ImageModel], _ origin: Origin, _ clock: ManualClock) async throws {
    try await Polling.until { @MainActor in
      let loading = models.filter(\.phase.isLoading).count
      let shown = models.count { $0.phase.resource != nil }
      // A request is at the origin from the start to the end of its sleep.
      return origin.state.withLock { state in
        clock.pendingSleeps == state.running.count && state.loaded.count == shown && state.running.isSubset(of: state.visible)
          && state.running.count == min(Self.slots, loading)
      }
    }
  }
}
#endif
