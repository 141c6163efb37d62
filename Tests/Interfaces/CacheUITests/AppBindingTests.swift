#if canImport(ImageIO) || VIPS
import CacheTesting
import CacheUI
import Foundation
import Testing

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

@MainActor
@Suite("Bindings of an app's own objects")
struct AppBindingTests {
  private let fixture: ImageFixture
  private let item: Item
  private let binding: ImageBinding
  private let request: ResourceRequest
  private let results = LoadResults()

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
#endif
