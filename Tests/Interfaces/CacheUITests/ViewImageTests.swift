#if canImport(ImageIO) || VIPS
import CacheTesting
import CacheUI
import Foundation
import Testing

extension DisplayImage {
  /// The color and the size in pixels.
  fileprivate var name: String { "\(ImageFixture.color(of: self)) \(size.width)x\(size.height)" }
}

/// An object of an app that shows an image with a binding, made of public declarations alone.
@MainActor
private final class Item {
  private(set) var binding: ImageBinding?
  private(set) var images: [String] = []
  private(set) var indicator: [Bool] = []

  init(_ manager: ResourceManager) {
    let binding = ImageBinding(manager: manager) { [weak self] content, crossfade in
      let image = content.platformImage({ $0.name }, placeholder: "placeholder")
      self?.images.append((image ?? "nothing") + (crossfade.map { ", \($0)" } ?? ""))
    }
    binding.loadingIndicator = { [weak self] in self?.indicate($0) }
    self.binding = binding
  }

  func indicate(_ isVisible: Bool) { indicator.append(isVisible) }

  func release() { binding = nil }
}

/// The results of loads.
@MainActor
private final class Results {
  private(set) var values: [String] = []

  func add(_ result: Result<Resource<DisplayImage>, CacheError>) {
    switch result {
    case .success(let resource): values.append("\(resource.source)")
    case .failure(let error): values.append(error.code.rawValue)
    }
  }
}

@MainActor
@Suite("Bindings of an app's own objects")
struct AppBindingTests {
  private let fixture: ImageFixture
  private let item: Item
  private let binding: ImageBinding
  private let request: ResourceRequest
  private let results = Results()

  init() throws {
    fixture = try ImageFixture()
    item = Item(fixture.manager)
    binding = try #require(item.binding)
    request = ResourceRequest(fixture.url)
  }

  private func ended() async throws { try await Polling.until { @MainActor in !binding.model.phase.isLoading } }

  private var small: ResourceTransform<DisplayImage> { .displayImage(.resize(.fill(2, 2))) }

  @Test("nothing is displayed before the first load, and without a request the placeholder is")
  func withoutRequest() {
    #expect(item.images == [])
    binding.load(nil, as: .displayImage())
    #expect(item.images == ["placeholder"] && item.indicator == [])
  }

