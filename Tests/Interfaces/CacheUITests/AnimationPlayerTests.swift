#if canImport(ImageIO) || VIPS
import CacheTesting
import CacheUI
import Foundation
import Testing

@MainActor
@Suite("Animation players")
struct AnimationPlayerTests {
  private let animation: AnimationFixture
  private var fixture: ImageFixture { animation.images }
  private var log: FrameLog { animation.log }
  private var model: ImageModel { fixture.model }
  private var player: AnimationPlayer { fixture.model.player }

  init() throws { animation = try AnimationFixture() }

  // MARK: Playing

  @Test("the frames are shown by the clock for the declared number of repetitions, and the last one for its delay")
  func declared() async throws {
    try await animation.load(loops: 1)
    #expect(player.isPlaying && player.frame == 0 && player.frameCount == 3)
    let view = animation.appear()
    var colors = [animation.color]
    for (delay, frame) in [(100, 1), (200, 2), (300, 0), (100, 1), (200, 2)] {
      try await animation.pass(delay, then: frame)
      colors.append(animation.color)
    }
    #expect(colors == ["red", "green", "blue", "red", "green", "blue"])
    #expect(player.isPlaying)
    try await animation.pass(300, then: 2)
    try await animation.stopped()
    // The first frame again
    player.play()
    try await animation.pass(100, then: 1)
    #expect(player.isPlaying && animation.color == "green")
    await animation.disappear(view)
  }

  @Test("without autoplay, the first frame is shown until the image is played")
  func autoplay() async throws {
    model.settings.autoplays = false
    try await animation.load()
    #expect(!player.isPlaying)
    let view = animation.appear()
    try await animation.stopped()
    player.play()
    #expect(player.isPlaying)
    try await animation.pass(100, then: 1)
    await animation.disappear(view)
    #expect(log.indices.starts(with: [1]))
  }

  @Test("a change of autoplay applies when the view appears again, unless a control was used", arguments: [false, true])
  func changedAutoplay(isControlled: Bool) async throws {
    try await animation.load()
    if isControlled { player.play() }
    for autoplays in [false, true] {
      model.settings.autoplays = autoplays
      let view = animation.appear()
      if autoplays || isControlled { await fixture.clock.sleepers(1) } else { try await animation.stopped() }
      #expect(player.isPlaying == (autoplays || isControlled))
      view.cancel()
      await view.value
    }
  }

