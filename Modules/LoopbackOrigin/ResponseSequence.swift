#if Origin
internal import CacheCore

/// Responses that are given in turn, on the connection's own thread. They need no task, so a busy machine does not delay them.
final class ResponseSequence: Sendable {
  private let responses: [OriginResponse]
  private let last: OriginResponse
  private let next = Lock(0)

  init(_ responses: [OriginResponse]) {
    self.responses = responses
    last = responses.last ?? OriginResponse()
  }

  func take() -> OriginResponse {
    let index = next.withLock { next in
      defer { next += 1 }
      return next
    }
    return index < responses.count ? responses[index] : last
  }
}
#endif
