internal import CacheCore
internal import HTTPTypes

/// A body of which nothing was handed over yet is asked for again.
struct TransparentRetry: BodyRecovery {
  let attempts: RetryLoop
  /// The head that was handed over.
  let head: HTTPResponse
  /// Bytes that were announced with it.
  let length: Int64?

  func continuation(after error: CacheError, at position: Int64) async throws(CacheError) -> Continuation {
    attempts.log.close(isCounted: true)
    attempts.log.note(error)
    guard position == 0 else { throw attempts.interruption(error, at: position) }
    let response = try await attempts.answer(after: RetryLoop.original(of: error))
    guard Self.describesSameContent(head, response.head), length == response.body.length else {
      attempts.giveUp(response)
      // It speaks of the moment, and not of the resource: to start over now would be to ask again what was just refused.
      guard !attempts.policy.statuses.contains(response.head.status.code) || response.head.status == head.status else {
        throw attempts.log.final(attempts.noteStatus(response.head))
      }
      throw attempts.interruption(error, at: position, reason: "the resource has changed")
    }
    return .bytes(response.body.source, skipping: 0)
  }

  /// Whether a head that was handed over may stand before the other one's body.
  ///
  /// The reader goes by the first head: what it labels the bytes with, and whether it may keep them, has to hold for the new
  /// ones.
  static func describesSameContent(_ first: HTTPResponse, _ second: HTTPResponse) -> Bool {
    first.status == second.status && labels.allSatisfy { first.headerFields[$0] == second.headerFields[$0] }
  }

  private static let labels: [HTTPField.Name] = [
    .eTag, .lastModified, .contentLength, .contentEncoding, .contentType, .contentRange, .contentLanguage, .contentLocation,
    .cacheControl, .vary, .setCookie,
  ]
}
