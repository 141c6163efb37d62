#if canImport(ImageIO) || VIPS
import CacheTesting
import CacheUI
import Foundation
import Testing

@MainActor
@Suite("Image prefetching")
struct ImagePrefetcherTests {
  private let fixture: ImageFixture
  private let rows: [URL?]

  init() throws {
    let fixture = try ImageFixture()
    self.fixture = fixture
    rows = try (0..<100).map { try fixture.url("\($0)") }
  }

  private func serve(_ response: ScriptedResponse = .image(ImageFile.red)) {
    for url in rows { if let url { fixture.network.serve(url) { _ in response } } }
  }

  private var requested: Set<Int> {
    Set(rows.indices.filter { row in rows[row].map { !fixture.network.requests(for: $0).isEmpty } ?? false })
  }

  @Test("a model finds prefetched, processed images in memory")
  func prefetched() async throws {
    serve()
    let prefetcher = ImagePrefetcher(.resize(.fit(2, 2)), scale: 2, manager: fixture.manager)
    prefetcher.prefetch(rows.compactMap { $0 })
    try await Polling.until { @MainActor in fixture.network.requests.count == 100 }
    await fixture.manager.close()
    let other = try ImageFixture { $0.memory = fixture.memory }
    other.model.load(rows[99], .resize(.fit(2, 2)), scale: 2)
    #expect(other.states == ["loaded red"] && other.model.image?.size == PixelSize(2, 2))
  }

  @Test("the rows ahead in the scroll direction are prefetched")
  func ahead() async throws {
    serve()
    let prefetcher = ImagePrefetcher(distance: 3, manager: fixture.manager)
    prefetcher.rowAppeared(50, of: rows)
    try await Polling.until { @MainActor in requested == [51, 52, 53] }
    prefetcher.rowAppeared(51, of: rows)
    try await Polling.until { @MainActor in requested == [51, 52, 53, 54] }
    prefetcher.rowAppeared(50, of: rows)
    try await Polling.until { @MainActor in requested == [47, 48, 49, 51, 52, 53, 54] }
    #expect(fixture.network.requests.count == 7)
  }

  @Test("any distance means at most all rows")
  func farAhead() async throws {
    serve()
    let prefetcher = ImagePrefetcher(distance: .max, manager: fixture.manager)
    prefetcher.rowAppeared(rows.count - 3, of: rows)
    try await Polling.until { @MainActor in requested == [rows.count - 2, rows.count - 1] }
  }

  @Test("prefetches of rows far behind are cancelled")
  func behind() async throws {
    let gate = Gate()
    serve(.image(ImageFile.red).held(by: gate))
    let prefetcher = ImagePrefetcher(distance: 3, concurrency: 2, manager: fixture.manager)
    prefetcher.rowAppeared(0, of: rows)
    await gate.arrived(2)
    prefetcher.rowAppeared(90, of: rows)
    await gate.arrived(4)
    gate.open()
    try await Polling.until { @MainActor in requested.isSuperset(of: [91, 92, 93]) }
    #expect(requested == [1, 2, 91, 92, 93])
  }

  @Test("prefetches of one URL with other fields or another key are cancelled one by one")
  func cancelByRequest() async throws {
    let gate = Gate()
    serve(.image(ImageFile.red).held(by: gate))
    let url = try #require(rows[0])
    let requests = (0..<3).map { number in
      ResourceRequest(url, headerFields: [.acceptLanguage: "\(number)"], options: RequestOptions { $0.key = "\(number)" })
    }
    let prefetcher = ImagePrefetcher(concurrency: 1, manager: fixture.manager)
    prefetcher.prefetch(requests)
    prefetcher.prefetch([url])
    await gate.arrived()
    prefetcher.cancel([requests[0], requests[2]])
    await gate.arrived(2)
    prefetcher.cancel([url])
    gate.open()
    await fixture.manager.close()
    #expect(fixture.network.requests.map { $0.headerFields[.acceptLanguage] } == ["0", "1"])
  }

  @Test("a row whose URL is signed again is prefetched once, and cancelled by the new URL")
  func signedAgain() async throws {
    let gate = Gate()
    let fixture = try ImageFixture { $0.cacheKey = { $0.path?.split(separator: "?").first.map(String.init) } }
    func signed(_ signature: Int) -> [URL?] {
      (0..<100).map { URL(string: "https://example.com/\($0).png?signature=\(signature)") }
    }
    for url in signed(1) + signed(2) {
      if let url { fixture.network.serve(url) { _ in .image(ImageFile.red).held(by: gate) } }
    }
    let prefetcher = ImagePrefetcher(distance: 2, concurrency: 1, manager: fixture.manager)
    prefetcher.rowAppeared(0, of: signed(1))
    await gate.arrived()
    prefetcher.rowAppeared(0, of: signed(2))
    prefetcher.rowAppeared(90, of: signed(2))
    await gate.arrived(2)
    gate.open()
    try await Polling.until { @MainActor in fixture.network.requests.count == 3 }
    let paths = ["/1.png?signature=1", "/91.png?signature=2", "/92.png?signature=2"]
    #expect(fixture.network.requests.map(\.path) == paths)
  }

  @Test("a row that the closure of another row reports leaves no prefetch behind")
  func reentrance() async throws {
    let gate = Gate()
    serve(.image(ImageFile.red).held(by: gate))
    let prefetcher = ImagePrefetcher(distance: 3, concurrency: 1, manager: fixture.manager)
    prefetcher.rowAppeared(0, of: rows.count) { row in
      if row == 3 { prefetcher.rowAppeared(50, of: rows) }
      return rows[row].map { ResourceRequest($0) }
    }
    await gate.arrived()
    prefetcher.rowAppeared(90, of: rows)
    gate.open()
    try await Polling.until { @MainActor in requested.isSuperset(of: [91, 92, 93]) }
    #expect(requested.isDisjoint(with: [2, 3, 52, 53]))
  }

  @Test("rows without an image are skipped, and prefetching stops at both ends of the list")
  func ends() async throws {
    serve()
    let prefetcher = ImagePrefetcher(distance: 5, manager: fixture.manager)
    var some = rows
    some[98] = nil
    prefetcher.rowAppeared(96, of: some)
    try await Polling.until { @MainActor in requested == [97, 99] }
    prefetcher.rowAppeared(0, of: some)
    prefetcher.rowAppeared(0, of: [])
    prefetcher.rowAppeared(200, of: some)
    await fixture.manager.close()
    #expect(requested.isSubset(of: [1, 2, 3, 4, 5, 97, 99]))
  }

  @Test("a prefetch shares its transfer with a model that loads the same image")
  func shared() async throws {
    let gate = Gate()
    serve(.image(ImageFile.red).bodyHeld(by: gate))
    let prefetcher = ImagePrefetcher(manager: fixture.manager)
    let first = try #require(rows[0])
    prefetcher.prefetch([first])
    await gate.arrived()
    fixture.model.load(first)
    gate.open()
    try await fixture.ended()
    #expect(fixture.states.last == "loaded red" && fixture.network.requests.count == 1)
  }
}
#endif
