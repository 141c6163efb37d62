public import Etagere
public import Observation

/// The controls of the animated image that an ``ImageModel`` shows.
///
/// ```swift
/// let model = ImageModel()
/// model.load(url)
/// // when the model shows an animated image:
/// let player = model.player
/// if player.isPlaying { player.pause() } else { player.play() }
/// player.seek(to: player.frameCount / 2)
/// player.speed = 0.5
/// player.repetition = .times(3)
/// ```
///
/// ``play()``, ``pause()``, ``stop()`` and ``seek(to:)`` have no effect before an animated image is shown. The frames are shown
/// while ``ImageModel/animate()`` runs, which the views do while they are visible. A control that is used at another time takes
/// effect when the view appears again.
///
/// Another image begins at its first frame, and plays if ``ImageModel/Settings/autoplays`` is set. The same image in another
/// size continues at its frame. ``speed``, ``repetition`` and ``memoryLimit`` stay.
///
/// ### Memory
///
/// The image that was loaded holds its first frame and the bytes of the file. Besides, the player holds at most ``memoryLimit``
/// bytes of pixels, or two frames if these are larger: the one shown and the next. The decoder needs the memory of a few
/// frames, whatever their number. When ``ImageModel/animate()`` ends, only the frame shown is held.
///
/// Views observe each property separately (Observation). A view that reads only ``isPlaying`` is not updated by each frame.
@MainActor @Observable
public final class AnimationPlayer {
  /// The number of times that all frames are shown.
  public enum Repetition: Hashable, Sendable {
    /// The number that the file declares.
    case declared
    /// The frames are shown until ``AnimationPlayer/pause()`` or ``AnimationPlayer/stop()``.
    case forever
    /// A number of times. With zero or less, the frames are not played.
    case times(Int)
  }

  /// Whether the frames advance while the view is visible. It becomes `false` after the delay of the last frame of the last
  /// repetition, and after an ``error``.
  public private(set) var isPlaying = false
  /// The index of the frame that is shown.
  public private(set) var frame = 0
  /// The number of frames: 0 without an image, and 1 for a still image.
  public private(set) var frameCount = 0
  /// The error of a frame that could not be decoded, which ends the playback. The image stays. The error is removed when another
  /// frame is shown, and by ``play()``, which decodes the frame again.
  public private(set) var error: CacheError?

  /// The speed as a factor, which is clamped to 0.01...100. It is 1 if it is not a number.
  ///
  /// A frame is shown for at least a millisecond. If frames cannot be decoded as fast, each is shown late and none is skipped.
  public var speed: Double {
    get { rate }
    set {
      rate = newValue.isNaN ? 1 : min(max(newValue, 0.01), 100)
      signal()
    }
  }

  /// The number of times that all frames are shown. A lower number takes effect at the end of the current repetition.
  public var repetition: Repetition {
    get { repetitions }
    set {
      repetitions = newValue
      if limit == 0 { setPlaying(false) }
      signal()
    }
  }

  /// The limit on the memory of the decoded frames in bytes, by default 16 MiB.
  ///
  /// If all frames fit, they are decoded once and kept for later repetitions. Otherwise, only the frame shown and the next
  /// one are held, and each repetition decodes all frames. A frame has four bytes per pixel, in rows of a multiple of 64 bytes.
  public var memoryLimit: Int {
    get { memory }
    set {
      memory = newValue
      if !keepsFrames { frames = [:] }
      signal()
    }
  }

