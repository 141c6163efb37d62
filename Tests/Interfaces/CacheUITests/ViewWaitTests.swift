#if canImport(ImageIO) || VIPS
import CacheTesting
import CacheUI
import Foundation
import Testing

/// An observer that calls the main actor's code when a wait ends.
private final class ReentrantObserver: LoadObserver {
  let id = ComponentID.unique(ReentrantObserver.self)
  @MainActor var action: (() -> Void)?

  init() {}

  func observe(_ event: CacheEvent, of load: LoadID) {}

  func viewEndsWait(
    _ wait: LoadID, for url: LoadURL, with result: Result<ResourceSource, CacheError>, after duration: Duration
  ) {
    MainActor.assumeIsolated { action?() }
  }
}

@MainActor
@Suite("The waits of views for their images, as an observer sees them")
struct ViewWaitTests {
  private let observer = RecordingObserver()
  private let fixture: ImageFixture
  private var model: ImageModel { fixture.model }

  init() throws { fixture = try ImageFixture { [observer] in $0.observer = observer } }

  /// The waits in the order in which they began.
  private var waits: [String] {
    observer.waits.map { wait in
      let name = URL(string: wait.url.description)?.lastPathComponent ?? "-"
      return switch wait.result {
      case nil: "\(name) waits"
      case .success(let source)?: "\(name) shown from \(source) after \(wait.duration / .seconds(1)) s"
      case .failure(let error)?: "\(name) \(error.code.rawValue)"
      }
    }
  }

  @Test("a view without its image waits until it shows it, and the event has the time of the wait")
  func cold() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).held(by: gate))
    model.load(fixture.url)
    await gate.arrived()
    #expect(waits == ["image.png waits"])
    fixture.clock.advance(by: .seconds(2))
    gate.open()
    try await fixture.ended()
    #expect(waits == ["image.png shown from network after 2.0 s"])
    // The load does not end twice, and a hit is no wait.
    model.load(fixture.url)
    #expect(waits.count == 1)
  }

  @Test("a view whose image is in memory has no wait, whether it is fresh or stale", arguments: [0, 120])
  func memory(age: Int) async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    fixture.clock.advance(by: .seconds(age))
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red))
    model.load(fixture.url)
    try await fixture.ended()
    #expect(model.image != nil && waits.isEmpty)
  }

  @Test("an image in another size is no wait while the former one is shown")
  func resized() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    model.load(fixture.url)
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red))
    model.load(fixture.url, .resize(.fill(2, 2)))
    try await fixture.ended()
    #expect(model.image?.size == PixelSize(2, 2) && waits.isEmpty)
  }

  @Test("the wait begins before the layout, and layouts without a size do not begin another one")
  func layout() async throws {
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red))
    for size in [nil, nil, PixelSize(4, 4)] { model.load(fixture.url, covering: size, scale: 1, options: RequestOptions()) }
    try await fixture.ended()
    #expect(waits == ["image.png shown from network after 0.0 s"])
  }

  @Test("another request ends the wait, also if the previous image is kept", arguments: [false, true])
  func replaced(keepsPrevious: Bool) async throws {
    let names = try (fixture.url("first"), fixture.url("second"))
    fixture.network.respond(to: names.0, with: .image(ImageFile.red).held(by: Gate()))
    fixture.network.respond(to: names.1, with: .image(ImageFile.green))
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    model.settings.keepsPreviousImage = keepsPrevious
    model.load(fixture.url)
    model.load(names.0)
    model.load(names.1)
    try await fixture.ended()
    #expect(waits == ["first.png cancelled", "second.png shown from network after 0.0 s"])
  }

  @Test("a view that disappears ends its wait, and begins another one when it appears again", arguments: [false, true])
  func disappearing(keepsLoading: Bool) async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).held(by: gate), .image(ImageFile.red))
    model.load(fixture.url)
    model.disappear(keepsLoading: keepsLoading)
    #expect(waits == ["image.png cancelled"])
    if keepsLoading { await gate.arrived() }
    model.load(fixture.url)
    model.load(fixture.url)
    // Otherwise, the load that went on could end before the other one begins, which would then find its image in memory.
    if keepsLoading { await observer.first { if case .joined = $0 { true } else { false } } }
    gate.open()
    try await fixture.ended()
    #expect(waits == ["image.png cancelled", "image.png shown from network after 0.0 s"])
  }

  @Test("an error, a cancellation, no request and the release of the model end the wait")
  func ends() async throws {
    let urls = try ["a", "b", "c", "d"].map(fixture.url)
    fixture.network.respond(to: urls[0], with: .failure(.offline))
    for url in urls.dropFirst() { fixture.network.respond(to: url, with: .image(ImageFile.red).held(by: Gate())) }
    model.load(urls[0])
    try await fixture.ended()
    model.load(urls[1])
    model.cancel()
    model.load(urls[2])
    model.load(nil)
    do {
      let released = ImageModel(manager: fixture.manager)
      released.load(urls[3])
    }
    #expect(waits == ["a.png offline", "b.png cancelled", "c.png cancelled", "d.png cancelled"])
  }

  @Test("a wait does not end with the image of another request", arguments: ["memory", "misuse"])
  func otherResult(_ other: String) async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    let missing = try fixture.url("missing")
    fixture.network.respond(to: missing, with: .image(ImageFile.green).held(by: Gate()))
    model.load(missing)
    if other == "memory" {
      model.load(fixture.url)
    } else {
      model.load(ResourceRequest(fixture.url, method: .post), as: .displayImage())
    }
    #expect(waits == ["missing.png cancelled"])
  }

  @Test("a cancellation before the layout ends the wait and the load")
  func cancelledBeforeLayout() {
    model.load(fixture.url, covering: nil, scale: 1, options: RequestOptions())
    model.cancel()
    #expect(waits == ["image.png cancelled"] && model.phase.error?.isCancellation == true)
  }

  @Test("an observer may load another image when a wait ends", arguments: [true, false])
  func reentrance(cancels: Bool) async throws {
    let other = try fixture.url("other")
    try await fixture.cache(other, .image(ImageFile.green))
    let observer = ReentrantObserver()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).held(by: Gate()))
    model.load(fixture.url, options: RequestOptions { $0.observer = .use(observer) })
    observer.action = { [model] in model.load(other) }
    if cancels { model.cancel() } else { model.load(nil) }
    try await fixture.ended()
    #expect(fixture.states.last == "loaded green")
  }

  @Test("the observer of the request's options receives the wait in place of the manager's")
  func options() async throws {
    let own = RecordingObserver()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red))
    model.load(fixture.url, options: RequestOptions { $0.observer = .use(own) })
    try await fixture.ended()
    #expect(own.waits.count == 1 && waits.isEmpty)
    let other = try fixture.url("other")
    fixture.network.respond(to: other, with: .image(ImageFile.green))
    model.load(other, options: RequestOptions { $0.observer = .disabled })
    try await fixture.ended()
    #expect(model.image != nil && waits.isEmpty)
  }
}
#endif
