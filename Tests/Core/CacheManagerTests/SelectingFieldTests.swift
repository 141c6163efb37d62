import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import Testing

/// A validator that stores a response for each language, even without `Vary`.
private struct LanguageValidator: ResponseValidator {
  let id = ComponentID.unique(LanguageValidator.self)
  private let base = ETagValidator()

  func plan(_ request: HTTPRequest, policy: LoadPolicy, stored: [StoredMetadata], now: Timestamp) -> ValidationPlan {
    let index = stored.firstIndex { metadata in
      let fields = metadata.request.headerFields
      return fields.isEmpty || fields[.acceptLanguage] == request.headerFields[.acceptLanguage]
    }
    if let index { return .use(index, thenRevalidate: nil) }
    return .fetch(request, fallback: nil, reason: stored.isEmpty ? .uriMiss : .varyMiss)
  }

  func judge(
    _ result: Result<HTTPResponse, CacheError>, to request: HTTPRequest, sent: HTTPRequest, fallback: Int?,
    stored: [StoredMetadata], requestTime: Timestamp, now: Timestamp, revision: Revision
  ) -> ValidationVerdict {
    let verdict = base.judge(
      result, to: request, sent: sent, fallback: nil, stored: [], requestTime: requestTime, now: now, revision: revision)
    guard case .store(_, var metadata, let changes) = verdict else { return verdict }
    let language = request.headerFields[.acceptLanguage]
    metadata.request.headerFields[.acceptLanguage] = language
    return .store(variant: language ?? "", metadata, changes)
  }
}

@Suite("Selecting fields and request coalescing")
struct SelectingFieldTests {
  @Test(
    "a request that learns the selecting fields waits only for requests with equal values, from Vary or from the validator",
    arguments: [true, false])
  func validators(_ isOwn: Bool) async throws {
    let fixture = try ManagerFixture {
      if isOwn { $0.validator = LanguageValidator() }
      $0.waitForStores()
    }
    let gate = Gate()
    fixture.network.serve(fixture.url) { request in
      .ok(
        request.headerFields[.acceptLanguage] ?? "", cacheControl: "max-age=60", fields: isOwn ? [:] : [.vary: "Accept-Language"]
      ).held(by: gate)
    }
    let languages = ["de", "fr", "nl"]
    let exchanges = fixture.send(times: 12) { [.acceptLanguage: languages[$0 % 3]] }
    await fixture.clock.sleepers(11)
    gate.letThrough(1)

    // The two other requests are sent at the same time, and not one after the other.
    try await Polling.until { gate.arrivals == 3 && fixture.clock.pendingSleeps == 6 }
    gate.open()

    let results = try await exchanges.value
    for language in languages { #expect(results.filter { $0.text == language }.count == 4) }
    #expect(fixture.network.requests.count == 3)
  }
}
