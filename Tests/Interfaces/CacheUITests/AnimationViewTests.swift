#if canImport(ImageIO) || VIPS
import CacheTesting
import CacheUI
import Foundation
import Testing

@MainActor
@Suite("Animations in views")
struct AnimationViewTests {
  private let animation: AnimationFixture
  private var fixture: ImageFixture { animation.images }
  private var log: FrameLog { animation.log }
  private var model: ImageModel { fixture.model }
  private var player: AnimationPlayer { fixture.model.player }

  init() throws { animation = try AnimationFixture() }

  @Test("a view that appears again continues from the frame, with the controls that were used meanwhile")
  func reappears() async throws {
    try await animation.load()
    var view = animation.appear()
    try await animation.pass(100, then: 1)
    await fixture.clock.sleepers(1)
    await animation.disappear(view)
    #expect(fixture.clock.pendingSleeps == 0)
    fixture.clock.advance(by: .seconds(60))
    #expect(player.isPlaying && animation.color == "green")

    view = animation.appear()
    try await animation.pass(200, then: 2)
    await animation.disappear(view)
    player.pause()
    player.seek(to: 1)
    #expect(player.frame == 2)

    view = animation.appear()
    try await animation.shows(1)
    try await animation.stopped()
    #expect(animation.color == "green")
    await animation.disappear(view)
  }

  @Test("a view that disappears during a decoding leaves the frame, and no error", arguments: [false, true])
  func cancelledDecoding(isSeeking: Bool) async throws {
    try await animation.load()
    log.gate.close()
    var view = animation.appear()
    if isSeeking { player.seek(to: 2) }
    await log.gate.arrived()
    view.cancel()
    log.gate.open()
    await view.value
    #expect(player.frame == 0 && player.error == nil && player.isPlaying)
    view = animation.appear()
    if isSeeking { try await animation.shows(2) } else { try await animation.pass(100, then: 1) }
    await animation.disappear(view)
  }

  @Test("two views of one model do not double the speed, and the second one continues after the first", .timeLimit(.minutes(30)))
  func twoViews() async throws {
    try await animation.load()
    let first = animation.appear()
    await fixture.clock.sleepers(1)
    let second = animation.appear()
    try await animation.pass(100, then: 1)
    try await animation.pass(200, then: 2)
    await fixture.clock.sleepers(1)
    #expect(fixture.clock.pendingSleeps == 1 && log.indices == [1, 2])
    first.cancel()
    await first.value
    try await animation.pass(300, then: 0)
    second.cancel()
    await second.value
  }

  enum Activity: CaseIterable { case playing, paused, seeking, decoding }

  @Test("another image ends the animation, and begins at its own first frame", arguments: Activity.allCases, [false, true])
  func otherImage(activity: Activity, isAnimated: Bool) async throws {
    let other = try fixture.url("other")
    try await fixture.cache(other, .image(isAnimated ? ImageFile.animated(delays: [50, 60], loops: 0) : ImageFile.green))
    try await animation.load()
    let view = animation.appear()
    try await animation.pass(100, then: 1)
    await fixture.clock.sleepers(1)
    switch activity {
    case .playing: break
    case .paused: player.pause()
    case .seeking: player.seek(to: 2)
    case .decoding:
      log.gate.close()
      player.memoryLimit = 0
      player.seek(to: 2)
      try await Polling.until { log.gate.held == 1 }
    }
    model.load(other)
    #expect(player.frame == 0 && player.frameCount == (isAnimated ? 2 : 1) && player.isPlaying == isAnimated)
    log.gate.open()
    await view.value
    #expect(animation.color == (isAnimated ? "red" : "green"))

    let next = animation.appear()
    if isAnimated {
      try await animation.pass(500, then: 1)
      #expect(animation.color == "green")
    }
    next.cancel()
    await next.value
    // No image at all
    model.load(nil as URL?)
    #expect(player.frameCount == 0 && player.frame == 0 && !player.isPlaying)
  }

  @Test("an image that is revalidated while it plays does not begin again")
  func revalidated() async throws {
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.animated(loops: 0), etag: "\"1\""))
    _ = try await fixture.manager.load(fixture.url, as: .displayImage())
    fixture.clock.advance(by: .seconds(120))
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .notModified(cacheControl: "max-age=60").held(by: gate))
    model.load(fixture.url)
    let view = animation.appear()
    await gate.arrived()
    try await animation.pass(100, then: 1)
    gate.open()
    try await fixture.ended()
    #expect(player.frame == 1 && animation.color == "green")
    try await animation.pass(200, then: 2)
    await animation.disappear(view)
  }

  @Test("the same image in another size continues at its frame", arguments: [false, true])
  func otherSize(isPlaying: Bool) async throws {
    try await animation.load(loops: 1)
    let view = animation.appear()
    for (delay, frame) in [(100, 1), (200, 2), (300, 0), (100, 1)] { try await animation.pass(delay, then: frame) }
    if !isPlaying { player.pause() }
    _ = try await fixture.manager.load(fixture.url, as: .displayImage(scale: 2))
    model.load(fixture.url, scale: 2)
    // The first frame in the new size would flash.
    #expect(model.image?.scale == 1 && animation.color == "green" && player.frame == 1 && player.isPlaying == isPlaying)
    await view.value
    let next = animation.appear()
    try await Polling.until { @MainActor in model.image?.scale == 2 }
    #expect(animation.color == "green" && player.frame == 1)
    if isPlaying {
      for (delay, frame) in [(200, 2), (300, 2)] { try await animation.pass(delay, then: frame) }
    }
    try await animation.stopped()
    await animation.disappear(next)
  }

  @Test("the controls have no effect without an image and on a still image", arguments: [false, true])
  func still(isLoaded: Bool) async throws {
    if isLoaded {
      try await fixture.cache(fixture.url, .image(ImageFile.green))
      model.load(fixture.url)
    }
    let states = fixture.states
    player.play()
    player.seek(to: 1)
    player.pause()
    player.stop()
    player.play()
    await model.animate()
    #expect(!player.isPlaying && player.frame == 0 && player.frameCount == (isLoaded ? 1 : 0) && player.error == nil)
    #expect(fixture.states == states && log.indices.isEmpty)
  }

  @Test("a view that reads only the state of the player is not updated by frames")
  func observation() async throws {
    try await animation.load()
    let (states, images) = (Updates { _ = player.isPlaying }, Updates { _ = model.image?.size })
    let view = animation.appear()
    for (delay, frame) in [(100, 1), (200, 2), (300, 0)] {
      try await animation.pass(delay, then: frame)
    }
    #expect(states.count == 0 && images.count > 0)
    player.pause()
    #expect(states.count == 1)
    await animation.disappear(view)
  }

  @Test("a model is released when the task that shows its frames is cancelled", arguments: [false, true])
  func released(plays: Bool) async throws {
    try await fixture.cache(fixture.url, .image(ImageFile.animated(loops: 0)))
    var model: ImageModel? = ImageModel(manager: fixture.manager)
    weak var former: ImageModel?
    former = model
    model?.settings.autoplays = plays
    model?.load(fixture.url)
    let view: Task<Void, Never> = Task { [weak model] in await model?.animate() }
    model?.player.seek(to: 1)
    try await Polling.until { @MainActor in model?.player.frame == 1 }
    if plays { await fixture.clock.sleepers(1) }
    model = nil
    #expect(former != nil)
    await animation.disappear(view)
    #expect(former == nil && fixture.clock.pendingSleeps == 0)
  }
}
#endif
