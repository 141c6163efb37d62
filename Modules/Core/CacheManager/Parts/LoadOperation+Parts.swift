internal import CacheCore
internal import HTTPTypes

/// Loads the whole response from its parts.
extension LoadOperation {
  /// Combines stored parts with the missing ones into the whole response. If that fails, requests the whole response.
  @inline(never)
  func combine(_ combination: PartCombination, _ fetch: Fetch) async throws(CacheError) -> Exchange {
    // Engines decode whole bodies, and no parts.
    guard combination.whole.response.headerFields[.contentEncoding] == nil else { return try await request(whole: fetch) }
    let live = request.parts.live(combination, fetch)
    guard var exchange = try await fetch.combined(live, requiresValidation: combination.requiresValidation) else {
      return try await request(whole: fetch)
    }
    guard let recording = exchange.recording else { return exchange }
    do throws(CacheError) {
      exchange.complete(
        with: try await recording.record { report(.progress(LoadProgress(received: $0, expected: live.length))) })
      return exchange
    } catch {
      exchange.reservation?.release()
      if error.isCancellation || error.code == .bodyTooLarge { throw error }
      report(.progress(LoadProgress(received: 0)))
      return try await request(whole: fetch)
    }
  }

  /// Requests the whole response, because stored parts could not be combined.
  private func request(whole fetch: Fetch) async throws(CacheError) -> Exchange {
    guard fetch.permitsRequest else { throw .onlyCached }
    return try await collect(fetch.head, fetch)
  }
}