  private var rate = 1.0
  private var repetitions = Repetition.declared
  private var memory = 16 << 20
  /// The first frame of an animated image, which decodes the others.
  @ObservationIgnored private var first: DisplayImage?
  /// The decoded frames: the next one, or all.
  @ObservationIgnored private var frames: [Int: DisplayImage] = [:]
  /// The frame that ``seek(to:)`` requests.
  @ObservationIgnored private var target: Int?
  /// The number of repetitions that have ended.
  @ObservationIgnored private var loops = 0
  /// The uptime from which the delay of the frame that is shown counts, or `nil` if it counts from now on.
  @ObservationIgnored private var shownAt: Duration?
  /// Whether the last repetition has ended.
  @ObservationIgnored private var hasEnded = false
  /// Whether the frame that is shown is one of the former image, which is the same in another form.
  @ObservationIgnored private var isOutdated = false
  /// Whether the user, and not ``ImageModel/Settings/autoplays``, decides whether the image plays.
  @ObservationIgnored private var isControlled = false
  /// Whether a task shows the frames.
  @ObservationIgnored private var isDriven = false
  /// A number that changes with the image. A task with another number shows nothing.
  @ObservationIgnored private var generation = 0
  /// The number of changes that a waiting task has to consider.
  @ObservationIgnored private let changes = WatchedState(0)
  /// The function that decodes a frame. Tests replace it.
  @ObservationIgnored package var decode: @Sendable (DisplayImage, Int) async throws(CacheError) -> DisplayImage = {
    (image, index) async throws(CacheError) in try await image.frame(index)
  }

  init() {}

  // MARK: Controls

  /// Plays the frames from the current one on, which is shown for its whole delay. After the last repetition, the playback begins
  /// again at the first frame.
  public func play() {
    guard frameCount > 1, limit != 0 else { return }
    isControlled = true
    if hasEnded { rewind() }
    if error != nil { error = nil }
    setPlaying(true)
    signal()
  }

  /// Stops at the current frame.
  public func pause() {
    guard frameCount > 1 else { return }
    isControlled = true
    setPlaying(false)
    signal()
  }

  /// Stops, and shows the first frame. ``play()`` then plays all repetitions.
  public func stop() {
    guard frameCount > 1 else { return }
    pause()
    rewind()
    signal()
  }

  /// Shows another frame, also while the image does not play.
  ///
  /// It decodes the frames up to the requested one if the format requires it. Of several requests during that time, the last
  /// one is decoded next. The repetitions that have ended still count. After the last one, ``play()`` continues from the frame.
  ///
  /// - Parameter index: The index of the frame, which is clamped to the frames of the image.
  public func seek(to index: Int) {
    guard frameCount > 1 else { return }
    target = min(max(index, 0), frameCount - 1)
    hasEnded = false
    // Otherwise the image would play by itself when the view appears again.
    if !isPlaying { isControlled = true }
    signal()
  }

  private func rewind() { (target, loops, hasEnded) = (0, 0, false) }

  private func setPlaying(_ plays: Bool) {
    guard isPlaying != plays else { return }
    isPlaying = plays
    shownAt = nil
  }

  /// Plays or pauses, unless a control has been used for the image.
  private func autoplay(_ autoplays: Bool) {
    guard !isControlled, !hasEnded, error == nil else { return }
    setPlaying(autoplays && frameCount > 1 && limit != 0)
  }

  /// The number of repetitions, or `nil` for no end.
  private var limit: Int? {
    switch repetitions {
    case .declared: first?.loopCount
    case .forever: nil
    case .times(let count): max(count, 0)
    }
  }

  /// Begins with another image, or with none.
  ///
  /// - Parameters:
  ///   - autoplays: Whether the image plays.
  ///   - continues: Whether it is the same image in another form, such as another size. It continues at the current frame.
  /// - Returns: Whether the frame that is shown stays until the player shows it in its new form.
  @discardableResult
  func reset(_ image: DisplayImage?, autoplays: Bool, continues: Bool = false) -> Bool {
    guard frameCount > 0 || image != nil else { return false }
    let count = image?.frameCount ?? 0
    let isSame = continues && count == frameCount
    generation += 1
    first = image.flatMap { $0.frameCount > 1 ? $0 : nil }
    (frames, isDriven, shownAt) = ([:], false, nil)
    if isSame {
      target = target ?? frame
    } else {
      (target, loops, hasEnded, isControlled) = (nil, 0, false, false)
    }
    isOutdated = isSame && frame != 0
    if !isOutdated, frame != 0 { frame = 0 }
    if frameCount != count { frameCount = count }
    if error != nil { error = nil }
    if !isSame { autoplay(autoplays) }
    signal()
    return isOutdated
  }

  // MARK: Frames

