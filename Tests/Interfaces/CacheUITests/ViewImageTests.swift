#if canImport(ImageIO) || VIPS
import CacheTesting
import CacheUI
import Foundation
import Testing

/// A fake image view, with the names of its images in place of images.
@MainActor
private final class FakeView: ImageLoadingView, HostView {
  private(set) var images: [String] = []
  private(set) var alternateImages: [String] = []
  private(set) var indicator: [Bool] = []
  private(set) var crossfades: [Duration?] = []
  let ownedLoaders = OwnedLoaders()
  /// Whether the view has the subview that reports.
  private var hasReporter = false
  private(set) var isInWindow = true
  /// The size in points, which are pixels.
  var size: PixelSize?
  var displayScales: (own: Double, main: Double) = (0, 1)

  var pointSize: (width: Double, height: Double) { (Double(size?.width ?? 0), Double(size?.height ?? 0)) }

  var viewImageLoader: ViewImageLoader<String> {
    .owned(
      by: self, for: "image", make: \.name, showIndicator: { $0.indicator.append($1) },
      set: { $0.images.append($1 ?? "nothing") })
  }

  /// The loader of another property that shows an image, as a button has.
  var alternateLoader: ViewImageLoader<String> {
    .owned(by: self, for: "alternateImage", make: \.name, set: { $0.alternateImages.append($1 ?? "nothing") })
  }

  func addReporter() { hasReporter = true }

  /// Removes all subviews, as an app may do.
  func removeSubviews() { hasReporter = false }

  func crossfade(_ duration: Duration?, _ change: @escaping @MainActor () -> Void) {
    crossfades.append(duration)
    change()
  }

  func layOut(_ size: PixelSize?) {
    self.size = size
    if hasReporter { ownedLoaders.laidOut() }
  }

  func moveToWindow(_ isInWindow: Bool) {
    self.isInWindow = isInWindow
    if hasReporter { ownedLoaders.moved(isInWindow: isInWindow) }
  }
}

@MainActor
@Suite("setImage(from:) of image views")
struct ViewImageTests {
  private let fixture: ImageFixture
  private let view = FakeView()

