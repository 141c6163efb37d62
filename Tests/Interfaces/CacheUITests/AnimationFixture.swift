#if canImport(ImageIO) || VIPS
import CacheCore
import CacheTesting
import CacheUI
import Foundation

/// A model that shows an animated image over a manual clock.
@MainActor
final class AnimationFixture {
  let images: ImageFixture
  let log = FrameLog()
  private var player: AnimationPlayer { images.model.player }

  init() throws {
    images = try ImageFixture()
    player.decode = log.decode
  }

  /// The color of the image that is shown.
  var color: String { ImageFixture.color(of: images.model.image) }

  /// Shows an image of a red, a green and a blue frame of 100, 200 and 300 ms.
  func load(loops: UInt8 = 0) async throws { try await load(ImageFile.animated(loops: loops)) }

  func load(_ file: Data) async throws {
    try await images.cache(images.url, .image(file))
    images.model.load(images.url)
  }

  /// Runs the animation as a visible view does.
  func appear() -> Task<Void, Never> {
    let model = images.model
    return Task { await model.animate() }
  }

  /// Ends the animation as a view does that disappears.
  func disappear(_ view: Task<Void, Never>) async {
    view.cancel()
    await view.value
  }

  /// Waits until the player sleeps for the given time, lets it pass, and waits for a frame.
  func pass(_ milliseconds: Int, then frame: Int) async throws {
    await images.clock.advance(pastSleepOf: .milliseconds(milliseconds))
    try await shows(frame)
  }

  /// Waits for a frame.
  func shows(_ frame: Int) async throws { try await Polling.until { @MainActor in player.frame == frame } }

  /// Waits until the player waits for a control.
  func stopped() async throws {
    try await Polling.until { @MainActor in !player.isPlaying && images.clock.pendingSleeps == 0 }
  }
}

/// A function that decodes the frames of a player. It records them, counts those that are held, and can hold back or fail some.
final class FrameLog: Sendable {
  private struct Frame {
    weak var storage: (any AnyObject & Sendable)?
  }

  private struct State {
    var indices: [Int] = []
    var frames: [Frame] = []
    var mostHeld = 0
    var damaged: Set<Int> = []
  }

  private let state = Lock(State())
  /// The gate that each frame passes before it is decoded.
  let gate = Gate(isOpen: true)

  /// The indices of the frames that were requested, in order.
  var indices: [Int] { state.withLock { $0.indices } }
  /// The number of decoded frames that are held.
  var held: Int { state.withLock { $0.frames.count { $0.storage != nil } } }
  /// The largest number of decoded frames that were held at the end of a decoding.
  var mostHeld: Int { state.withLock { $0.mostHeld } }

  func clear() { state.withLock { ($0.indices, $0.mostHeld) = ([], 0) } }

  /// Sets the frames that cannot be decoded.
  func damage(_ frames: Set<Int>) { state.withLock { $0.damaged = frames } }

  func decode(_ image: DisplayImage, _ index: Int) async throws(CacheError) -> DisplayImage {
    state.withLock { $0.indices.append(index) }
    await gate.pass()
    if state.withLock({ $0.damaged.contains(index) }) { throw CacheError(.decodingFailed, reason: "frame \(index) is damaged") }
    let frame = try await image.frame(index)
    state.withLock { state in
      state.frames.removeAll { $0.storage == nil }
      state.frames.append(Frame(storage: frame.storage))
      state.mostHeld = max(state.mostHeld, state.frames.count)
    }
    return frame
  }
}
#endif
