internal import CacheCore
internal import HTTPTypes

/// The recovery that requests a body again, if none of it was returned yet.
struct TransparentRetry: BodyRecovery {
  let attempts: RetryLoop
  /// The head that was returned.
  let head: HTTPResponse
  /// The announced length of its body in bytes, or `nil` if it is unknown.
  let length: Int64?

  func continuation(after error: CacheError, at position: Int64) async throws(CacheError) -> Continuation {
    attempts.log.close(isCounted: true)
    attempts.log.note(error)
    guard position == 0 else { throw attempts.interruption(error, at: position) }
    let response = try await attempts.nextResponse(after: RetryLoop.original(of: error))
    // A body that arrives whole has a length, also if none was announced.
    guard Self.describesSameContent(head, response.head), length == nil || length == response.body.length else {
      attempts.giveUp(response)
      // A transient status says nothing about the resource. Starting over would repeat the request that was just refused.
      guard !attempts.policy.statuses.contains(response.head.status.code) || response.head.status == head.status else {
        throw attempts.log.final(attempts.noteStatus(response.head))
      }
      throw attempts.interruption(error, at: position, reason: "the resource has changed")
    }
    return .bytes(response.body.source, skipping: 0)
  }

  /// Returns whether the first head also describes the body of the second response.
  ///
  /// The reader has only the first head, so its labels and its caching rules must hold for the new bytes.
  static func describesSameContent(_ first: HTTPResponse, _ second: HTTPResponse) -> Bool {
    first.status == second.status && labels.allSatisfy { first.headerFields[$0] == second.headerFields[$0] }
  }

  private static let labels: [HTTPField.Name] = [
    .eTag, .lastModified, .contentLength, .contentEncoding, .contentType, .contentRange, .contentLanguage, .contentLocation,
    .cacheControl, .vary, .setCookie,
  ]
}