  @Test("an image in memory is displayed before the call returns, with its completion and without an indicator")
  func memoryHit() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red))
    binding.load(request, as: .displayImage(), crossfade: .seconds(1), completion: results.add)
    #expect(item.images == ["red 4x4"] && results.values == ["memory"] && item.indicator == [])
  }

  @Test("the indicator is visible from the start of the load to the image")
  func miss() async throws {
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red))
    binding.load(request, as: small, crossfade: .seconds(1), completion: results.add)
    #expect(item.images == ["placeholder"] && item.indicator == [true])
    try await ended()
    #expect(item.images == ["placeholder", "red 2x2, 1.0 seconds"])
    #expect(item.indicator == [true, false] && results.values == ["network"])
  }

  @Test("an error hides the indicator, and the placeholder stays")
  func error() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("not an image"))
    binding.load(request, as: small, completion: results.add)
    try await ended()
    #expect(item.images == ["placeholder"] && item.indicator == [true, false] && results.values == ["decodingFailed"])
  }

  @Test("a cancellation of the model hides the indicator, and calls the completion once")
  func cancellation() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).held(by: gate))
    binding.load(request, as: small, completion: results.add)
    await gate.arrived()
    binding.model.cancel()
    #expect(item.indicator == [true, false] && results.values == ["cancelled"])
    gate.open()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red))
    binding.model.retry()
    #expect(item.indicator == [true, false, true])
    try await ended()
    #expect(item.images == ["placeholder", "red 2x2"] && results.values == ["cancelled"])
  }

  @Test("a revalidation and a load in another size show no indicator, because an image is displayed")
  func withoutIndicator() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.red, etag: "\"1\""))
    fixture.network.respond(to: fixture.url, with: .notModified(cacheControl: "max-age=60"))
    fixture.clock.advance(by: .seconds(61))
    binding.load(request, as: .displayImage())
    #expect(binding.model.phase.isLoading)
    try await ended()
    binding.load(request, as: small)
    #expect(binding.model.phase.isLoading)
    try await ended()
    #expect(item.images == ["red 4x4", "red 2x2"] && item.indicator == [])
  }

  @Test("a delayed placeholder delays the indicator")
  func delayedPlaceholder() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).held(by: gate))
    binding.load(request, as: small, settings: ImageModel.Settings { $0.placeholderDelay = .milliseconds(50) })
    await gate.arrived()
    #expect(item.images == ["nothing"] && item.indicator == [])
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .milliseconds(50))
    try await Polling.until { @MainActor in item.images.count == 2 }
    #expect(item.images == ["nothing", "placeholder"] && item.indicator == [true])
    gate.open()
    try await ended()
    #expect(item.indicator == [true, false])
  }

  @Test("an indicator that is set or removed during a load appears or disappears at once")
  func changedIndicator() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).held(by: gate))
    binding.load(request, as: small)
    await gate.arrived()
    let other = Item(fixture.manager)
    binding.loadingIndicator = { other.indicate($0) }
    #expect(item.indicator == [true, false] && other.indicator == [true])
    binding.loadingIndicator = nil
    #expect(other.indicator == [true, false])
    gate.open()
    try await ended()
    #expect(item.images.last == "red 2x2" && other.indicator == [true, false])
  }

  @Test("a later load takes the place of the earlier one, whose completion is not called")
  func reuse() async throws {
    let gate = Gate()
    let other = try fixture.url("other")
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).bodyHeld(by: gate))
    fixture.network.respond(to: other, with: .image(ImageFile.green))
    binding.load(request, as: small, completion: results.add)
    await gate.arrived()
    binding.load(ResourceRequest(other), as: small, completion: results.add)
    gate.open()
    try await ended()
    await fixture.manager.close()
    #expect(item.images == ["placeholder", "placeholder", "green 2x2"] && results.values == ["network"])
  }

  @Test("releasing the binding cancels its load")
  func released() async throws {
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red).bodyHeld(by: gate))
    let item = Item(fixture.manager)
    item.binding?.load(request, as: small)
    await gate.arrived()
    item.release()
    try await Polling.until { fixture.network.cancelledBodies == 1 }
    gate.open()
    #expect(item.images == ["placeholder"])
  }

  private let sized: @Sendable (PixelSize?, Double) -> ResourceTransform<DisplayImage> = { size, scale in
    .displayImage(.covering(size), scale: scale)
  }

  /// A file of 64 × 64 red pixels.
  private var large: ScriptedResponse { .image(ImageFile.png(RGBA(255, 0, 0), width: 64, height: 64)) }

  @Test("a transform for the size waits for a layout, and later loads use its size")
  func layout() async throws {
    let other = try fixture.url("other")
    for url in [fixture.url, other] { fixture.network.respond(to: url, with: large) }
    binding.load(request, as: sized)
    #expect(binding.model.phase.resource == nil && !binding.model.phase.isLoading && item.indicator == [])
    binding.layOut(width: 8, height: 8, scale: 2)
    try await ended()
    #expect(binding.model.image?.scale == 2)
    binding.load(ResourceRequest(other), as: sized)
    try await ended()
    binding.layOut(width: 16, height: 16, scale: 2)
    try await ended()
    #expect(item.images == ["placeholder", "red 16x16", "placeholder", "red 16x16", "red 32x32"])
  }

  @Test("an empty size loads the whole image, and a scale that no display has is 2", arguments: [0, -1, .nan, .infinity])
  func emptyLayout(width: Double) async throws {
    fixture.network.respond(to: fixture.url, with: large)
    binding.load(request, as: sized)
    binding.layOut(width: width, height: 8, scale: 0)
    try await ended()
    #expect(item.images == ["placeholder", "red 64x64"] && binding.model.image?.scale == 2)
  }
}

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
    let results = Results()
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
    let results = Results()
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
