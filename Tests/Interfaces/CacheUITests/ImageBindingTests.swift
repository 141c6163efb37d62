#if canImport(ImageIO) || VIPS
import CacheTesting
import CacheUI
import Foundation
import Testing

@MainActor
@Suite("Bindings of images")
struct ImageBindingTests {
  private let fixture: ImageFixture
  private let view: BoundView

  init() throws {
    fixture = try ImageFixture()
    view = BoundView(fixture)
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

  @Test("with reduced motion, an image appears without a crossfade")
  func reducedMotion() async throws {
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red))
    view.setImage(from: fixture.url, animates: false)
    try await view.ended()
    #expect(view.shown == ["-", "red"])
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

  /// A file of 64 × 64 red pixels.
  private var large: ScriptedResponse { .image(ImageFile.png(RGBA(255, 0, 0), width: 64, height: 64)) }

  @Test("a view without a size waits for its layout, and is loaded in that size")
  func layout() async throws {
    fixture.network.respond(to: fixture.url, with: large)
    view.setImage(from: fixture.url, nil)
    #expect(view.shown == ["-"] && fixture.network.requests.isEmpty)
    view.binding.layOut(PixelSize(16, 16), scale: 1)
    try await view.ended()
    #expect(view.binding.model.image?.size == PixelSize(16, 16))
    #expect(view.shown == ["-", "red with a crossfade"] && view.results == ["network"])
  }

  @Test("an image in memory appears without a crossfade right after the layout")
  func layoutWithMemoryHit() async throws {
    fixture.network.respond(to: fixture.url, with: large)
    _ = try await fixture.manager.load(
      fixture.url, as: .displayImage(.covering(width: 16, height: 16, scale: 1), scale: 1))
    view.setImage(from: fixture.url, nil)
    view.binding.layOut(PixelSize(16, 16), scale: 1)
    #expect(view.shown == ["-", "red"] && view.results == ["memory"])
  }

  @Test("a view that has no size after its layout loads the whole image, and a smaller one for at most half the size")
  func emptyLayout() async throws {
    fixture.network.respond(to: fixture.url, with: large)
    view.setImage(from: fixture.url, nil)
    view.binding.layOut(nil, scale: 1)
    try await view.ended()
    #expect(view.binding.model.image?.size == PixelSize(64, 64))
    // The view takes the size of its image.
    view.binding.layOut(PixelSize(64, 64), scale: 1)
    view.binding.layOut(PixelSize(16, 40), scale: 1)
    #expect(!view.binding.model.phase.isLoading && view.shown == ["-", "red with a crossfade"])
    // A cell whose first layout was empty.
    view.binding.layOut(PixelSize(8, 8), scale: 2)
    try await view.ended()
    #expect(view.binding.model.image?.size == PixelSize(8, 8) && view.binding.model.image?.scale == 2)
  }

  @Test("a load that waits for a layout, and one that has ended, do not begin after a cancellation", arguments: [true, false])
  func cancelledLayout(isWaiting: Bool) async throws {
    fixture.network.respond(to: fixture.url, with: large)
    view.setImage(from: fixture.url, nil, size: isWaiting ? nil : PixelSize(16, 16))
    if !isWaiting { try await view.ended() }
    view.binding.model.cancel()
    view.binding.layOut(PixelSize(32, 32), scale: 1)
    #expect(!view.binding.model.phase.isLoading)
    #expect(fixture.network.requests.count == (isWaiting ? 0 : 1))
    #expect(view.results == [isWaiting ? "cancelled" : "network"])
  }

  @Test("a layout does not bring back the image of the view after the model was given another one", arguments: [true, false])
  func layoutAfterOtherLoad(isWaiting: Bool) async throws {
    fixture.network.respond(to: fixture.url, with: large, large)
    let other = try fixture.url("other")
    try await fixture.cache(other, .image(ImageFile.green))
    view.setImage(from: fixture.url, nil, size: isWaiting ? nil : PixelSize(16, 16))
    if !isWaiting { try await view.ended() }
    view.binding.model.load(other)
    view.binding.layOut(PixelSize(32, 32), scale: 1)
    #expect(view.shown.last == "green with a crossfade" && !view.binding.model.phase.isLoading)
  }