  /// Shows the frames until another image is shown or the calling task is cancelled. A further call waits for the first to end.
  func run(_ clock: any CacheClock, autoplays: Bool, show: (DisplayImage) -> Void) async {
    guard let first else { return }
    autoplay(autoplays)
    let generation = generation
    while isDriven, !isOver(generation) { await change() }
    guard !isOver(generation) else { return }
    (isDriven, shownAt) = (true, nil)
    await drive(first, generation, clock, show)
    // The state of another image belongs to the task that shows it.
    guard self.generation == generation else { return }
    (isDriven, frames) = (false, [:])
    signal()
  }

  /// Shows frames: that of a seek, or the next one at its time. After each suspension, everything may have changed.
  private func drive(_ first: DisplayImage, _ generation: Int, _ clock: any CacheClock, _ show: (DisplayImage) -> Void) async {
    while !isOver(generation) {
      if let wanted = target {
        let isThere = wanted == frame && !isOutdated ? true : await load(wanted, of: first, generation)
        guard !isOver(generation) else { return }
        // The frame of an earlier seek is also shown, so that the image follows a slider.
        if target == wanted { target = nil }
        guard isThere else { continue }
        display(wanted, of: first, show)
        shownAt = clock.uptime
        continue
      }
      guard isPlaying else {
        await change()
        continue
      }
      let start = shownAt ?? clock.uptime
      shownAt = start
      let isLast = frame == frameCount - 1
      let ends = isLast && limit.map { loops + 1 >= $0 } ?? false
      let next = isLast ? 0 : frame + 1
      if !ends, !isDecoded(next) {
        _ = await load(next, of: first, generation)
        continue
      }
      // A late frame delays the following frames, so that none is skipped.
      let remaining = start + max(first.delays[frame] / rate, Self.shortestDelay) - clock.uptime
      if remaining > .zero {
        await change(within: remaining, clock)
        continue
      }
      if ends {
        hasEnded = true
        setPlaying(false)
        continue
      }
      if isLast { loops += 1 }
      display(next, of: first, show)
      shownAt = clock.uptime
    }
  }

  /// The shortest time for which a frame is shown. The main actor has time for other work.
  private static let shortestDelay = Duration.milliseconds(1)

  private func isOver(_ generation: Int) -> Bool { Task.isCancelled || self.generation != generation }

  private func isDecoded(_ index: Int) -> Bool { index == 0 || frames[index] != nil }

  /// Whether all frames fit into the memory limit.
  private var keepsFrames: Bool { first.map { $0.bytesPerRow * $0.size.height <= max(memory, 0) / frameCount } ?? false }

  /// Decodes a frame. Returns `false` if the frame cannot be decoded, or the task has nothing more to show.
  private func load(_ index: Int, of first: DisplayImage, _ generation: Int) async -> Bool {
    if isDecoded(index) { return true }
    // The next frame is not held together with another one.
    if !keepsFrames { frames = [:] }
    do throws(CacheError) {
      let image = try await decode(first, index)
      guard !isOver(generation) else { return false }
      frames[index] = image
      return true
    } catch {
      guard !isOver(generation) else { return false }
      self.error = error
      setPlaying(false)
      return false
    }
  }

  private func display(_ index: Int, of first: DisplayImage, _ show: (DisplayImage) -> Void) {
    if error != nil { error = nil }
    guard index != frame || isOutdated, let image = index == 0 ? first : frames[index] else { return }
    if !keepsFrames { frames = [:] }
    isOutdated = false
    if frame != index { frame = index }
    show(image)
  }

  // MARK: Waiting

  /// Wakes the tasks that wait for a change.
  private func signal() { changes.update { $0 &+= 1 } }

  /// Returns after the next change, or when the task is cancelled.
  private func change() async {
    let seen = changes.read { $0 }
    await changes.wait { $0 != seen }
  }

  /// Returns after the next change or a duration, or when the task is cancelled.
  private func change(within duration: Duration, _ clock: any CacheClock) async {
    let (changes, seen) = (changes, changes.read { $0 })
    await withTaskGroup(of: Void.self) { group in
      group.addTask { try? await clock.sleep(for: duration) }
      group.addTask { await changes.wait { $0 != seen } }
      await group.next()
      group.cancelAll()
    }
  }
}
