internal import CacheCore

/// The time limit and cancellation check of image work.
struct DecodingDeadline {
  private let deadline: ContinuousClock.Instant
  private let limits: ImageLimits
  private let format: ImageFormat
  private let work: String

  /// The current time. Tests replace it.
  @TaskLocal static var now: @Sendable () -> ContinuousClock.Instant = { .now }

  /// - Parameter work: The name of the work, for the error's reason.
  init(_ limits: ImageLimits, _ format: ImageFormat, work: String = "decoding") {
    self.limits = limits
    self.format = format
    self.work = work
    deadline = Self.now() + limits.time
  }

  /// The error that ends the work, or `nil` while the work may continue.
  var end: CacheError? {
    if Task.isCancelled { return .cancelled }
    return Self.now() >= deadline ? limits.exceededTime(format, work) : nil
  }
}