  @Test("a closure that learns of a retry can cancel it, or load another image", arguments: [true, false])
  func reentrance(cancels: Bool) async throws {
    let other = try fixture.url("other")
    fixture.network.respond(to: fixture.url, with: .failure(.offline), .image(ImageFile.red))
    fixture.network.respond(to: other, with: .image(ImageFile.green))
    view.setImage(from: fixture.url)
    try await view.ended()
    view.binding.loadingIndicator = { [view] isVisible in
      guard isVisible else { return }
      view.binding.loadingIndicator = nil
      if cancels { view.binding.model.cancel() } else { view.setImage(from: other) }
    }
    view.binding.model.retry()
    try await view.ended()
    #expect(view.shown.last == (cancels ? "-" : "green with a crossfade"))
    #expect(fixture.network.requests.count == (cancels ? 1 : 2))
  }

  @Test("a layout in the same size starts no load, also after the memory was emptied, and a larger size does")
  func repeatedLayouts() async throws {
    fixture.network.respond(to: fixture.url, with: large)
    view.setImage(from: fixture.url, nil, size: PixelSize(16, 16))
    try await view.ended()
    fixture.memory.removeAll()
    for size in [PixelSize(16, 16), PixelSize(10, 12), nil] {
      view.binding.layOut(size, scale: 1)
      #expect(!view.binding.model.phase.isLoading)
    }
    view.binding.layOut(PixelSize(32, 32), scale: 1)
    try await view.ended()
    #expect(view.binding.model.image?.size == PixelSize(32, 32) && view.shown.count == 3)
  }

