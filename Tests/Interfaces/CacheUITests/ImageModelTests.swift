#if canImport(ImageIO) || VIPS
import CacheTesting
import CacheUI
import Foundation
import HTTPTypes
import Observation
import Testing

@MainActor
@Suite("Image models")
struct ImageModelTests {
  private let fixture: ImageFixture
  private var model: ImageModel { fixture.model }

  init() throws { fixture = try ImageFixture() }

  // MARK: Showing

  @Test("an image in memory is shown before load returns, with one update")
  func memoryHit() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    model.load(fixture.url)
    #expect(fixture.states == ["loaded red"])
    #expect(fixture.network.requests.count == 1)
  }

  @Test("an image in memory is shown before the first load, which does not look it up again", arguments: [false, true])
  func prepared(isSized: Bool) async throws {
    // Given
    let observer = RecordingObserver()
    let options = RequestOptions { $0.observer = .use(observer) }
    let size = PixelSize(2, 2)
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red))
    _ = try await fixture.manager.load(fixture.url, as: .displayImage(isSized ? .resize(.fill(2, 2)) : .none))

    // When
    for _ in 0..<3 {
      if isSized {
        model.prepare(fixture.url, covering: size, scale: 1, options: options)
      } else {
        model.prepare(fixture.url, scale: 1, options: options)
      }
    }
    #expect(fixture.states == ["loaded red"])

    // Then the second load looks it up
    for lookups in 1...2 {
      if isSized {
        model.load(fixture.url, covering: size, scale: 1, options: options)
      } else {
        model.load(fixture.url, options: options)
      }
      #expect(fixture.states == ["loaded red"])
      #expect(observer.events.count == lookups, "\(observer.events)")
    }
  }

  @Test("a stale image is shown before the first load, which revalidates it")
  func preparedStale() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red, etag: "\"1\""))
    fixture.clock.advance(by: .seconds(61))
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.green, etag: "\"2\""))
    model.prepare(fixture.url, scale: 1, options: RequestOptions())
    #expect(fixture.states == ["stale red"])
    #expect(fixture.network.requests.count == 1)
    model.load(fixture.url)
    try await fixture.ended()
    #expect(fixture.states == ["stale red", "loaded green"])
  }

  @Test("an image that became stale between the first evaluation of a view and its load is revalidated")
  func preparedEarly() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red, etag: "\"1\""))
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.green, etag: "\"2\""))
    model.prepare(fixture.url, scale: 1, options: RequestOptions())
    #expect(fixture.states == ["loaded red"])
    fixture.clock.advance(by: .seconds(61))
    model.load(fixture.url)
    try await fixture.ended()
    #expect(fixture.network.requests.count == 2)
    #expect(fixture.states.last == "loaded green")
  }

  @Test("a model that has loaded is not prepared, because its view was evaluated before")
  func preparedLate() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    model.load(nil)
    model.prepare(fixture.url, scale: 1, options: RequestOptions())
    #expect(model.image == nil)
  }

  @Test("an image that is not in memory, or another one, is loaded after its view was prepared")
  func preparedInVain() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    let other = try fixture.url("other")
    fixture.network.respond(to: other, with: .image(ImageFile.green))
    model.prepare(other, scale: 1, options: RequestOptions())
    #expect(fixture.states.isEmpty && model.image == nil)
    model.prepare(fixture.url, scale: 1, options: RequestOptions())
    #expect(fixture.states == ["loaded red"])
    model.load(other)
    try await fixture.ended()
    #expect(fixture.states == ["loaded red", "loading -", "loaded green"])
  }

  @Test("the phase changes from loading to loaded")
  func miss() async throws {
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red))
    model.load(fixture.url)
    #expect(fixture.states == ["loading -"])
    try await fixture.ended()
    #expect(fixture.states.last == "loaded red" && fixture.states.filter { $0 == "loaded red" }.count == 1)
    #expect(model.phase.resource?.source == .network && model.progress == nil)
  }

  @Test("a stale image is shown immediately and does not change after a 304")
  func confirmed() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red, etag: "\"1\""))
    fixture.network.respond(to: fixture.url, with: .notModified(cacheControl: "max-age=60"))
    fixture.clock.advance(by: .seconds(61))
    model.load(fixture.url)
    let first = model.image
    #expect(fixture.states == ["stale red"])
    // The properties that the SwiftUI view reads.
    let updates = Updates { _ = (model.image, model.shown) }
    try await fixture.ended()
    #expect(fixture.states == ["stale red", "loaded red"])
    #expect(model.phase.resource?.validation == .notModified)
    #expect(updates.count == 0 && model.image?.isSame(as: first) == true)
  }

  @Test("a stale image is replaced if the origin has another one")
  func replaced() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red, etag: "\"1\""))
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.green, etag: "\"2\""))
    fixture.clock.advance(by: .seconds(61))
    model.load(fixture.url)
    try await fixture.ended()
    #expect(fixture.states.first == "stale red" && fixture.states.last == "loaded green")
    #expect(Set(fixture.states) == ["stale red", "loaded green"])
  }

  @Test("a stale image from disk is shown while it is revalidated")
  func staleOnDisk() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red, etag: "\"1\""))
    fixture.network.respond(to: fixture.url, with: .notModified(cacheControl: "max-age=60"))
    fixture.clock.advance(by: .seconds(61))
    fixture.memory.removeAll()
    model.load(fixture.url)
    try await fixture.ended()
    #expect(fixture.states == ["loading -", "stale red", "loaded red"])
  }

  @Test("a stale image that must be revalidated is never shown")
  func mustRevalidate() async throws {
    try await fixture.cache(fixture.url, .ok(ImageFile.red, etag: "\"1\"", cacheControl: "max-age=60, must-revalidate"))
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.green, etag: "\"2\""))
    fixture.clock.advance(by: .seconds(61))
    model.load(fixture.url)
    try await fixture.ended()
    #expect(fixture.states.first == "loading -" && Set(fixture.states) == ["loading -", "loaded green"])
  }

  @Test("the policy of the options is used, and otherwise that of the manager unless it is the default")
  func policies() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red, etag: "\"1\""))
    fixture.clock.advance(by: .seconds(61))
    model.load(fixture.url, options: RequestOptions { $0.policy = .cacheOnly })
    #expect(fixture.states == ["loaded red"])

    let other = try ImageFixture { $0.policy = .cacheFirst }
    try await other.cache(other.url, .image(ImageFile.red, etag: "\"1\""))
    other.clock.advance(by: .seconds(61))
    other.model.load(other.url)
    #expect(other.states == ["loaded red"] && other.network.requests.count == 1)
  }

  @Test("progress is reported while bytes arrive, and does not update a view that reads only the image")
  func progress() async throws {
    let gate = Gate()
    let file = ImageFile.png(RGBA(255, 0, 0), width: 64, height: 64)
    fixture.network.respond(to: fixture.url, with: .image(file).chunked(by: 50).bodyHeld(by: gate))
    model.load(fixture.url)
    let updates = Updates { _ = model.image }
    gate.letThrough(1)
    try await Polling.until { @MainActor in model.progress != nil }
    #expect(model.progress == LoadProgress(received: 50, expected: Int64(file.count)))
    #expect(updates.count == 0)
    gate.open()
    try await fixture.ended()
    #expect(updates.count == 1 && model.progress == nil)
  }

  @Test("the changes of events are made in the transition, and those of a call of load and of progress are not")
  func transition() async throws {
    var changes: [String] = []
    model.transition = { change in
      let count = fixture.states.count
      change()
      changes += fixture.states.dropFirst(count)
    }
    try await fixture.cache(fixture.url, .image(ImageFile.red, etag: "\"1\""))
    model.load(fixture.url)
    #expect(fixture.states == ["loaded red"] && changes.isEmpty)

    fixture.network.respond(to: fixture.url, with: .image(ImageFile.green, etag: "\"2\""))
    fixture.clock.advance(by: .seconds(61))
    model.load(fixture.url)
    #expect(fixture.states.last == "stale red" && changes.isEmpty)
    try await fixture.ended()
    #expect(changes == ["loaded green"])

    let broken = try fixture.url("broken")
    fixture.network.respond(to: broken, with: .ok("not an image"))
    model.load(broken)
    #expect(fixture.states.last == "loading -" && changes == ["loaded green"])
    try await fixture.ended()
    #expect(changes == ["loaded green", "failed(decodingFailed) -"])
  }

  // MARK: Sizes of views

  @Test("an image is loaded in the size of its view, and again only if the view needs another size")
  func viewSizes() async throws {
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.png(RGBA(255, 0, 0), width: 64, height: 64)))
    let load = { (size: PixelSize?) in
      model.load(fixture.url, covering: size, scale: 2, options: RequestOptions())
      try await fixture.ended()
    }
    // Before the layout, nothing is loaded.
    try await load(nil)
    #expect(model.image == nil && fixture.network.requests.isEmpty && !model.covers(PixelSize(18, 18)))
    try await load(PixelSize(18, 18))
    #expect(model.image?.size == PixelSize(18, 18) && model.image?.scale == 2)
    for size in [PixelSize(18, 18), PixelSize(9, 9), nil] { #expect(model.covers(size)) }
    #expect(!model.covers(PixelSize(8, 8)) && !model.covers(PixelSize(19, 18)))
    try await load(PixelSize(19, 19))
    #expect(model.image?.size == PixelSize(20, 20))
    #expect(fixture.network.requests.count == 1)
  }

  @Test("another image is loaded in exactly the size of the view")
  func viewSizeOfAnotherImage() async throws {
    let other = try fixture.url("other")
    for url in [fixture.url, other] {
      fixture.network.respond(to: url, with: .image(ImageFile.png(RGBA(255, 0, 0), width: 64, height: 64)))
    }
    for (url, side) in [(fixture.url, 40), (other, 33)] {
      model.load(url, covering: PixelSize(side, side), scale: 1, options: RequestOptions())
      try await fixture.ended()
      #expect(model.image?.size == PixelSize(side, side))
    }
    // Without a size, the earlier load no longer counts.
    model.load(fixture.url, covering: nil, scale: 1, options: RequestOptions())
    #expect(model.image == nil && !model.covers(PixelSize(33, 33)))
  }

  // MARK: Reuse

  @Test("a late response of an earlier load is never shown")
  func reuse() async throws {
    let gate = Gate()
    let other = try fixture.url("other")
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).bodyHeld(by: gate))
    fixture.network.respond(to: other, with: .image(ImageFile.green))
    model.load(fixture.url)
    await gate.arrived()
    model.load(other)
    gate.open()
    try await fixture.ended()
    await fixture.manager.close()
    #expect(!fixture.states.contains { $0.hasSuffix("red") } && fixture.states.last == "loaded green")
  }

  @Test("the image of another URL is removed before load returns")
  func former() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    model.load(fixture.url)
    let other = try fixture.url("other")
    fixture.network.respond(to: other, with: .image(ImageFile.green))
    model.load(other)
    #expect(fixture.states == ["loaded red", "loading -"])
    try await fixture.ended()
    #expect(fixture.states.last == "loaded green")
  }

  @Test("only the last of ten URLs in one turn of the main actor is requested")
  func tenURLs() async throws {
    let urls = try (0..<10).map { try fixture.url("\($0)") }
    fixture.network.respond(to: urls[9], with: .image(ImageFile.green))
    for url in urls { model.load(url) }
    try await fixture.ended()
    #expect(fixture.network.requests.count == 1)
    #expect(fixture.states.last == "loaded green")
    try fixture.network.verify()
  }

  @Test("repeating a running load has no effect")
  func repeated() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).held(by: gate))
    for _ in 0..<3 { model.load(fixture.url) }
    await gate.arrived()
    model.load(fixture.url)
    gate.open()
    try await fixture.ended()
    #expect(fixture.states.filter { $0 == "loading -" }.count == 1)
    #expect(fixture.network.requests.count == 1)
    model.load(fixture.url)
    #expect(fixture.states.filter { $0 == "loaded red" }.count == 1)
  }

  @Test("partitions have separate images")
  func partitions() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    model.load(fixture.url)
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.green))
    model.load(fixture.url, options: RequestOptions { $0.partition = "ann" })
    #expect(model.image == nil)
    try await fixture.ended()
    #expect(fixture.states.last == "loaded green")
  }

  @Test("stores have separate images, also while the former image is shown")
  func stores() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    model.load(fixture.url)
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.green))
    let other = VolatileStore(clock: fixture.clock)

    model.load(fixture.url, options: RequestOptions { $0.store = .use(other) })

    #expect(model.image == nil)
    try await fixture.ended()
    #expect(fixture.states.last == "loaded green")
    model.load(fixture.url)
    #expect(fixture.states.last == "loaded red")
  }

  @Test("without the manager's memory, an image is loaded again")
  func disabledMemory() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    model.load(fixture.url)
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.green))

    model.load(
      fixture.url,
      options: RequestOptions {
        $0.memory = .disabled
        $0.store = .disabled
      })

    #expect(model.image == nil)
    try await fixture.ended()
    #expect(fixture.states.last == "loaded green")
  }

  @Test("a URL with the same key of the manager keeps its image")
  func keys() async throws {
    let fixture = try ImageFixture { $0.cacheKey = { $0.path?.split(separator: "?").first.map(String.init) } }
    let signed = try (1...2).map { try #require(URL(string: "https://example.com/image.png?signature=\($0)")) }
    try await fixture.cache(signed[0], .image(ImageFile.red))

    for url in signed { fixture.model.load(url) }

    #expect(fixture.states == ["loaded red"])
    #expect(fixture.network.requests.count == 1)
  }

  @Test("two keys with equal characters and other bytes have images of their own")
  func canonicalKeys() async throws {
    let fixture = try ImageFixture { $0.store = nil }
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red), .image(ImageFile.green))
    for key in ["\u{E9}", "e\u{301}"] {
      fixture.model.load(fixture.url, options: RequestOptions { $0.key = key })
      try await fixture.ended()
    }
    #expect(fixture.states.filter { $0.hasPrefix("loaded") } == ["loaded red", "loaded green"])
  }

  @Test("the previous size stays on the screen until the new size is available")
  func resized() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.png(RGBA(255, 0, 0), width: 64, height: 64)))
    model.load(fixture.url)
    model.load(fixture.url, .resize(.fit(16, 16)))
    #expect(fixture.states == ["loaded red", "loading red"] && model.image?.size == PixelSize(64, 64))
    try await fixture.ended()
    #expect(model.image?.size == PixelSize(16, 16) && fixture.network.requests.count == 1)
  }

  // MARK: Bad input

  @Test("the phase is empty without a URL, also after an image")
  func noURL() async throws {
    model.load(nil)
    #expect(fixture.states.isEmpty)
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    model.load(fixture.url)
    model.load(nil)
    #expect(fixture.states == ["loaded red", "empty -"])
    model.load(nil)
    model.retry()
    model.cancel()
    model.disappear()
    #expect(fixture.states.count == 2)
  }

  @Test(
    "a URL that cannot be loaded is a failure",
    arguments: [("https://", "invalidURL"), ("ftp://example.com/a.png", "unsupportedScheme"), ("a.png", "invalidURL")])
  func brokenURL(text: String, code: String) async throws {
    let url: URL = try #require(URL(string: text))
    model.load(url)
    try await fixture.ended()
    #expect(fixture.states == ["loading -", "failed(\(code)) -"])
  }

  @Test("a response that is not an image is a failure")
  func noImage() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("<html>"))
    model.load(fixture.url)
    try await fixture.ended()
    #expect(fixture.states.last == "failed(decodingFailed) -")
  }

  @Test("loading with a closed manager is a failure")
  func closed() async throws {
    await fixture.manager.close()
    model.load(fixture.url)
    try await fixture.ended()
    #expect(fixture.states == ["loading -", "failed(closed) -"])
  }

  @Test("closing the manager during the load is a failure")
  func closing() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).held(by: gate))
    model.load(fixture.url)
    await gate.arrived()
    await fixture.manager.close(within: .zero)
    try await fixture.ended()
    #expect(fixture.states.last == "failed(closed) -")
    gate.open()
  }

  @Test("a cancellation by the downloader is a failure")
  func cancelledElsewhere() async throws {
    fixture.network.respond(to: fixture.url, with: .failure(.cancelled))
    model.load(fixture.url)
    try await fixture.ended()
    #expect(fixture.states.last == "failed(cancelled) -")
  }

  @Test(
    "a refusal removes a stale image, and another error does not",
    arguments: [(404, "-"), (410, "-"), (403, "-"), (429, "red"), (500, "red"), (503, "red")])
  func errorAfterStale(status: Int, shown: String) async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red, etag: "\"1\""))
    fixture.network.respond(to: fixture.url, with: .response(.init(code: status)))
    fixture.clock.advance(by: .seconds(61))
    model.load(fixture.url)
    try await fixture.ended()
    #expect(fixture.states.first == "stale red")
    #expect(fixture.states.last == "failed(unacceptableStatus) \(shown)")
  }

  @Test("a stale image is loaded offline, with the reason")
  func offline() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red, etag: "\"1\""))
    fixture.network.respond(to: fixture.url, with: .failure(.offline))
    fixture.clock.advance(by: .seconds(61))
    model.load(fixture.url)
    try await fixture.ended()
    #expect(fixture.states == ["stale red", "loaded red"])
    #expect(model.phase.resource?.fallbackReason?.code == .offline && model.phase.resource?.isStale == true)
  }

  @Test("retry loads again after an error, and otherwise has no effect")
  func retry() async throws {
    fixture.network.respond(to: fixture.url, with: .failure(.offline), .image(ImageFile.red))
    model.load(fixture.url)
    try await fixture.ended()
    model.retry()
    model.retry()
    try await fixture.ended()
    #expect(fixture.states.filter { $0 != "loading -" } == ["failed(offline) -", "loaded red"])
    #expect(fixture.network.requests.count == 2)
  }

  // MARK: Ending

  @Test("a cancelled load ends immediately, and its transfer stops")
  func cancel() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).bodyHeld(by: gate))
    model.load(fixture.url)
    await gate.arrived()
    model.cancel()
    #expect(fixture.states == ["loading -", "failed(cancelled) -"])
    try await Polling.until { fixture.network.cancelledBodies == 1 }
    model.cancel()
    #expect(fixture.states.count == 2)
    gate.open()
  }

  @Test("a load that is cancelled after its view has disappeared ends")
  func cancelledOffscreen() async throws {
    model.load(fixture.url)
    model.disappear()
    model.cancel()
    #expect(fixture.states == ["loading -", "failed(cancelled) -"])
    #expect(fixture.network.requests.isEmpty)
  }

  @Test("a cancelled revalidation does not change the image")
  func cancelledRevalidation() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red, etag: "\"1\""))
    fixture.clock.advance(by: .seconds(61))
    model.load(fixture.url)
    model.cancel()
    #expect(fixture.states == ["stale red", "loaded red"])
  }

  @Test("releasing the model stops the transfer")
  func released() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).bodyHeld(by: gate))
    var model: ImageModel? = ImageModel(manager: fixture.manager)
    model?.load(fixture.url)
    await gate.arrived()
    weak let former = model
    model = nil
    #expect(former == nil)
    try await Polling.until { fixture.network.cancelledBodies == 1 }
    gate.open()
  }

  @Test("a disappearing view stops the transfer, and loading again restarts it")
  func disappeared() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).bodyHeld(by: gate), .image(ImageFile.red))
    model.load(fixture.url)
    await gate.arrived()
    model.disappear()
    try await Polling.until { fixture.network.cancelledBodies == 1 }
    #expect(fixture.states == ["loading -"])
    model.load(fixture.url)
    gate.open()
    try await fixture.ended()
    #expect(fixture.states.last == "loaded red" && fixture.network.requests.count == 2)
  }

  @Test("a view that has disappeared removes the image of a former request, and can be prepared for the next one")
  func reset() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    let other = try fixture.url("other")
    try await fixture.cache(other, .image(ImageFile.green))
    model.load(fixture.url)
    model.disappear()
    model.reset(for: ResourceRequest(fixture.url))
    #expect(fixture.states == ["loaded red"])
    model.reset(for: ResourceRequest(other))
    model.prepare(other, scale: 1, options: RequestOptions())
    #expect(fixture.states == ["loaded red", "empty -", "loaded green"])
    model.settings.keepsPreviousImage = true
    model.reset(for: nil)
    #expect(fixture.states.count == 3 && fixture.network.requests.count == 2)
  }

  @Test("a disappearing view can lower the priority, and loading again shares the transfer")
  func lowered() async throws {
    let gate = Gate()
    let observed = ObservedPriorities()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).held(by: gate))
    let options = RequestOptions { $0.downloader = .use(ObservingDownloader(base: fixture.network, observed: observed)) }
    model.load(fixture.url, options: options)
    model.disappear(keepsLoading: true)
    await gate.arrived()
    #expect(observed.levels == [.veryLow])
    model.load(fixture.url, options: options)
    try await Polling.until { observed.levels == [.normal] }
    gate.open()
    try await fixture.ended()
    #expect(fixture.states.last == "loaded red" && fixture.network.requests.count == 1)
  }

  @Test("a transfer that has begun continues when its view disappears with a lower priority")
  func keepsTransfer() async throws {
    let gate = Gate()
    let file = ImageFile.png(RGBA(255, 0, 0), width: 64, height: 64)
    fixture.network.respond(to: fixture.url, with: .image(file).chunked(by: 50).bodyHeld(by: gate))
    model.load(fixture.url)
    gate.letThrough(1)
    try await Polling.until { @MainActor in model.progress != nil }
    model.disappear(keepsLoading: true)
    gate.open()
    try await fixture.ended()
    #expect(fixture.network.requests.count == 1 && fixture.network.cancelledBodies == 0)
  }
}

/// A counter of the updates of a view that reads the same properties as `reads`.
@MainActor
final class Updates {
  private(set) var count = 0
  private let reads: @MainActor () -> Void

  init(_ reads: @escaping @MainActor () -> Void) {
    self.reads = reads
    track()
  }

  private func track() {
    withObservationTracking {
      reads()
    } onChange: {
      // Called on the main actor, on which the model changes.
      MainActor.assumeIsolated {
        self.count += 1
        Task { self.track() }
      }
    }
  }
}
#endif
