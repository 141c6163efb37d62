#if Origin
internal import CacheCore

/// Answers that are given one after another, on the connection's own thread: no task has to be scheduled for them, so a busy
/// machine does not delay them.
final class AnswerTurns: Sendable {
  private let answers: [OriginAnswer]
  private let last: OriginAnswer
  private let next = Lock(0)

  init(_ answers: [OriginAnswer]) {
    self.answers = answers
    last = answers.last ?? OriginAnswer()
  }

  func take() -> OriginAnswer {
    let index = next.withLock { next in
      defer { next += 1 }
      return next
    }
    return index < answers.count ? answers[index] : last
  }
}
#endif