  @Test("a layout does not load for a view with a processor or without a URL")
  func unrelatedLayouts() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    view.setImage(from: fixture.url)
    view.binding.layOut(PixelSize(2, 2), scale: 1)
    #expect(view.binding.model.image?.size == PixelSize(4, 4))
    view.setImage(from: nil, nil)
    view.binding.layOut(PixelSize(2, 2), scale: 1)
    #expect(view.shown == ["red", "-"] && view.results == ["memory"])
  }

  @Test(
    "a resized view keeps an image of up to twice its size, and otherwise loads a rounded size",
    arguments: [
      (PixelSize(300, 200), PixelSize(300, 200), PixelSize(300, 200)),
      (PixelSize(300, 200), PixelSize(150, 100), PixelSize(300, 200)),
      (PixelSize(300, 200), PixelSize(149, 100), PixelSize(160, 112)),
      (PixelSize(300, 200), PixelSize(301, 200), PixelSize(320, 224)),
      (PixelSize(300, 200), PixelSize(100, 400), PixelSize(112, 448)),
      (PixelSize(3, 3), PixelSize(4, 5), PixelSize(4, 5)),
      (PixelSize(1, 1), PixelSize(65_536, 65_535), PixelSize(65_536, 65_536)),
    ])
  func resized(former: PixelSize, size: PixelSize, expected: PixelSize) {
    #expect(size.resized(from: former) == expected)
    // A loaded size is loaded once.
    #expect(size.resized(from: expected) == expected)
  }

  @Test("a window that grows from 100 to 1,000 pixels starts few loads")
  func growing() {
    var (size, loads) = (PixelSize(100, 100), 1)
    for side in 101...1_000 {
      let next = PixelSize(side, side).resized(from: size)
      if next != size { (size, loads) = (next, loads + 1) }
    }
    #expect(loads == 15 && size == PixelSize(1_024, 1_024))
  }

  @Test(
    "the first scale that a display can have is used, and two pixels per point without one",
    arguments: [([3, 2], 3.0), ([0, 3], 3), ([0, 0], 2), ([.nan, .infinity], 2), ([-1, 1], 1)])
  func scale(scales: [Double], scale: Double) {
    #expect(firstDisplayScale(of: scales[0], scales[1]) == scale)
  }

  @Test("a transform for the size of the view is applied after the layout, and to the whole image in a view without a size")
  func sizedTransform() async throws {
    fixture.network.respond(to: fixture.url, with: large)
    let transform = ViewTransform.sized { size, scale in .displayImage(.covering(size) + .flipVertically, scale: scale * 3) }
    view.setImage(from: ResourceRequest(fixture.url), as: transform)
    #expect(fixture.network.requests.isEmpty)
    view.binding.layOut(PixelSize(16, 16), scale: 1)
    try await view.ended()
    #expect(view.binding.model.image?.size == PixelSize(16, 16) && view.binding.model.image?.scale == 3)

    view.setImage(from: ResourceRequest(fixture.url), as: transform)
    view.binding.layOut(nil, scale: 1)
    try await view.ended()
    #expect(view.binding.model.image?.size == PixelSize(64, 64))
    #expect(fixture.network.requests.count == 1)
  }

  @Test("a fixed transform is applied before the layout, which starts no load")
  func fixedTransform() async throws {
    fixture.network.respond(to: fixture.url, with: large)
    view.setImage(from: ResourceRequest(fixture.url), as: .fixed(.displayImage(.resize(.fit(8, 8)))))
    try await view.ended()
    view.binding.layOut(PixelSize(32, 32), scale: 1)
    #expect(view.binding.model.image?.size == PixelSize(8, 8) && !view.binding.model.phase.isLoading)
  }

  @Test("a template over the pixels of the image that is shown takes its place, and the image that of the template")
  func templates() async throws {
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red))
    let image = try DisplayImage(ImageDecoder().decode(ImageFile.red))
    let plain = ResourceTransform<DisplayImage>(id: "plain", cost: { $0.cost }) { _, _ in image }
    let template = ResourceTransform<DisplayImage>(id: "template", cost: { $0.cost }) { _, _ in image.asTemplate() }
    for transform in [plain, template, plain] {
      view.setImage(from: ResourceRequest(fixture.url), as: .fixed(transform))
      try await view.ended()
    }
    #expect(view.shown == ["-", "red with a crossfade", "red template with a crossfade", "red"])
  }

  @Test("without a placeholder, or with an image that the system cannot create, the view shows nothing")
  func noPlaceholder() throws {
    let image = try DisplayImage(ImageDecoder().decode(ImageFile.red))
    for content in [ImageBinding.Content.nothing, .placeholder, .image(image)] {
      #expect(content.platformImage({ _ in nil as String? }, placeholder: nil) == nil)
    }
  }

  @Test("with the setting, the view keeps its image until the next one is available")
  func previousImage() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    let other = try fixture.url("other")
    fixture.network.respond(to: other, with: .image(ImageFile.green))
    let settings = ImageModel.Settings { $0.keepsPreviousImage = true }
    view.setImage(from: ResourceRequest(fixture.url), as: .fixed(.displayImage()), settings: settings)
    view.setImage(from: ResourceRequest(other), as: .fixed(.displayImage()), settings: settings)
    #expect(view.shown == ["red"])
    try await view.ended()
    #expect(view.shown == ["red", "green with a crossfade"] && view.results == ["memory", "network"])
  }

  @Test("an image on disk appears without a placeholder or a crossfade, and a late placeholder is followed by a crossfade")
  func delayedPlaceholder() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    fixture.memory.removeAll()
    let settings = ImageModel.Settings { $0.placeholderDelay = .milliseconds(50) }
    view.setImage(from: ResourceRequest(fixture.url), as: .covering(), settings: settings)
    view.binding.layOut(PixelSize(4, 4), scale: 1)
    try await view.ended()
    #expect(view.shown == ["nothing", "red"] && view.results == ["disk"])

    let gate = Gate()
    let other = try fixture.url("other")
    fixture.network.respond(to: other, with: .image(ImageFile.green).held(by: gate))
    view.setImage(from: ResourceRequest(other), as: .covering(), size: PixelSize(4, 4), settings: settings)
    await gate.arrived()
    #expect(view.shown == ["nothing", "red", "nothing"])
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .milliseconds(50))
    try await Polling.until { @MainActor in view.shown.count == 4 }
    gate.open()
    try await view.ended()
    #expect(view.shown == ["nothing", "red", "nothing", "-", "green with a crossfade"])
  }

  @Test("releasing a view stops its load")
  func released() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).bodyHeld(by: gate))
    var view: BoundView? = BoundView(fixture)
    view?.setImage(from: fixture.url)
    await gate.arrived()
    view = nil
    try await Polling.until { fixture.network.cancelledBodies == 1 }
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
