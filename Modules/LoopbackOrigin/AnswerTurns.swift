#if Origin
internal import CacheCore

/// Responses that are given in turn, on the connection's own thread. They need no task, so a busy machine does not delay them.
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
