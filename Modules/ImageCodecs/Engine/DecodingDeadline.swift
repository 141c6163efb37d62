internal import CacheCore

/// Says whether work on a picture goes on: until its time is over, or its caller gives up.
struct DecodingDeadline {
  private let deadline: ContinuousClock.Instant
  private let limits: ImageLimits
  private let format: ImageFormat
  private let work: String

  /// The time. Tests look at who asks for it.
  @TaskLocal static var now: @Sendable () -> ContinuousClock.Instant = { .now }

  /// - Parameter work: what takes the time, for the reason.
  init(_ limits: ImageLimits, _ format: ImageFormat, work: String = "decoding") {
    self.limits = limits
    self.format = format
    self.work = work
    deadline = Self.now() + limits.time
  }

  /// Why it is over; nil: it goes on.
  var end: CacheError? {
    if Task.isCancelled { return .cancelled }
    return Self.now() >= deadline ? limits.exceededTime(format, work) : nil
  }
}
