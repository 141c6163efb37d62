#if canImport(ImageIO) || VIPS
import CacheTesting
import CacheUI
import Foundation
import Testing

@MainActor
@Suite("Bindings of animated images")
struct AnimationBindingTests {
  private let fixture: ImageFixture
  private let view: BoundView

  init() throws {
    fixture = try ImageFixture()
    view = BoundView(fixture)
  }

  @Test("an animation is shown without crossfades, and with reduced motion only after it is played", arguments: [true, false])
  func animation(animates: Bool) async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.animated(loops: 1)))
    view.setImage(from: fixture.url, animates: animates)
    let player = view.binding.model.player
    #expect(player.isPlaying == animates)
    if !animates {
      player.seek(to: 0)
      #expect(view.shown == ["red"])
      player.play()
    }
    for delay in [100, 200] { await fixture.clock.advance(pastSleepOf: .milliseconds(delay)) }
    try await Polling.until { @MainActor in view.shown.count == 3 }
    #expect(view.shown == ["red", "green", "blue"])
    #expect(view.results == ["memory"])
  }

  @Test("an animation goes on during a revalidation and after its failure")
  func revalidatedAnimation() async throws {
    let gate = Gate()
    try await fixture.cache(fixture.url, .image(ImageFile.animated(loops: 0)))
    fixture.network.respond(to: fixture.url, with: .response(.init(code: 500)).held(by: gate))
    fixture.clock.advance(by: .seconds(120))
    view.setImage(from: fixture.url)
    await gate.arrived()
    await fixture.clock.advance(pastSleepOf: .milliseconds(100))
    try await Polling.until { @MainActor in view.shown == ["red", "green"] }
    gate.open()
    try await view.ended()
    #expect(view.binding.model.phase.error != nil)
    await fixture.clock.advance(pastSleepOf: .milliseconds(200))
    try await Polling.until { @MainActor in view.shown == ["red", "green", "blue"] }
  }

  @Test("an animation stands still while its view is not visible, and then continues")
  func invisibleAnimation() async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.animated(loops: 0)))
    view.setImage(from: fixture.url)
    await fixture.clock.advance(pastSleepOf: .milliseconds(100))
    try await Polling.until { @MainActor in view.shown == ["red", "green"] }
    view.binding.isVisible = false
    try await Polling.until { fixture.clock.pendingSleeps == 0 }
    fixture.clock.advance(by: .seconds(60))
    #expect(view.shown == ["red", "green"])
    view.binding.isVisible = true
    await fixture.clock.advance(pastSleepOf: .milliseconds(200))
    try await Polling.until { @MainActor in view.shown == ["red", "green", "blue"] }
  }

  @Test("the frames of another animated image that the model loads are shown")
  func otherAnimation() async throws {
    let other = try fixture.url("other")
    try await fixture.cache(other, .image(ImageFile.animated(delays: [50, 60], loops: 0)))
    try await fixture.cache(fixture.url, .image(ImageFile.animated(loops: 0)))
    view.setImage(from: fixture.url)
    await fixture.clock.advance(pastSleepOf: .milliseconds(100))
    try await Polling.until { @MainActor in view.shown == ["red", "green"] }
    view.binding.model.load(other)
    await fixture.clock.advance(pastSleepOf: .milliseconds(500))
    try await Polling.until { @MainActor in view.shown == ["red", "green", "red with a crossfade", "green"] }
  }

  @Test("releasing a view ends its animation, also a paused one", arguments: [true, false])
  func releasedAnimation(isPlaying: Bool) async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.animated(loops: 0)))
    var view: BoundView? = BoundView(fixture)
    view?.setImage(from: fixture.url)
    await fixture.clock.sleepers(1)
    weak var model: ImageModel?
    model = view?.binding.model
    if !isPlaying {
      model?.player.pause()
      try await Polling.until { fixture.clock.pendingSleeps == 0 }
    }
    view = nil
    try await Polling.until { model == nil }
    try await Polling.until { fixture.clock.pendingSleeps == 0 }
  }
}
#endif
