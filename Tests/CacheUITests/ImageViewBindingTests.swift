#if canImport(ImageIO) || VIPS
import CacheTesting
import CacheUI
import Foundation
import Testing

@MainActor
@Suite("Image views of UIKit and AppKit")
struct ImageViewBindingTests {
  /// A fake image view that records the images it should show.
  @MainActor
  final class View {
    let binding: ImageViewBinding
    private(set) var shown: [String] = []
    private(set) var results: [String] = []
    let fixture: ImageFixture

    init(_ fixture: ImageFixture) {
      self.fixture = fixture
      binding = ImageViewBinding(manager: fixture.manager)
    }

    func setImage(from url: URL?, manager: ResourceManager? = nil, animates: Bool = true) {
      binding.load(
        url, .none, scale: 1, options: RequestOptions(), manager: manager ?? fixture.manager, animates: animates,
        crossfade: .milliseconds(200),
        display: { [weak self] image, crossfade in
          self?.shown.append(ImageFixture.color(of: image) + (crossfade == nil ? "" : " with a crossfade"))
        },
        completion: { [weak self] result in
          switch result {
          case .success(let resource): self?.results.append("\(resource.source)")
          case .failure(let error): self?.results.append(error.code.rawValue)
          }
        })
    }

    func ended() async throws { try await Turns.until { @MainActor in !self.binding.model.phase.isLoading } }
  }

  private let fixture: ImageFixture
  private let view: View

  init() throws {
    fixture = try ImageFixture()
    view = View(fixture)
  }

  @Test("an image in memory appears immediately, without placeholder or crossfade")
  func memoryHit() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    view.setImage(from: fixture.url)
    #expect(view.shown == ["red"] && view.results == ["memory"])
  }

  @Test("the placeholder is shown, then the image with a crossfade")
  func miss() async throws {
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red))
    view.setImage(from: fixture.url)
    #expect(view.shown == ["-"])
    try await view.ended()
    #expect(view.shown == ["-", "red with a crossfade"] && view.results == ["network"])
  }

  @Test("a stale image is shown once after a 304, and a newer one appears with a crossfade")
  func stale() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red, etag: "\"1\""))
    fixture.network.respond(
      to: fixture.url, with: .notModified(cacheControl: "max-age=60"), .image(ImageFile.green, etag: "\"2\""))
    fixture.clock.advance(by: .seconds(61))
    view.setImage(from: fixture.url)
    try await view.ended()
    #expect(view.shown == ["red"] && view.results == ["revalidated"])
    fixture.clock.advance(by: .seconds(61))
    view.setImage(from: fixture.url)
    try await view.ended()
    #expect(view.shown == ["red", "green with a crossfade"] && view.results == ["revalidated", "network"])
  }

  @Test("a reused view never shows the image of its earlier row or calls its completion")
  func reuse() async throws {
    let gate = Gate()
    let other = try fixture.url("other")
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).bodyHeld(by: gate))
    fixture.network.respond(to: other, with: .image(ImageFile.green))
    view.setImage(from: fixture.url)
    await gate.arrived()
    view.setImage(from: other)
    gate.open()
    try await view.ended()
    await fixture.manager.close()
    #expect(view.shown == ["-", "-", "green with a crossfade"] && view.results == ["network"])
  }

  @Test("the placeholder is shown without a URL and after an error")
  func placeholders() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    view.setImage(from: fixture.url)
    view.setImage(from: nil)
    #expect(view.shown == ["red", "-"] && view.results == ["memory"])
    let broken = try fixture.url("broken")
    fixture.network.respond(to: broken, with: .ok("not an image"))
    view.setImage(from: broken)
    try await view.ended()
    #expect(view.shown == ["red", "-", "-"] && view.results == ["memory", "decodingFailed"])
  }

  @Test("another manager uses another model")
  func manager() async throws {
    let other = try ImageFixture()
    try await other.cache(other.url, .image(ImageFile.green))
    let model = view.binding.model
    view.setImage(from: other.url, manager: other.manager)
    #expect(view.shown == ["green"] && view.binding.model !== model)
    #expect(fixture.network.requests.isEmpty)
  }

  @Test("an animation is shown without crossfades, and not at all if motion is reduced", arguments: [true, false])
  func animation(animates: Bool) async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.animated(loops: 1)))
    view.setImage(from: fixture.url, animates: animates)
    if animates {
      for delay in [100, 200] {
        await fixture.clock.sleepers(1)
        fixture.clock.advance(by: .milliseconds(delay))
      }
      try await Turns.until { @MainActor in view.shown.count == 3 }
    }
    #expect(view.shown == (animates ? ["red", "green", "blue"] : ["red"]))
    #expect(view.results == ["memory"])
  }

  @Test("releasing a view stops its load")
  func released() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).bodyHeld(by: gate))
    var view: View? = View(fixture)
    view?.setImage(from: fixture.url)
    await gate.arrived()
    view = nil
    try await Turns.until { fixture.network.cancelledBodies == 1 }
    gate.open()
  }

  @Test(
    "a view's size in points is converted to the size in pixels that covers it",
    arguments: [
      (96.0, 96.0, 2.0, "resize(fill(192x192))"), (10.1, 20, 3, "resize(fill(31x60))"), (0, 10, 2, ""), (-1, 10, 2, ""),
      (.nan, 10, 2, ""), (.infinity, 10, 2, ""), (1e9, 10, 2, ""),
    ])
  func covering(width: Double, height: Double, scale: Double, description: String) {
    #expect(ImageProcessor.covering(width: width, height: height, scale: scale).description == description)
  }
}
#endif
