#if canImport(ImageIO) || VIPS
import CacheTesting
import CacheUI
import Foundation
import Testing

@MainActor
@Suite("The frames of animations")
struct AnimationMemoryTests {
  private let animation: AnimationFixture
  private var fixture: ImageFixture { animation.images }
  private var log: FrameLog { animation.log }
  private var model: ImageModel { fixture.model }
  private var player: AnimationPlayer { fixture.model.player }

  init() throws { animation = try AnimationFixture() }

  /// Shows a GIF whose frames have one pixel and 20 ms each.
  private func load(frames: Int, damaged: Int? = nil) async throws {
    try await animation.load(ImageFile.animated(delays: Array(repeating: 2, count: frames), loops: 0, damaged: damaged))
  }

  /// Plays all frames from the first one to the first one again.
  private func playOnce() async throws {
    for frame in 1...player.frameCount {
      try await animation.pass(20, then: frame % player.frameCount)
      #expect(animation.color == ["red", "green", "blue"][frame % player.frameCount % 3])
    }
  }

  // MARK: Memory

  /// The bytes of 1,000 frames, each with one row of 64 bytes.
  private nonisolated static let thousandFrames = 64_000

  @Test("of a GIF of 1,000 frames that exceed the limit, two are held at most", arguments: [thousandFrames - 1, 64, 0, -1])
  func exceeding(limit: Int) async throws {
    player.memoryLimit = limit
    try await load(frames: 1_000)
    let view = animation.appear()
    for loop in 1...2 {
      try await playOnce()
      #expect(log.mostHeld <= 2 && log.held <= 2)
      #expect(log.indices.prefix(loop * 999) == (1...loop).flatMap { _ in 1..<1_000 }[...])
    }
    // Seeking holds no more.
    for frame in [500, 3, 999] {
      player.seek(to: frame)
      try await animation.shows(frame)
    }
    #expect(log.mostHeld <= 2)
    await animation.disappear(view)
    #expect(log.held == 1)
  }

  @Test("a GIF of 1,000 frames within the limit is decoded once, and its frames are released with the view")
  func fitting() async throws {
    player.memoryLimit = Self.thousandFrames
    try await load(frames: 1_000)
    let view = animation.appear()
    try await playOnce()
    #expect(log.indices == Array(1..<1_000))
    try await playOnce()
    player.seek(to: 700)
    try await animation.shows(700)
    #expect(log.indices.count == 999 && log.held == 999)
    await animation.disappear(view)
    #expect(log.held == 1 && animation.color == "green")
  }

  @Test("a lower limit releases the frames, and playing continues")
  func lowered() async throws {
    try await load(frames: 30)
    let view = animation.appear()
    try await playOnce()
    #expect(log.held == 29)
    log.clear()
    player.memoryLimit = 1_000
    try await playOnce()
    #expect(log.mostHeld <= 2 && log.indices.count >= 29)
    player.memoryLimit = 2_000
    try await playOnce()
    #expect(log.held == 29)
    await animation.disappear(view)
  }

  @Test("another image releases the frames")
  func released() async throws {
    try await load(frames: 30)
    let view = animation.appear()
    try await playOnce()
    model.load(nil as URL?)
    await view.value
    #expect(log.held == 0)
  }

  // MARK: Damage

  @Test("a frame that cannot be decoded ends the playback, and the image stays")
  func damaged() async throws {
    try await load(frames: 9)
    player.memoryLimit = 0
    log.damage([4])
    let view = animation.appear()
    for frame in 1...3 { try await animation.pass(20, then: frame) }
    try await Polling.until { @MainActor in player.error != nil }
    #expect(player.error?.reason == "frame 4 is damaged" && !player.isPlaying)
    #expect(player.frame == 3 && animation.color == "red")
    // Given another attempt
    player.play()
    #expect(player.error == nil && player.isPlaying)
    try await Polling.until { @MainActor in player.error != nil }
    #expect(!player.isPlaying && player.frame == 3)
    // Given a seek to a good frame
    player.seek(to: 5)
    try await animation.shows(5)
    #expect(player.error == nil && animation.color == "blue" && !player.isPlaying)
    // Given a seek to the damaged frame
    player.seek(to: 4)
    try await Polling.until { @MainActor in player.error != nil }
    #expect(player.frame == 5 && animation.color == "blue")
    player.stop()
    try await animation.shows(0)
    #expect(player.error == nil && animation.color == "red")
    await animation.disappear(view)
  }

  #if VIPS && os(Linux)
  @Test("a damaged frame in the middle of a file ends the playback, and the frames before it can be shown")
  func damagedFile() async throws {
    try await load(frames: 9, damaged: 4)
    let view = animation.appear()
    for frame in 1...3 { try await animation.pass(20, then: frame) }
    try await Polling.until { @MainActor in player.error != nil }
    #expect(player.error?.code == .decodingFailed && player.error?.reason.contains("frame 4 is damaged") == true)
    #expect(player.frame == 3 && animation.color == "red" && !player.isPlaying)
    player.seek(to: 2)
    try await animation.shows(2)
    #expect(player.error == nil && animation.color == "blue")
    // The decoder needs the damaged frame for the later ones.
    player.seek(to: 6)
    try await Polling.until { @MainActor in player.error != nil }
    #expect(player.frame == 2 && animation.color == "blue")
    await animation.disappear(view)
  }
  #endif

  @Test("a view that appears again after an error does not play by itself")
  func damagedBefore() async throws {
    try await load(frames: 3)
    log.damage([1])
    var view = animation.appear()
    try await Polling.until { @MainActor in player.error != nil }
    await animation.disappear(view)
    view = animation.appear()
    log.damage([])
    player.seek(to: 2)
    try await animation.shows(2)
    #expect(!player.isPlaying && player.error == nil)
    await animation.disappear(view)
  }
}
#endif