  @Test("a paused image stays, and is shown for the whole delay after it is played again")
  func pause() async throws {
    try await animation.load()
    let view = animation.appear()
    try await animation.pass(100, then: 1)
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .milliseconds(150))
    player.pause()
    try await animation.stopped()
    fixture.clock.advance(by: .seconds(60))
    #expect(player.frame == 1 && animation.color == "green")
    player.play()
    try await animation.pass(200, then: 2)
    #expect(animation.color == "blue")
    await animation.disappear(view)
  }

  @Test("a stopped image shows its first frame, and then plays all repetitions")
  func stop() async throws {
    try await animation.load(loops: 1)
    let view = animation.appear()
    for (delay, frame) in [(100, 1), (200, 2), (300, 0), (100, 1)] { try await animation.pass(delay, then: frame) }
    player.stop()
    try await animation.stopped()
    try await animation.shows(0)
    #expect(animation.color == "red")
    player.play()
    for (delay, frame) in [(100, 1), (200, 2), (300, 0), (100, 1), (200, 2), (300, 2)] {
      try await animation.pass(delay, then: frame)
    }
    try await animation.stopped()
    await animation.disappear(view)
  }

  @Test("a late frame delays the following frames, and none is skipped")
  func late() async throws {
    try await animation.load()
    log.gate.close()
    let view = animation.appear()
    await log.gate.arrived()
    // Later than all delays together
    fixture.clock.advance(by: .seconds(2))
    #expect(player.frame == 0)
    log.gate.open()
    try await animation.shows(1)
    try await animation.pass(200, then: 2)
    try await animation.pass(300, then: 0)
    await animation.disappear(view)
    #expect(fixture.clock.uptime == .milliseconds(2_500))
  }

  @Test(
    "the speed divides the delays, within its limits",
    arguments: [
      (2, 2, 50), (0.5, 0.5, 200), (0, 0.01, 10_000), (-3, 0.01, 10_000), (.nan, 1, 100), (.infinity, 100, 1),
      (-.infinity, 0.01, 10_000), (1e9, 100, 1),
    ])
  func speed(speed: Double, result: Double, delay: Int) async throws {
    player.speed = speed
    #expect(player.speed == result)
    try await animation.load()
    #expect(player.speed == result)
    let view = animation.appear()
    try await animation.pass(delay, then: 1)
    await animation.disappear(view)
  }

  @Test("another speed applies to the frame that is shown")
  func changedSpeed() async throws {
    try await animation.load()
    let view = animation.appear()
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .milliseconds(40))
    player.speed = 0.1
    try await animation.pass(960, then: 1)
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .milliseconds(40))
    // The frame is overdue.
    player.speed = 100
    try await animation.shows(2)
    await animation.disappear(view)
  }

  @Test("an image is repeated as often as requested", arguments: [(2, 0), (nil, 1)])
  func repetition(times: Int?, loops: UInt8) async throws {
    player.repetition = times.map { .times($0) } ?? .declared
    try await animation.load(loops: loops)
    let view = animation.appear()
    for (delay, frame) in [(100, 1), (200, 2), (300, 0), (100, 1), (200, 2), (300, 2)] {
      try await animation.pass(delay, then: frame)
    }
    try await animation.stopped()
    await animation.disappear(view)
  }

  @Test("the number of repetitions can change while the image plays")
  func changedRepetition() async throws {
    try await animation.load(loops: 1)
    player.repetition = .forever
    let view = animation.appear()
    for _ in 0..<3 { for (delay, frame) in [(100, 1), (200, 2), (300, 0)] { try await animation.pass(delay, then: frame) } }
    player.repetition = .times(1)
    for (delay, frame) in [(100, 1), (200, 2), (300, 2)] { try await animation.pass(delay, then: frame) }
    try await animation.stopped()
    await animation.disappear(view)
  }

  @Test("an image that is repeated zero times is not played", arguments: [0, -1, .min], [false, true])
  func zeroTimes(count: Int, isLate: Bool) async throws {
    if !isLate { player.repetition = .times(count) }
    try await animation.load()
    #expect(player.isPlaying == isLate)
    let view = animation.appear()
    if isLate { await fixture.clock.sleepers(1) }
    player.repetition = .times(count)
    player.play()
    try await animation.stopped()
    #expect(player.frame == 0 && animation.color == "red")
    // Seeking is possible.
    player.seek(to: 2)
    try await animation.shows(2)
    await animation.disappear(view)
  }

  // MARK: Seeking

  @Test(
    "seeking shows the frame that is nearest to the index, without playing",
    arguments: [(2, 2, "blue"), (1, 1, "green"), (99, 2, "blue"), (.max, 2, "blue")])
  func seek(index: Int, frame: Int, name: String) async throws {
    model.settings.autoplays = false
    try await animation.load()
    let view = animation.appear()
    player.seek(to: index)
    try await animation.shows(frame)
    #expect(animation.color == name && !player.isPlaying)
    for first in [0, -1, .min] {
      player.seek(to: first)
      try await animation.shows(0)
      #expect(animation.color == "red")
      player.seek(to: index)
      try await animation.shows(frame)
    }
    await animation.disappear(view)
  }

  @Test("an image that plays continues from the frame that was requested")
  func seekPlaying() async throws {
    try await animation.load()
    let view = animation.appear()
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .milliseconds(70))
    player.seek(to: 1)
    try await animation.shows(1)
    try await animation.pass(200, then: 2)
    // To the frame that is shown, which is shown for its whole delay.
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .milliseconds(100))
    player.seek(to: 2)
    try await animation.pass(300, then: 0)
    await animation.disappear(view)
  }

  @Test("of many requests during a decoding, the last one is decoded next")
  func coalesced() async throws {
    let file = ImageFile.animated(delays: Array(repeating: 10, count: 50), loops: 0)
    try await fixture.cache(fixture.url, .image(file))
    model.settings.autoplays = false
    model.load(fixture.url)
    log.gate.close()
    let view = animation.appear()
    player.seek(to: 10)
    await log.gate.arrived()
    for index in 11..<40 { player.seek(to: index) }
    log.gate.open()
    try await animation.shows(39)
    #expect(log.indices == [10, 39])
    await animation.disappear(view)
  }

  @Test("seeking after the end continues the last repetition from the frame")
  func seekAfterEnd() async throws {
    try await animation.load(loops: 1)
    let view = animation.appear()
    for (delay, frame) in [(100, 1), (200, 2), (300, 0), (100, 1), (200, 2), (300, 2)] {
      try await animation.pass(delay, then: frame)
    }
    try await animation.stopped()
    player.seek(to: 1)
    try await animation.shows(1)
    await animation.disappear(view)
    let next = animation.appear()
    try await animation.stopped()
    #expect(!player.isPlaying && player.frame == 1)
    player.play()
    for (delay, frame) in [(200, 2), (300, 2)] { try await animation.pass(delay, then: frame) }
    try await animation.stopped()
    await animation.disappear(next)
  }
}
#endif