  init() throws {
    fixture = try ImageFixture()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.png(RGBA(255, 0, 0), width: 64, height: 64)))
  }

  private func ended() async throws {
    let model = try #require(view.viewImageLoader.model)
    try await Polling.until { @MainActor in !model.phase.isLoading }
  }

  /// A form of `setImage(from:)`, with the size of its image in a view of 16 × 16 pixels.
  enum Form: CaseIterable {
    case url, processor, requestTransform, urlTransform, requestSized, urlSized

    var side: Int { [.url, .requestSized, .urlSized].contains(self) ? 16 : 8 }
  }

  @discardableResult
  private func setImage(_ form: Form, in other: FakeView? = nil) -> ImageModel {
    let (view, url, request, manager) = (other ?? view, fixture.url, ResourceRequest(fixture.url), fixture.manager)
    let (name, resized) = ("placeholder", ResourceTransform.displayImage(.resize(.fill(8, 8))))
    return switch form {
    case .url: view.setImage(from: url, placeholder: name, manager: manager)
    case .processor: view.setImage(from: url, placeholder: name, .resize(.fill(8, 8)), manager: manager)
    case .requestTransform: view.setImage(from: request, as: resized, placeholder: name, manager: manager)
    case .urlTransform: view.setImage(from: url, as: resized, placeholder: name, manager: manager)
    case .requestSized:
      view.setImage(from: request, as: { size, _ in .displayImage(.covering(size)) }, placeholder: name, manager: manager)
    case .urlSized:
      view.setImage(from: url, as: { size, _ in .displayImage(.covering(size)) }, placeholder: name, manager: manager)
    }
  }

  @Test("each form shows the placeholder and then the image, and later the image in the first call", arguments: Form.allCases)
  func forms(form: Form) async throws {
    view.size = PixelSize(16, 16)
    setImage(form)
    #expect(view.images == ["placeholder"])
    try await ended()
    let image = "red \(form.side)x\(form.side)"
    #expect(view.images == ["placeholder", image])

    let second = FakeView()
    second.size = view.size
    setImage(form, in: second)
    #expect(second.images == [image] && fixture.network.requests.count == 1)
  }

  @Test("without a URL or a request, each form shows the placeholder")
  func withoutURL() {
    view.setImage(from: nil, placeholder: "1", manager: fixture.manager)
    view.setImage(from: nil, as: .displayImage(), placeholder: "2", manager: fixture.manager)
    view.setImage(from: nil, as: { size, _ in .displayImage(.covering(size)) }, manager: fixture.manager)
    view.setImage(from: URL?.none, as: .displayImage(), placeholder: "4", manager: fixture.manager)
    #expect(view.images == ["1", "2", "nothing", "4"])
  }

  @Test("the completion is called in the first call for an image in memory, and for none of the loads that were replaced")
  func completion() async throws {
    let results = LoadResults()
    view.setImage(from: fixture.url, .fill(8, 8), manager: fixture.manager) { results.add($0) }
    view.setImage(from: fixture.url, .fill(4, 4), manager: fixture.manager) { results.add($0) }
    try await ended()
    #expect(results.values == ["network"])
    FakeView().setImage(from: fixture.url, .fill(4, 4), manager: fixture.manager, completion: results.add)
    #expect(results.values == ["network", "memory"])
  }

  @Test("a view without a size loads after its layout, and a view with a processor before it")
  func layout() async throws {
    setImage(.url)
    #expect(view.viewImageLoader.model?.phase.isLoading == false)
    view.layOut(PixelSize(16, 16))
    try await ended()
    setImage(.processor)
    try await ended()
    view.layOut(PixelSize(32, 32))
    #expect(view.viewImageLoader.model?.phase.isLoading == false)
    #expect(view.images == ["placeholder", "red 16x16", "red 8x8"])
  }

  @Test("a view whose subviews were removed is reported again after the next load of any of its images")
  func reporter() async throws {
    setImage(.url)
    view.removeSubviews()
    view.layOut(PixelSize(16, 16))
    #expect(view.viewImageLoader.model?.phase.isLoading == false)
    _ = view.alternateLoader.load(nil, .covering(), "alternate", nil, false, ImageModel.Settings(), fixture.manager, nil)
    view.layOut(PixelSize(16, 16))
    try await ended()
    #expect(view.images == ["placeholder", "red 16x16"] && view.alternateImages == ["alternate"])
  }

  @Test("the scale is that of the view's display, or else that of the main display", arguments: [3.0, 0])
  func scale(own: Double) async throws {
    view.displayScales = (own, 4)
    view.size = PixelSize(4, 4)
    setImage(.url)
    try await ended()
    let pixels = own == 0 ? 16 : 12
    #expect(view.images == ["placeholder", "red \(pixels)x\(pixels)"])
  }

  @Test("only an image that was not in memory appears with the crossfade")
  func crossfade() async throws {
    view.setImage(from: fixture.url, .fill(8, 8), crossfade: .seconds(1), manager: fixture.manager)
    try await ended()
    // The system of the tests may reduce motion.
    #expect(view.crossfades.count == 2 && view.crossfades[0] == nil)
    view.setImage(from: fixture.url, .fill(8, 8), crossfade: .seconds(1), manager: fixture.manager)
    #expect(view.crossfades.count == 2)
  }

  @Test("a view is released, and its loads end with it")
  func released() async throws {
    let gate = Gate()
    let held = try fixture.url("held")
    fixture.network.respond(to: held, with: .image(ImageFile.red).bodyHeld(by: gate))
    var view: FakeView? = FakeView()
    view?.setImage(from: held, .fill(2, 2), showsIndicator: true, manager: fixture.manager)
    await gate.arrived()
    weak var former: FakeView?
    former = view
    view = nil
    #expect(former == nil)
    try await Polling.until { fixture.network.cancelledBodies == 1 }
    gate.open()
  }

  @Test("the indicator appears only in loads that ask for it, and disappears when the view is reused without it")
  func indicator() async throws {
    let gate = Gate()
    let held = try fixture.url("held")
    fixture.network.respond(to: held, with: .image(ImageFile.red).held(by: gate))
    view.setImage(from: held, .fill(2, 2), showsIndicator: true, manager: fixture.manager)
    await gate.arrived()
    #expect(view.indicator == [true])
    setImage(.processor)
    #expect(view.indicator == [true, false])
    gate.open()
    try await ended()
    #expect(view.indicator == [true, false])
  }

  @Test("a load that a completion begins keeps its indicator")
  func indicatorOfCompletion() async throws {
    let gate = Gate()
    let (thumbnail, full) = (try fixture.url("thumbnail"), try fixture.url("full"))
    try await fixture.cache(thumbnail, .image(ImageFile.green))
    fixture.network.respond(to: full, with: .image(ImageFile.red).held(by: gate))
    view.setImage(from: thumbnail, ImageProcessor.none, manager: fixture.manager) { [view, fixture] _ in
      view.setImage(from: full, ImageProcessor.none, showsIndicator: true, manager: fixture.manager)
    }
    await gate.arrived()
    #expect(view.images == ["green 4x4", "nothing"] && view.indicator == [true])
    gate.open()
    try await ended()
    #expect(view.images.last == "red 4x4" && view.indicator == [true, false])
  }

  /// Shows an animated image of a red, a green and a blue frame of 100, 200 and 300 ms.
  private func setAnimation() async throws {
    let animation = try fixture.url("animation")
    try await fixture.cache(animation, .image(ImageFile.animated(loops: 0)))
    // It plays, whatever the setting of the system for motion.
    view.setImage(from: animation, ImageProcessor.none, manager: fixture.manager).player.play()
    #expect(view.images == ["red 1x1"])
  }

  private func shows(_ image: String) async throws {
    try await Polling.until { @MainActor in view.images.last == image }
  }

  @Test("an animation stops while the view has no window, and continues at its frame")
  func animation() async throws {
    try await setAnimation()
    await fixture.clock.advance(pastSleepOf: .milliseconds(100))
    try await shows("green 1x1")
    await fixture.clock.sleepers(1)
    view.moveToWindow(false)
    try await Polling.until { fixture.clock.pendingSleeps == 0 }
    let images = view.images
    fixture.clock.advance(by: .seconds(60))
    view.layOut(PixelSize(16, 16))
    #expect(view.images == images && view.viewImageLoader.model?.player.frame == 1)
    view.moveToWindow(true)
    await fixture.clock.advance(pastSleepOf: .milliseconds(200))
    try await shows("blue 1x1")
  }

  @Test("an animation that is set before the view has a window begins when it has one")
  func animationBeforeWindow() async throws {
    view.moveToWindow(false)
    try await setAnimation()
    fixture.clock.advance(by: .seconds(60))
    #expect(view.images == ["red 1x1"] && fixture.clock.pendingSleeps == 0)
    view.moveToWindow(true)
    await fixture.clock.advance(pastSleepOf: .milliseconds(100))
    try await shows("green 1x1")
  }

  @Test("a load with another manager has another model, and ends the load of the former one without its completion")
  func managers() async throws {
    let gate = Gate()
    let held = try fixture.url("held")
    fixture.network.respond(to: held, with: .image(ImageFile.red).bodyHeld(by: gate))
    let other = try ImageFixture()
    try await other.cache(other.url, .image(ImageFile.green))
    let results = LoadResults()
    let former = view.setImage(
      from: held, ImageProcessor.none, showsIndicator: true, manager: fixture.manager, completion: results.add)
    await gate.arrived()
    let model = view.setImage(from: other.url, ImageProcessor.none, manager: other.manager)
    #expect(model !== former && model === view.viewImageLoader.model && !former.phase.isLoading)
    #expect(view.images == ["nothing", "green 4x4"] && view.indicator == [true, false] && results.values == [])
    try await Polling.until { fixture.network.cancelledBodies == 1 }
    gate.open()
  }
}
#endif
